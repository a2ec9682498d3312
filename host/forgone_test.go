package host_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/internal/store/storetest"
	"reeve/reevetest"
)

// asyncTool is an asynchronous tool that somebody else brings to its end.
func asyncTool(id string, effect reeve.Effect, h reeve.Handler) reeve.Tool {
	t := tool(id, effect, h)
	t.Async, t.TimeoutMS = true, 60_000
	if effect == reeve.Verifiable {
		t.Verify = func(context.Context, *reeve.Invocation) (reeve.Outcome, any, error) {
			return reeve.CannotTell, nil, nil
		}
	}
	return t
}

func itWillCome(context.Context, *reeve.Invocation) (any, error) {
	return nil, reeve.Errorf(reeve.InProgress, "it will come")
}

// eachTalker runs a test on both databases, with an agent bot that has some tools and whose model follows a script.
func eachTalker(t *testing.T, answers string, tools []reeve.Tool, f func(t *testing.T, h *reevetest.Host,
	heard *eavesdropper)) {
	for _, name := range []string{"sqlite", "postgres"} {
		t.Run(name, func(t *testing.T) {
			heard := &eavesdropper{Model: script(t, "answers:\n"+answers)}
			cfg := quick(t)
			cfg.Model = heard
			if name == "postgres" {
				cfg.Database, cfg.SecretKey = storetest.PostgresURL(t), strings.Repeat("ab", 32)
			}
			h := reevetest.Run(t, cfg, tools...)
			var ids []string
			for _, tool := range tools {
				ids = append(ids, tool.ID)
			}
			h.Agent("bot", ids...)
			f(t, h, heard)
		})
	}
}

// awaits waits until so many calls of a turn wait for what comes from outside, and the turn for them.
func awaits(h *reevetest.Host, turn string, n int) (list []reeve.Operation) {
	h.T.Helper()
	until(h, turn, func(d api.TurnDetail) bool {
		list = nil
		for _, op := range operations(h) {
			if op.RunID == turn && op.IsAwaited() {
				list = append(list, op)
			}
		}
		return len(list) == n && d.State == reeve.RunParked
	})
	return list
}

// kept reads the kept frames of a conversation.
func kept(h *reevetest.Host, conversation string) []reeve.Frame {
	h.T.Helper()
	var l api.FrameList
	h.Want(http.StatusOK, &l, "GET", "/api/conversations/"+conversation+"/frames?limit=500", nil)
	return l.Frames
}

// settled checks that every call of a turn that is over has one result, in its messages and in its frames, and gives
// the frames of the results by tool. Unless they may come late, they come before the turn's end.
func settled(t *testing.T, h *reevetest.Host, d api.TurnDetail, late bool) map[string]reeve.Frame {
	t.Helper()
	rules(t, h, d)
	results, begun, over := map[string]reeve.Frame{}, 0, false
	for _, f := range kept(h, d.ConversationID) {
		if f.TurnID != d.ID {
			continue
		}
		switch f.Type {
		case reeve.FrameTool:
			begun++
		case reeve.FrameResult:
			if _, twice := results[f.Tool]; twice || over && !late {
				t.Errorf("told twice, or after the turn's end: %+v", f)
			}
			results[f.Tool] = f
		case reeve.FrameComplete:
			over = true
		default:
		}
	}
	if len(results) != begun {
		t.Errorf("%d calls were told to begin, and the results of %d", begun, len(results))
	}
	return results
}

