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

// AsyncTool is an asynchronous tool that somebody else brings to its end.
func AsyncTool(id string, effect reeve.Effect, h reeve.Handler) reeve.Tool {
	t := Tool(id, effect, h)
	t.Async, t.TimeoutMS = true, 60_000
	if effect == reeve.Verifiable {
		t.Verify = func(context.Context, *reeve.Invocation) (reeve.Outcome, any, error) {
			return reeve.CannotTell, nil, nil
		}
	}
	return t
}

func AnswerLater(context.Context, *reeve.Invocation) (any, error) {
	return nil, reeve.Errorf(reeve.InProgress, "it will come")
}

// RunOnBothDatabases runs a test on both databases, with an agent bot that has some tools and whose model follows a
// script.
func RunOnBothDatabases(t *testing.T, answers string, tools []reeve.Tool, f func(t *testing.T, h *reevetest.Host,
	heard *RecordingModel)) {
	for _, name := range []string{"sqlite", "postgres"} {
		t.Run(name, func(t *testing.T) {
			heard := &RecordingModel{Model: ScriptedModel(t, "answers:\n"+answers)}
			cfg := FastConfig(t)
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
	WaitForTurnWhere(h, turn, func(d api.TurnDetail) bool {
		list = nil
		for _, op := range ListOperations(h) {
			if op.RunID == turn && op.IsAwaited() {
				list = append(list, op)
			}
		}
		return len(list) == n && d.State == reeve.RunParked
	})
	return list
}

// ListFrames reads the kept frames of a conversation.
func ListFrames(h *reevetest.Host, conversation string) []reeve.Frame {
	h.T.Helper()
	var l api.FrameList
	h.Want(http.StatusOK, &l, "GET", "/api/conversations/"+conversation+"/frames?limit=500", nil)
	return l.Frames
}

// settled checks that every call of a turn that is over has one result, in its messages and in its frames, and gives
// the frames of the results by tool. Unless they may come late, they come before the turn's end.
func settled(t *testing.T, h *reevetest.Host, d api.TurnDetail, late bool) map[string]reeve.Frame {
	t.Helper()
	CheckTurn(t, h, d)
	results, begun, over := map[string]reeve.Frame{}, 0, false
	for _, f := range ListFrames(h, d.ConversationID) {
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
			h.Want(http.StatusOK, nil, "PATCH", "/api/agents/bot", Object{"lifecycle": "destroyed"})
		},
		"agent removed": func(h *reevetest.Host, _ string) {
			h.Want(http.StatusNoContent, nil, "DELETE",
				"/api/agents/bot", nil)
		},
	}
	tools := []reeve.Tool{AsyncTool("look", reeve.Read, AnswerLater), AsyncTool("send", reeve.Keyed, AnswerLater),
		AsyncTool("check", reeve.Verifiable, AnswerLater), AsyncTool("shoot", reeve.Unsafe, AnswerLater)}
	script := "- {when: begin, calls: [{name: look, args: {}}, {name: send, args: {}}, {name: check, args: {}}, " +
		"{name: shoot, args: {}}]}\n- {when: {result: Started}, text: 'I have begun.'}\n- {when: hello, text: 'Still " +
		"here.'}\n"
	for way, end := range ways {
		t.Run(way, func(t *testing.T) {
			RunOnBothDatabases(t, script, tools, func(t *testing.T, h *reevetest.Host, heard *RecordingModel) {
				c := h.Talk("bot")
				turn := StartTurn(h, c.ID, "begin")
				open := awaits(h, turn.ID, len(tools))
				end(h, turn.ID)
				d := GetTurn(h, turn.ID)
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
					is := GetOperation(h, op.ID)
					if want := map[bool]reeve.State{true: reeve.Failed,
						false: reeve.Unknown}[op.Tool == "look"]; is.State != want || is.ResultID == "" ||
						is.TimeoutAt != nil || is.NextAttemptAt != nil {
						t.Errorf("%+v", is)
					}
					var p api.Problem
					h.Want(http.StatusConflict, &p, "POST", "/api/operations/"+op.ID+"/result",
						Object{"content": "LATE"})
					if p.Code != reeve.Conflict || !strings.Contains(p.Detail, "the turn was cancelled") {
						t.Errorf("%+v", p)
					}
				}
				var box api.Inbox
				if h.Want(http.StatusOK, &box, "GET", "/api/inbox", nil); len(box.Unknown) != 0 {
					t.Errorf("a person is asked: %+v", box.Unknown)
				}
				if again := GetTurn(h, turn.ID); len(again.Messages) != len(d.Messages) {
					t.Error("a late outcome changed the turn")
				}
				if strings.HasPrefix(way, "agent") {
					return
				}
				if WaitForTurn(h, StartTurn(h, c.ID, "hello").ID); strings.Contains(heard.LastPrompt(""), "LATE") {
					t.Errorf("the model was told %s", heard.LastPrompt(""))
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
	RunOnBothDatabases(t, script, []reeve.Tool{AsyncTool("send", reeve.Keyed, AnswerLater)},
		func(t *testing.T, h *reevetest.Host, _ *RecordingModel) {
			turn := WaitForTurn(h, StartTurn(h, h.Talk("bot").ID, "begin").ID)
			var op reeve.Operation
			Eventually(t, "the call to be settled", func() bool { op = ListOperations(h)[0]; return op.ResultID != "" })
			d := GetTurn(h, turn.ID)
			if told := settled(t, h, d, true); d.State != reeve.RunFailed || !strings.Contains(told["send"].Content,
				"the turn failed before") {
				t.Errorf("%+v", told)
			}
			h.Want(http.StatusConflict, nil, "POST", "/api/operations/"+op.ID+"/result", Object{"content": "LATE"})
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
	tools := []reeve.Tool{AsyncTool("now", reeve.Keyed, handle(func() (any, error) { return "done", nil })),
		AsyncTool("later", reeve.Keyed, handle(func() (any, error) { return AnswerLater(t.Context(), nil) }))}
	script := "- {when: begin, calls: [{name: now, args: {}}, {name: later, args: {}}]}\n- {when: {result: Started}, " +
		"text: 'I have begun.'}\n"
	RunOnBothDatabases(t, script, tools, func(t *testing.T, h *reevetest.Host, _ *RecordingModel) {
		finish = make(chan struct{})
		turn := StartTurn(h, h.Talk("bot").ID, "begin")
		<-entered
		<-entered
		h.Want(http.StatusOK, nil, "POST", "/api/turns/"+turn.ID+"/cancel", nil)
		close(finish)
		Eventually(t, "both to have a result", func() bool {
			for _, op := range ListOperations(h) {
				if op.ResultID == "" {
					return false
				}
			}
			return true
		})
		if told := settled(t, h, GetTurn(h, turn.ID), true); told["now"].Content != "done" ||
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
	RunOnBothDatabases(t, script, []reeve.Tool{AsyncTool("send", reeve.Keyed, AnswerLater)},
		func(t *testing.T, h *reevetest.Host, _ *RecordingModel) {
			for range 10 {
				turn := StartTurn(h, h.Talk("bot").ID, "begin")
				op := awaits(h, turn.ID, 1)[0]
				var delivered, cancelled int
				var both sync.WaitGroup
				both.Go(func() {
					delivered = h.Do("POST", "/api/operations/"+op.ID+"/result", Object{"content": "JUST IN TIME"}).
						Status
				})
				both.Go(func() { cancelled = h.Do("POST", "/api/turns/"+turn.ID+"/cancel", nil).Status })
				both.Wait()
				d := WaitForTurn(h, turn.ID)
				told, is := settled(t, h, d, true)["send"], GetOperation(h, op.ID)
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
	tools := []reeve.Tool{Tool("look", reeve.Read, func(context.Context, *reeve.Invocation) (any, error) {
		entered <- struct{}{}
		<-finish
		return "seen", nil
	}), Tool("note", reeve.Local, func(context.Context, *reeve.Invocation) (any, error) { return "noted", nil }),
		AsyncTool("send", reeve.Keyed, AnswerLater)}
	script := "- {when: begin, calls: [{id: a, name: note, args: {}}]}\n- {when: {result: noted}, calls: [{id: a, " +
		"name: look, args: {}}, {id: b, name: send, args: {}}]}\n"
	RunOnBothDatabases(t, script, tools, func(t *testing.T, h *reevetest.Host, _ *RecordingModel) {
		finish = make(chan struct{})
		defer close(finish)
		turn := StartTurn(h, h.Talk("bot").ID, "begin")
		<-entered
		h.Want(http.StatusOK, nil, "POST", "/api/turns/"+turn.ID+"/cancel", nil)
		told := settled(t, h, GetTurn(h, turn.ID), false)
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
		tools = append(tools, Tool(string(effect), effect, func(ctx context.Context, _ *reeve.Invocation) (any, error) {
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
	Eventually(t, "the call of "+tool+" to be recorded", func() bool {
		clear(kinds)
		for _, m := range GetTurn(h, turn).Messages {
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
			h.Want(http.StatusNoContent, nil, "POST", "/api/stop", Object{"agent": "bot"})
		},
		"agent stopped and resumed": func(h *reevetest.Host, _ string) {
			h.Want(http.StatusNoContent, nil, "POST", "/api/stop", Object{"agent": "bot"})
			h.Want(http.StatusNoContent, nil, "POST", "/api/resume", Object{"agent": "bot"})
		},
		"everything stopped": func(h *reevetest.Host, _ string) {
			h.Want(http.StatusNoContent, nil, "POST", "/api/stop", Object{"reason": "a fire drill"})
		},
		"cancelled": func(h *reevetest.Host, turn string) {
			h.Want(http.StatusOK, nil, "POST", "/api/turns/"+turn+"/cancel", nil)
		},
	}
	script := ""
	for _, tool := range tools {
		script += "- {when: begin " + tool.ID + ", calls: [{name: " + tool.ID + ", args: {}}]}\n"
	}
	RunOnBothDatabases(t, script, tools, func(t *testing.T, h *reevetest.Host, _ *RecordingModel) {
		for way, end := range ways {
			for _, tool := range tools {
				finish = make(chan struct{})
				turn := StartTurn(h, h.Talk("bot").ID, "begin "+tool.ID)
				<-entered
				end(h, turn.ID)
				close(finish)
				WaitForTurn(h, turn.ID)
				recorded(t, h, turn.ID, tool.ID)
				settled(t, h, GetTurn(h, turn.ID), way == "cancelled")
				h.Want(http.StatusNoContent, nil, "POST", "/api/resume", Object{"agent": "bot"})
				h.Want(http.StatusNoContent, nil, "POST", "/api/resume", Object{})
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
	RunOnBothDatabases(t, script, tools, func(t *testing.T, h *reevetest.Host, _ *RecordingModel) {
		for _, tool := range tools {
			for _, c := range []struct {
				stop Object
				want string
			}{
				{Object{"agent": "bot"}, "the agent bot was stopped"},
				{Object{}, "everything in this workspace was stopped"},
				{Object{"reason": "a fire drill"}, "everything in this workspace was stopped: a fire drill"},
			} {
				finish = make(chan struct{})
				turn := StartTurn(h, h.Talk("bot").ID, "begin "+tool.ID)
				<-entered
				h.Want(http.StatusNoContent, nil, "POST", "/api/stop", c.stop)
				close(finish)
				if d := WaitForTurn(h, turn.ID); d.State != reeve.RunCancelled || d.Code != reeve.Stopped ||
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
	tools := []reeve.Tool{Tool("send", reeve.Keyed, func(context.Context, *reeve.Invocation) (any,
		error) {
		return "sent", nil
	})}
	RunOnBothDatabases(t, "- {when: begin, calls: [{name: send, args: {}}]}\n", tools,
		func(t *testing.T, h *reevetest.Host,
			_ *RecordingModel) {
			for end, status := range map[string]int{"DELETE": http.StatusNoContent, "PATCH": http.StatusOK} {
				a := h.Agent("asks", "send")
				UpdateAgent(h, a, Object{"policy": Object{"tools": Object{"send": "ask"}}})
				turn := StartTurn(h, h.Talk(a.ID).ID, "begin")
				WaitForTurnWhere(h, turn.ID, func(d api.TurnDetail) bool { return d.State == reeve.RunParked })
				var body any
				if end == "PATCH" {
					body = Object{"name": "gone", "lifecycle": "destroyed"}
				}
				h.Want(status, nil, end, "/api/agents/"+a.ID, body)
				if f := settled(t, h, GetTurn(h, turn.ID), false)["send"]; f.Code != reeve.Denied ||
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
		tools = append(tools, AsyncTool(string(effect), effect, func(ctx context.Context, inv *reeve.Invocation) (any,
			error) {
			entered <- struct{}{}
			<-finish
			return AnswerLater(ctx, inv)
		}))
	}
	script := "- {when: {result: EARLY}, text: 'It is done.'}\n- {when: EARLY, text: 'It is done.'}\n- {when: " +
		"{result: Started}, text: 'I have begun.'}\n"
	for _, tool := range tools {
		script += "- {when: begin " + tool.ID + ", calls: [{name: " + tool.ID + ", args: {}}]}\n"
	}
	RunOnBothDatabases(t, script, tools, func(t *testing.T, h *reevetest.Host, _ *RecordingModel) {
		for _, policy := range []string{"allow", "ask"} {
			for _, tool := range tools {
				finish = make(chan struct{})
				h.Want(http.StatusOK, nil, "PATCH", "/api/agents/bot",
					Object{"policy": Object{"tools": Object{tool.ID: policy}}})
				turn := StartTurn(h, h.Talk("bot").ID, "begin "+tool.ID)
				if policy == "ask" {
					var box api.Inbox
					Eventually(t, "a person to be asked", func() bool {
						h.Want(http.StatusOK, &box, "GET", "/api/inbox", nil)
						return len(box.Approvals) == 1
					})
					h.Want(http.StatusOK, nil, "POST", "/api/approvals/"+box.Approvals[0].ID+"/decision",
						Object{"decision": "approve"})
				}
				<-entered
				at := ""
				for _, op := range ListOperations(h) {
					if op.RunID == turn.ID {
						at = "/api/operations/" + op.ID
					}
				}
				var op reeve.Operation
				h.Want(http.StatusOK, &op, "POST", at+"/result", Object{"content": "EARLY"})
				h.Want(http.StatusConflict, nil, "POST", at+"/result", Object{"content": "TWICE"})
				close(finish)
				d := WaitForTurn(h, turn.ID)
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
				Object{"policy": Object{"tools": Object{tool.ID: "propose"}}})
			WaitForTurn(h, StartTurn(h, h.Talk("bot").ID, "begin "+tool.ID).ID)
			var made reeve.Proposal
			h.Want(http.StatusOK, &made, "POST", "/api/proposals/"+GetInbox(h).Proposals[0].ID+"/accept", Object{})
			<-entered
			h.Want(http.StatusOK, nil, "POST", "/api/operations/"+made.OperationID+"/result",
				Object{"content": "EARLY"})
			close(finish)
			if op := GetOperation(h, made.OperationID); op.State != reeve.Committed {
				t.Errorf("%s: %+v", tool.ID, op)
			}
		}
	})
}