// A turn that is over waits for nobody: what its calls still wait for is settled with its end and told, and an outcome
// that comes later changes nothing.
func TestW10_WhatATurnThatIsOverWaitedFor(t *testing.T) {
	t.Parallel()
	ways := map[string]func(h *reevetest.Host, turn string){
		"cancelled": func(h *reevetest.Host, turn string) {
			h.Want(http.StatusOK, nil, "POST", "/api/turns/"+turn+"/cancel", nil)
		},
		"run cancelled": func(h *reevetest.Host, turn string) {
			h.Want(http.StatusOK, nil, "POST", "/api/runs/"+turn+"/cancel", nil)
		},
		"agent destroyed": func(h *reevetest.Host, _ string) {
			h.Want(http.StatusOK, nil, "PATCH", "/api/agents/bot", object{"lifecycle": "destroyed"})
		},
		"agent removed": func(h *reevetest.Host, _ string) {
			h.Want(http.StatusNoContent, nil, "DELETE",
				"/api/agents/bot", nil)
		},
	}
	tools := []reeve.Tool{asyncTool("look", reeve.Read, itWillCome), asyncTool("send", reeve.Keyed, itWillCome),
		asyncTool("check", reeve.Verifiable, itWillCome), asyncTool("shoot", reeve.Unsafe, itWillCome)}
	script := "- {when: begin, calls: [{name: look, args: {}}, {name: send, args: {}}, {name: check, args: {}}, " +
		"{name: shoot, args: {}}]}\n- {when: {result: Started}, text: 'I have begun.'}\n- {when: hello, text: 'Still " +
		"here.'}\n"
	for way, end := range ways {
		t.Run(way, func(t *testing.T) {
			eachTalker(t, script, tools, func(t *testing.T, h *reevetest.Host, heard *eavesdropper) {
				c := h.StartConversation("bot")
				turn := speak(h, c.ID, "begin")
				open := awaits(h, turn.ID, len(tools))
				end(h, turn.ID)
				d := detail(h, turn.ID)
				if d.State != reeve.RunCancelled {
					t.Fatalf("%+v", d.Turn)
				}
				told := settled(t, h, d, false)
				for id, f := range told {
					if !f.IsError || !strings.Contains(f.Content, "the turn was cancelled before its outcome came") ||
						strings.Contains(f.Content, "not known") != (id != "look") {
						t.Errorf("%+v", f)
					}
				}
				for _, op := range open {
					is := operation(h, op.ID)
					if want := map[bool]reeve.State{true: reeve.Failed,
						false: reeve.Unknown}[op.Tool == "look"]; is.State != want || is.ResultID == "" ||
						is.TimeoutAt != nil || is.NextAttemptAt != nil {
						t.Errorf("%+v", is)
					}
					var p api.Problem
					h.Want(http.StatusConflict, &p, "POST", "/api/operations/"+op.ID+"/result",
						object{"content": "LATE"})
					if p.Code != reeve.Conflict || !strings.Contains(p.Detail, "the turn was cancelled") {
						t.Errorf("%+v", p)
					}
				}
				var box api.Inbox
				if h.Want(http.StatusOK, &box, "GET", "/api/inbox", nil); len(box.Unknown) != 0 {
					t.Errorf("a person is asked: %+v", box.Unknown)
				}
				if again := detail(h, turn.ID); len(again.Messages) != len(d.Messages) {
					t.Error("a late outcome changed the turn")
				}
				if strings.HasPrefix(way, "agent") {
					return
				}
				if over(h, speak(h, c.ID, "hello").ID); strings.Contains(heard.last(""), "LATE") {
					t.Errorf("the model was told %s", heard.last(""))
				}
			})
		})
	}
}

// A turn that fails, or that hands over to its client, does not wait either.
func TestW10_WhatATurnThatFailedWaitedFor(t *testing.T) {
	t.Parallel()
	script := "- {when: begin, calls: [{name: send, args: {}}]}\n- {when: {result: Started}, fail: {status: 400, " +
		"message: broken}}\n"
	eachTalker(t, script, []reeve.Tool{asyncTool("send", reeve.Keyed, itWillCome)},
		func(t *testing.T, h *reevetest.Host, _ *eavesdropper) {
			turn := over(h, speak(h, h.StartConversation("bot").ID, "begin").ID)
			var op reeve.Operation
			eventually(t, "the call to be settled", func() bool { op = operations(h)[0]; return op.ResultID != "" })
			d := detail(h, turn.ID)
			if told := settled(t, h, d, true); d.State != reeve.RunFailed || !strings.Contains(told["send"].Content,
				"the turn failed before") {
				t.Errorf("%+v", told)
			}
			h.Want(http.StatusConflict, nil, "POST", "/api/operations/"+op.ID+"/result", object{"content": "LATE"})
		})
}

// What was being sent when its turn was cancelled is recorded and told when it is over. If it says that its outcome
// comes later, nobody waits for that.
func TestW10_SentWhileItsTurnIsCancelled(t *testing.T) {
	t.Parallel()
	entered, finish := make(chan struct{}, 2), make(chan struct{})
	handle := func(answer func() (any, error)) reeve.Handler {
		return func(context.Context, *reeve.Invocation) (any, error) {
			entered <- struct{}{}
			<-finish
			return answer()
		}
	}
	tools := []reeve.Tool{asyncTool("now", reeve.Keyed, handle(func() (any, error) { return "done", nil })),
		asyncTool("later", reeve.Keyed, handle(func() (any, error) { return itWillCome(t.Context(), nil) }))}
	script := "- {when: begin, calls: [{name: now, args: {}}, {name: later, args: {}}]}\n- {when: {result: Started}, " +
		"text: 'I have begun.'}\n"
	eachTalker(t, script, tools, func(t *testing.T, h *reevetest.Host, _ *eavesdropper) {
		finish = make(chan struct{})
		turn := speak(h, h.StartConversation("bot").ID, "begin")
		<-entered
		<-entered
		h.Want(http.StatusOK, nil, "POST", "/api/turns/"+turn.ID+"/cancel", nil)
		close(finish)
		eventually(t, "both to have a result", func() bool {
			for _, op := range operations(h) {
				if op.ResultID == "" {
					return false
				}
			}
			return true
		})
		if told := settled(t, h, detail(h, turn.ID), true); told["now"].Content != "done" ||
			!strings.Contains(told["later"].Content, "the turn was cancelled") {
			t.Errorf("%+v", told)
		}
	})
}

// An outcome that comes at the moment at which its turn is cancelled counts, or is refused: its turn has one result,
// which its clients are told.
func TestW10_AnOutcomeAndACancelAtOnce(t *testing.T) {
	t.Parallel()
	script := "- {when: begin, calls: [{name: send, args: {}}]}\n- {when: has arrived, text: 'It is done.'}\n- {when: " +
		"{result: Started}, text: 'I have begun.'}\n"
	eachTalker(t, script, []reeve.Tool{asyncTool("send", reeve.Keyed, itWillCome)},
		func(t *testing.T, h *reevetest.Host, _ *eavesdropper) {
			for range 10 {
				turn := speak(h, h.StartConversation("bot").ID, "begin")
				op := awaits(h, turn.ID, 1)[0]
				var delivered, cancelled int
				var both sync.WaitGroup
				both.Go(func() {
					delivered = h.Do("POST", "/api/operations/"+op.ID+"/result", object{"content": "JUST IN TIME"}).
						Status
				})
				both.Go(func() { cancelled = h.Do("POST", "/api/turns/"+turn.ID+"/cancel", nil).Status })
				both.Wait()
				d := over(h, turn.ID)
				told, is := settled(t, h, d, true)["send"], operation(h, op.ID)
				counts := delivered == http.StatusOK
				if delivered != http.StatusOK && delivered != http.StatusConflict ||
					(told.Content == "JUST IN TIME") != counts || (is.State == reeve.Committed) != counts {
					t.Errorf("delivered %d, cancelled %d: %+v, %+v", delivered, cancelled, is, told)
				}
			}
		})
}

// A call that the model asked for, and that was under way or not begun when its turn was cancelled, is told to have
// come to nothing, with the turn's end.
func TestW21_CallsThatWereNeverRecorded(t *testing.T) {
	t.Parallel()
	entered, finish := make(chan struct{}, 1), make(chan struct{})
	tools := []reeve.Tool{tool("look", reeve.Read, func(context.Context, *reeve.Invocation) (any, error) {
		entered <- struct{}{}
		<-finish
		return "seen", nil
	}), tool("note", reeve.Local, func(context.Context, *reeve.Invocation) (any, error) { return "noted", nil }),
		asyncTool("send", reeve.Keyed, itWillCome)}
	script := "- {when: begin, calls: [{id: a, name: note, args: {}}]}\n- {when: {result: noted}, calls: [{id: a, " +
		"name: look, args: {}}, {id: b, name: send, args: {}}]}\n"
	eachTalker(t, script, tools, func(t *testing.T, h *reevetest.Host, _ *eavesdropper) {
		finish = make(chan struct{})
		defer close(finish)
		turn := speak(h, h.StartConversation("bot").ID, "begin")
		<-entered
		h.Want(http.StatusOK, nil, "POST", "/api/turns/"+turn.ID+"/cancel", nil)
		told := settled(t, h, detail(h, turn.ID), false)
		if told["note"].Content != "noted" {
			t.Errorf("%+v", told["note"])
		}
		for _, id := range []string{"look", "send"} {
			if f := told[id]; !f.IsError || f.Code != reeve.Canceled ||
				f.Content != "the turn was cancelled before its outcome came" {
				t.Errorf("%s: %+v", id, f)
			}
		}
	})
}

// underWay lists tools whose calls say when they are under way. A read ends with its caller, others when they are told
// to finish.
func underWay(entered chan<- struct{}, finish *chan struct{}) (tools []reeve.Tool) {
	for _, effect := range []reeve.Effect{reeve.Read, reeve.Keyed, reeve.Unsafe} {
		tools = append(tools, tool(string(effect), effect, func(ctx context.Context, _ *reeve.Invocation) (any, error) {
			entered <- struct{}{}
			if effect == reeve.Read {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			<-*finish
			return "done", nil
		}))
	}
	return tools
}

// recorded checks that a call of a turn left one action and one result.
func recorded(t *testing.T, h *reevetest.Host, turn, tool string) {
	t.Helper()
	kinds := map[reeve.MessageKind]int{}
	eventually(t, "the call of "+tool+" to be recorded", func() bool {
		clear(kinds)
		for _, m := range detail(h, turn).Messages {
			kinds[m.Kind]++
		}
		return kinds[reeve.ToolResult] > 0
	})
	if kinds[reeve.Action] != 1 || kinds[reeve.ToolResult] != 1 {
		t.Errorf("%s: %v", tool, kinds)
	}
}

// A call that is under way when its turn is ended is recorded, and told once, however the turn is ended.
func TestW22_ACallThatIsUnderWayWhenItsTurnIsEnded(t *testing.T) {
	t.Parallel()
	entered, finish := make(chan struct{}, 1), make(chan struct{})
	tools := underWay(entered, &finish)
	ways := map[string]func(h *reevetest.Host, turn string){
		"agent stopped": func(h *reevetest.Host, _ string) {
			h.Want(http.StatusNoContent, nil, "POST", "/api/stop", object{"agent": "bot"})
		},
		"agent stopped and resumed": func(h *reevetest.Host, _ string) {
			h.Want(http.StatusNoContent, nil, "POST", "/api/stop", object{"agent": "bot"})
			h.Want(http.StatusNoContent, nil, "POST", "/api/resume", object{"agent": "bot"})
		},
		"everything stopped": func(h *reevetest.Host, _ string) {
			h.Want(http.StatusNoContent, nil, "POST", "/api/stop", object{"reason": "a fire drill"})
		},
		"cancelled": func(h *reevetest.Host, turn string) {
			h.Want(http.StatusOK, nil, "POST", "/api/turns/"+turn+"/cancel", nil)
		},
	}
	script := ""
	for _, tool := range tools {
		script += "- {when: begin " + tool.ID + ", calls: [{name: " + tool.ID + ", args: {}}]}\n"
	}
	eachTalker(t, script, tools, func(t *testing.T, h *reevetest.Host, _ *eavesdropper) {
		for way, end := range ways {
			for _, tool := range tools {
				finish = make(chan struct{})
				turn := speak(h, h.StartConversation("bot").ID, "begin "+tool.ID)
				<-entered
				end(h, turn.ID)
				close(finish)
				over(h, turn.ID)
				recorded(t, h, turn.ID, tool.ID)
				settled(t, h, detail(h, turn.ID), way == "cancelled")
				h.Want(http.StatusNoContent, nil, "POST", "/api/resume", object{"agent": "bot"})
				h.Want(http.StatusNoContent, nil, "POST", "/api/resume", object{})
			}
		}
	})
}

// A turn that the kill switch ended says so, whatever it did at that moment.
func TestG23_ATurnThatIsStoppedSaysSo(t *testing.T) {
	t.Parallel()
	entered, finish := make(chan struct{}, 1), make(chan struct{})
	tools := underWay(entered, &finish)
	script := ""
	for _, tool := range tools {
		script += "- {when: begin " + tool.ID + ", calls: [{name: " + tool.ID + ", args: {}}]}\n"
	}
	eachTalker(t, script, tools, func(t *testing.T, h *reevetest.Host, _ *eavesdropper) {
		for _, tool := range tools {
			for _, c := range []struct {
				stop object
				want string
			}{
				{object{"agent": "bot"}, "the agent bot was stopped"},
				{object{}, "everything in this workspace was stopped"},
				{object{"reason": "a fire drill"}, "everything in this workspace was stopped: a fire drill"},
			} {
				finish = make(chan struct{})
				turn := speak(h, h.StartConversation("bot").ID, "begin "+tool.ID)
				<-entered
				h.Want(http.StatusNoContent, nil, "POST", "/api/stop", c.stop)
				close(finish)
				if d := over(h, turn.ID); d.State != reeve.RunCancelled || d.Code != reeve.Stopped ||
					d.Message != c.want {
					t.Errorf("%s, %v: %s %s %q", tool.ID, c.stop, d.State, d.Code, d.Message)
				}
				delete(c.stop, "reason")
				h.Want(http.StatusNoContent, nil, "POST", "/api/resume", c.stop)
			}
		}
	})
}

// What becomes of calls that wait for a person when their agent is removed is told before the end of its turns.
func TestW21_AnAgentThatIsRemovedWhileAPersonIsAsked(t *testing.T) {
	t.Parallel()
	tools := []reeve.Tool{tool("send", reeve.Keyed, func(context.Context, *reeve.Invocation) (any,
		error) {
		return "sent", nil
	})}
	eachTalker(t, "- {when: begin, calls: [{name: send, args: {}}]}\n", tools, func(t *testing.T, h *reevetest.Host,
		_ *eavesdropper) {
		for end, status := range map[string]int{"DELETE": http.StatusNoContent, "PATCH": http.StatusOK} {
			a := h.Agent("asks", "send")
			patch(h, a, object{"policy": object{"tools": object{"send": "ask"}}})
			turn := speak(h, h.StartConversation(a.ID).ID, "begin")
			until(h, turn.ID, func(d api.TurnDetail) bool { return d.State == reeve.RunParked })
			var body any
			if end == "PATCH" {
				body = object{"name": "gone", "lifecycle": "destroyed"}
			}
			h.Want(status, nil, end, "/api/agents/"+a.ID, body)
			if f := settled(t, h, detail(h, turn.ID), false)["send"]; f.Code != reeve.Denied ||
				!strings.Contains(f.Content, "the agent was") {
				t.Errorf("%s: %+v", end, f)
			}
		}
	})
}

// Whoever does the work may be done before the request that asks for it is answered: the outcome counts, once, and that
// it comes later is no news then.
func TestW13_AnOutcomeBeforeItsRequestIsAnswered(t *testing.T) {
	t.Parallel()
	entered, finish := make(chan struct{}, 1), make(chan struct{})
	var tools []reeve.Tool
	for _, effect := range []reeve.Effect{reeve.Read, reeve.Keyed, reeve.Verifiable, reeve.Unsafe} {
		tools = append(tools, asyncTool(string(effect), effect, func(ctx context.Context, inv *reeve.Invocation) (any,
			error) {
			entered <- struct{}{}
			<-finish
			return itWillCome(ctx, inv)
		}))
	}
	script := "- {when: {result: EARLY}, text: 'It is done.'}\n- {when: EARLY, text: 'It is done.'}\n- {when: " +
		"{result: Started}, text: 'I have begun.'}\n"
	for _, tool := range tools {
		script += "- {when: begin " + tool.ID + ", calls: [{name: " + tool.ID + ", args: {}}]}\n"
	}
	eachTalker(t, script, tools, func(t *testing.T, h *reevetest.Host, _ *eavesdropper) {
		for _, policy := range []string{"allow", "ask"} {
			for _, tool := range tools {
				finish = make(chan struct{})
				h.Want(http.StatusOK, nil, "PATCH", "/api/agents/bot",
					object{"policy": object{"tools": object{tool.ID: policy}}})
				turn := speak(h, h.StartConversation("bot").ID, "begin "+tool.ID)
				if policy == "ask" {
					var box api.Inbox
					eventually(t, "a person to be asked", func() bool {
						h.Want(http.StatusOK, &box, "GET", "/api/inbox", nil)
						return len(box.Approvals) == 1
					})
					h.Want(http.StatusOK, nil, "POST", "/api/approvals/"+box.Approvals[0].ID+"/decision",
						object{"decision": "approve"})
				}
				<-entered
				at := ""
				for _, op := range operations(h) {
					if op.RunID == turn.ID {
						at = "/api/operations/" + op.ID
					}
				}
				var op reeve.Operation
				h.Want(http.StatusOK, &op, "POST", at+"/result", object{"content": "EARLY"})
				h.Want(http.StatusConflict, nil, "POST", at+"/result", object{"content": "TWICE"})
				close(finish)
				d := over(h, turn.ID)
				if h.Want(http.StatusOK, &op, "GET", at, nil); op.State != reeve.Committed ||
					d.Output != "It is done." {
					t.Errorf("%s, %s: %+v, %+v", policy, tool.ID, op, d.Turn)
				}
				if f := settled(t, h, d, false)[tool.ID]; f.Content != "EARLY" {
					t.Errorf("%s, %s: %+v", policy, tool.ID, f)
				}
			}
		}
		for _, tool := range tools[1:] { // what was proposed is made when its turn is over
			finish = make(chan struct{})
			h.Want(http.StatusOK, nil, "PATCH", "/api/agents/bot",
				object{"policy": object{"tools": object{tool.ID: "propose"}}})
			over(h, speak(h, h.StartConversation("bot").ID, "begin "+tool.ID).ID)
			var made reeve.Proposal
			h.Want(http.StatusOK, &made, "POST", "/api/proposals/"+inbox(h).Proposals[0].ID+"/accept", object{})
			<-entered
			h.Want(http.StatusOK, nil, "POST", "/api/operations/"+made.OperationID+"/result",
				object{"content": "EARLY"})
			close(finish)
			if op := operation(h, made.OperationID); op.State != reeve.Committed {
				t.Errorf("%s: %+v", tool.ID, op)
			}
		}
	})
}
