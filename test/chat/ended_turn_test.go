package chat_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
	"reeve/test/kit"
)

// waitForPendingCalls waits until n calls of a turn wait for an outcome and the turn is parked, and returns the
// operations.
func waitForPendingCalls(h *reevetest.Host, turn string, n int) (list []reeve.Operation) {
	h.T.Helper()
	kit.WaitForTurnWhere(h, turn, func(d api.TurnDetail) bool {
		list = nil
		for _, op := range kit.ListOperations(h) {
			if op.RunID == turn && op.IsAwaited() {
				list = append(list, op)
			}
		}
		return len(list) == n && d.State == reeve.RunParked
	})
	return list
}

// checkResults checks that every call of an ended turn has one result in its messages and one in its frames, and
// returns the frames of results by tool. Unless late is set, results precede the end of the turn.
func checkResults(t *testing.T, h *reevetest.Host, d api.TurnDetail, late bool) map[string]reeve.Frame {
	t.Helper()
	kit.CheckTurn(t, h, d)
	results, begun, over := map[string]reeve.Frame{}, 0, false
	for _, f := range kit.ListFrames(h, d.ConversationID) {
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

// When a turn ends, its pending calls are resolved and reported. A later outcome changes nothing.
func TestW10_EndedTurnResolvesPendingCalls(t *testing.T) {
	t.Parallel()
	ways := map[string]func(h *reevetest.Host, turn string){
		"cancelled": func(h *reevetest.Host, turn string) {
			h.Want(http.StatusOK, nil, "POST", "/api/turns/"+turn+"/cancel", nil)
		},
		"run cancelled": func(h *reevetest.Host, turn string) {
			h.Want(http.StatusOK, nil, "POST", "/api/runs/"+turn+"/cancel", nil)
		},
		"agent destroyed": func(h *reevetest.Host, _ string) {
			h.Want(http.StatusOK, nil, "PATCH", "/api/agents/bot", kit.Object{"lifecycle": "destroyed"})
		},
		"agent removed": func(h *reevetest.Host, _ string) {
			h.Want(http.StatusNoContent, nil, "DELETE", "/api/agents/bot", nil)
		},
	}
	tools := []reeve.Tool{kit.AsyncTool("look", reeve.Read, kit.AnswerLater),
		kit.AsyncTool("send", reeve.Keyed, kit.AnswerLater),
		kit.AsyncTool("check", reeve.Verifiable, kit.AnswerLater), kit.AsyncTool("shoot", reeve.Unsafe,
			kit.AnswerLater)}
	script := "- {when: begin, calls: [{name: look, args: {}}, {name: send, args: {}}, {name: check, args: {}}, " +
		"{name: shoot, args: {}}]}\n- {when: {result: Started}, text: 'I have begun.'}\n- {when: hello, text: 'Still " +
		"here.'}\n"
	for way, end := range ways {
		t.Run(way, func(t *testing.T) {
			kit.RunOnBothDatabases(t, script, tools, func(t *testing.T, h *reevetest.Host, heard *kit.RecordingModel) {
				c := h.StartConversation("bot")
				turn := kit.StartTurn(h, c.ID, "begin")
				open := waitForPendingCalls(h, turn.ID, len(tools))
				end(h, turn.ID)
				d := kit.GetTurn(h, turn.ID)
				if d.State != reeve.RunCancelled {
					t.Fatalf("%+v", d.Turn)
				}
				told := checkResults(t, h, d, false)
				for id, f := range told {
					if !f.IsError || !strings.Contains(f.Content, "the turn was cancelled before its outcome came") ||
						strings.Contains(f.Content, "not known") != (id != "look") {
						t.Errorf("%+v", f)
					}
				}
				for _, op := range open {
					is := kit.GetOperation(h, op.ID)
					if want := map[bool]reeve.State{true: reeve.Failed, false: reeve.Unknown}[op.Tool == "look"]; is.State != want || is.ResultID == "" ||
						is.TimeoutAt != nil || is.NextAttemptAt != nil {
						t.Errorf("%+v", is)
					}
					var p api.Problem
					h.Want(http.StatusConflict, &p, "POST", "/api/operations/"+op.ID+"/result",
						kit.Object{"content": "LATE"})
					if p.Code != reeve.Conflict || !strings.Contains(p.Detail, "the turn was cancelled") {
						t.Errorf("%+v", p)
					}
				}
				var box api.Inbox
				if h.Want(http.StatusOK, &box, "GET", "/api/inbox", nil); len(box.Unknown) != 0 {
					t.Errorf("a person is asked: %+v", box.Unknown)
				}
				if again := kit.GetTurn(h, turn.ID); len(again.Messages) != len(d.Messages) {
					t.Error("a late outcome changed the turn")
				}
				if strings.HasPrefix(way, "agent") {
					return
				}
				if kit.WaitForTurn(h, kit.StartTurn(h, c.ID, "hello").ID); strings.Contains(heard.LastPrompt(""),
					"LATE") {
					t.Errorf("the model was told %s", heard.LastPrompt(""))
				}
			})
		})
	}
}

// A turn that fails, or that hands over to its client, does not wait either.
func TestW10_FailedTurnResolvesPendingCalls(t *testing.T) {
	t.Parallel()
	script := "- {when: begin, calls: [{name: send, args: {}}]}\n- {when: {result: Started}, fail: {status: 400, " +
		"message: broken}}\n"
	kit.RunOnBothDatabases(t, script, []reeve.Tool{kit.AsyncTool("send", reeve.Keyed, kit.AnswerLater)},
		func(t *testing.T, h *reevetest.Host, _ *kit.RecordingModel) {
			turn := kit.WaitForTurn(h, kit.StartTurn(h, h.StartConversation("bot").ID, "begin").ID)
			var op reeve.Operation
			kit.Eventually(t, "the call to be settled",
				func() bool { op = kit.ListOperations(h)[0]; return op.ResultID != "" })
			d := kit.GetTurn(h, turn.ID)
			if told := checkResults(t, h, d, true); d.State != reeve.RunFailed || !strings.Contains(told["send"].Content,
				"the turn failed before") {
				t.Errorf("%+v", told)
			}
			h.Want(http.StatusConflict, nil, "POST", "/api/operations/"+op.ID+"/result", kit.Object{"content": "LATE"})
		})
}

// A request in progress when its turn is cancelled is recorded and reported when it is over. If its outcome comes
// later, nobody waits for it.
func TestW10_CallInProgressDuringACancel(t *testing.T) {
	t.Parallel()
	entered, finish := make(chan struct{}, 2), make(chan struct{})
	handle := func(answer func() (any, error)) reeve.Handler {
		return func(context.Context, *reeve.Invocation) (any, error) {
			entered <- struct{}{}
			<-finish
			return answer()
		}
	}
	tools := []reeve.Tool{kit.AsyncTool("now", reeve.Keyed, handle(func() (any, error) { return "done", nil })),
		kit.AsyncTool("later", reeve.Keyed, handle(func() (any, error) { return kit.AnswerLater(t.Context(), nil) }))}
	script := "- {when: begin, calls: [{name: now, args: {}}, {name: later, args: {}}]}\n- {when: {result: Started}, " +
		"text: 'I have begun.'}\n"
	kit.RunOnBothDatabases(t, script, tools, func(t *testing.T, h *reevetest.Host, _ *kit.RecordingModel) {
		finish = make(chan struct{})
		turn := kit.StartTurn(h, h.StartConversation("bot").ID, "begin")
		<-entered
		<-entered
		h.Want(http.StatusOK, nil, "POST", "/api/turns/"+turn.ID+"/cancel", nil)
		close(finish)
		kit.Eventually(t, "both to have a result", func() bool {
			for _, op := range kit.ListOperations(h) {
				if op.ResultID == "" {
					return false
				}
			}
			return true
		})
		if told := checkResults(t, h, kit.GetTurn(h, turn.ID), true); told["now"].Content != "done" ||
			!strings.Contains(told["later"].Content, "the turn was cancelled") {
			t.Errorf("%+v", told)
		}
	})
}

// An outcome that arrives while its turn is cancelled counts or is refused. The turn has one result, which its clients
// get.
func TestW10_AnOutcomeAndACancelAtOnce(t *testing.T) {
	t.Parallel()
	script := "- {when: begin, calls: [{name: send, args: {}}]}\n- {when: has arrived, text: 'It is done.'}\n- {when: " +
		"{result: Started}, text: 'I have begun.'}\n"
	kit.RunOnBothDatabases(t, script, []reeve.Tool{kit.AsyncTool("send", reeve.Keyed, kit.AnswerLater)},
		func(t *testing.T, h *reevetest.Host, _ *kit.RecordingModel) {
			for range 10 {
				turn := kit.StartTurn(h, h.StartConversation("bot").ID, "begin")
				op := waitForPendingCalls(h, turn.ID, 1)[0]
				var delivered, cancelled int
				var both sync.WaitGroup
				both.Go(func() {
					delivered = h.Do("POST", "/api/operations/"+op.ID+"/result", kit.Object{"content": "JUST IN TIME"}).
						Status
				})
				both.Go(func() { cancelled = h.Do("POST", "/api/turns/"+turn.ID+"/cancel", nil).Status })
				both.Wait()
				d := kit.WaitForTurn(h, turn.ID)
				told, is := checkResults(t, h, d, true)["send"], kit.GetOperation(h, op.ID)
				counts := delivered == http.StatusOK
				if delivered != http.StatusOK && delivered != http.StatusConflict ||
					(told.Content == "JUST IN TIME") != counts || (is.State == reeve.Committed) != counts {
					t.Errorf("delivered %d, cancelled %d: %+v, %+v", delivered, cancelled, is, told)
				}
			}
		})
}

// A call that the model requested and that was executing or had not begun when its turn was cancelled is reported as
// not made, with the end of the turn.
func TestW21_UnrecordedCallsEndWithTheirTurn(t *testing.T) {
	t.Parallel()
	entered, finish := make(chan struct{}, 1), make(chan struct{})
	tools := []reeve.Tool{kit.Tool("look", reeve.Read, func(context.Context, *reeve.Invocation) (any, error) {
		entered <- struct{}{}
		<-finish
		return "seen", nil
	}), kit.Tool("note", reeve.Local, func(context.Context, *reeve.Invocation) (any, error) { return "noted", nil }),
		kit.AsyncTool("send", reeve.Keyed, kit.AnswerLater)}
	script := "- {when: begin, calls: [{id: a, name: note, args: {}}]}\n- {when: {result: noted}, calls: [{id: a, " +
		"name: look, args: {}}, {id: b, name: send, args: {}}]}\n"
	kit.RunOnBothDatabases(t, script, tools, func(t *testing.T, h *reevetest.Host, _ *kit.RecordingModel) {
		finish = make(chan struct{})
		defer close(finish)
		turn := kit.StartTurn(h, h.StartConversation("bot").ID, "begin")
		<-entered
		h.Want(http.StatusOK, nil, "POST", "/api/turns/"+turn.ID+"/cancel", nil)
		told := checkResults(t, h, kit.GetTurn(h, turn.ID), false)
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

// newSlowTools returns tools that report when a call begins. A read ends with its caller, the others when finish is
// closed.
func newSlowTools(entered chan<- struct{}, finish *chan struct{}) (tools []reeve.Tool) {
	for _, effect := range []reeve.Effect{reeve.Read, reeve.Keyed, reeve.Unsafe} {
		tools = append(tools, kit.Tool(string(effect), effect, func(ctx context.Context, _ *reeve.Invocation) (any,
			error) {
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

// checkRecorded checks that a call of a turn left one action and one result.
func checkRecorded(t *testing.T, h *reevetest.Host, turn, tool string) {
	t.Helper()
	kinds := map[reeve.MessageKind]int{}
	kit.Eventually(t, "the call of "+tool+" to be recorded", func() bool {
		clear(kinds)
		for _, m := range kit.GetTurn(h, turn).Messages {
			kinds[m.Kind]++
		}
		return kinds[reeve.ToolResult] > 0
	})
	if kinds[reeve.Action] != 1 || kinds[reeve.ToolResult] != 1 {
		t.Errorf("%s: %v", tool, kinds)
	}
}

// A call in progress when its turn ends is recorded and reported once, however the turn ends.
func TestW22_CallInProgressIsReportedOnce(t *testing.T) {
	t.Parallel()
	entered, finish := make(chan struct{}, 1), make(chan struct{})
	tools := newSlowTools(entered, &finish)
	ways := map[string]func(h *reevetest.Host, turn string){
		"agent stopped": func(h *reevetest.Host, _ string) {
			h.Want(http.StatusNoContent, nil, "POST", "/api/stop", kit.Object{"agent": "bot"})
		},
		"agent stopped and resumed": func(h *reevetest.Host, _ string) {
			h.Want(http.StatusNoContent, nil, "POST", "/api/stop", kit.Object{"agent": "bot"})
			h.Want(http.StatusNoContent, nil, "POST", "/api/resume", kit.Object{"agent": "bot"})
		},
		"everything stopped": func(h *reevetest.Host, _ string) {
			h.Want(http.StatusNoContent, nil, "POST", "/api/stop", kit.Object{"reason": "a fire drill"})
		},
		"cancelled": func(h *reevetest.Host, turn string) {
			h.Want(http.StatusOK, nil, "POST", "/api/turns/"+turn+"/cancel", nil)
		},
	}
	script := ""
	for _, tool := range tools {
		script += "- {when: begin " + tool.ID + ", calls: [{name: " + tool.ID + ", args: {}}]}\n"
	}
	kit.RunOnBothDatabases(t, script, tools, func(t *testing.T, h *reevetest.Host, _ *kit.RecordingModel) {
		for way, end := range ways {
			for _, tool := range tools {
				finish = make(chan struct{})
				turn := kit.StartTurn(h, h.StartConversation("bot").ID, "begin "+tool.ID)
				<-entered
				end(h, turn.ID)
				close(finish)
				kit.WaitForTurn(h, turn.ID)
				checkRecorded(t, h, turn.ID, tool.ID)
				checkResults(t, h, kit.GetTurn(h, turn.ID), way == "cancelled")
				h.Want(http.StatusNoContent, nil, "POST", "/api/resume", kit.Object{"agent": "bot"})
				h.Want(http.StatusNoContent, nil, "POST", "/api/resume", kit.Object{})
			}
		}
	})
}

// A turn that the kill switch ended says so, whatever it did at that moment.
func TestG23_ATurnThatIsStoppedSaysSo(t *testing.T) {
	t.Parallel()
	entered, finish := make(chan struct{}, 1), make(chan struct{})
	tools := newSlowTools(entered, &finish)
	script := ""
	for _, tool := range tools {
		script += "- {when: begin " + tool.ID + ", calls: [{name: " + tool.ID + ", args: {}}]}\n"
	}
	kit.RunOnBothDatabases(t, script, tools, func(t *testing.T, h *reevetest.Host, _ *kit.RecordingModel) {
		for _, tool := range tools {
			for _, c := range []struct {
				stop kit.Object
				want string
			}{
				{kit.Object{"agent": "bot"}, "the agent bot was stopped"},
				{kit.Object{}, "everything in this workspace was stopped"},
				{kit.Object{"reason": "a fire drill"}, "everything in this workspace was stopped: a fire drill"},
			} {
				finish = make(chan struct{})
				turn := kit.StartTurn(h, h.StartConversation("bot").ID, "begin "+tool.ID)
				<-entered
				h.Want(http.StatusNoContent, nil, "POST", "/api/stop", c.stop)
				close(finish)
				if d := kit.WaitForTurn(h, turn.ID); d.State != reeve.RunCancelled || d.Code != reeve.Stopped ||
					d.Message != c.want {
					t.Errorf("%s, %v: %s %s %q", tool.ID, c.stop, d.State, d.Code, d.Message)
				}
				delete(c.stop, "reason")
				h.Want(http.StatusNoContent, nil, "POST", "/api/resume", c.stop)
			}
		}
	})
}

// When an agent is removed, clients learn what became of its pending calls before its turns end.
func TestW21_RemovedAgentWithPendingApprovals(t *testing.T) {
	t.Parallel()
	tools := []reeve.Tool{kit.Tool("send", reeve.Keyed, func(context.Context, *reeve.Invocation) (any, error) {
		return "sent", nil
	})}
	kit.RunOnBothDatabases(t, "- {when: begin, calls: [{name: send, args: {}}]}\n", tools,
		func(t *testing.T, h *reevetest.Host, _ *kit.RecordingModel) {
			for end, status := range map[string]int{"DELETE": http.StatusNoContent, "PATCH": http.StatusOK} {
				a := h.Agent("asks", "send")
				kit.UpdateAgent(h, a, kit.Object{"policy": kit.Object{"tools": kit.Object{"send": "ask"}}})
				turn := kit.StartTurn(h, h.StartConversation(a.ID).ID, "begin")
				kit.WaitForTurnWhere(h, turn.ID, func(d api.TurnDetail) bool { return d.State == reeve.RunParked })
				var body any
				if end == "PATCH" {
					body = kit.Object{"name": "gone", "lifecycle": "destroyed"}
				}
				h.Want(status, nil, end, "/api/agents/"+a.ID, body)
				if f := checkResults(t, h, kit.GetTurn(h, turn.ID), false)["send"]; f.Code != reeve.Denied ||
					!strings.Contains(f.Content, "the agent was") {
					t.Errorf("%s: %+v", end, f)
				}
			}
		})
}

// The outcome of an asynchronous call arrives before the answer to its request. The outcome counts once.
func TestW13_AnOutcomeBeforeItsRequestIsAnswered(t *testing.T) {
	t.Parallel()
	entered, finish := make(chan struct{}, 1), make(chan struct{})
	var tools []reeve.Tool
	for _, effect := range []reeve.Effect{reeve.Read, reeve.Keyed, reeve.Verifiable, reeve.Unsafe} {
		tools = append(tools, kit.AsyncTool(string(effect), effect,
			func(ctx context.Context, inv *reeve.Invocation) (any, error) {
				entered <- struct{}{}
				<-finish
				return kit.AnswerLater(ctx, inv)
			}))
	}
	script := "- {when: {result: EARLY}, text: 'It is done.'}\n- {when: EARLY, text: 'It is done.'}\n- {when: " +
		"{result: Started}, text: 'I have begun.'}\n"
	for _, tool := range tools {
		script += "- {when: begin " + tool.ID + ", calls: [{name: " + tool.ID + ", args: {}}]}\n"
	}
	kit.RunOnBothDatabases(t, script, tools, func(t *testing.T, h *reevetest.Host, _ *kit.RecordingModel) {
		for _, policy := range []string{"allow", "ask"} {
			for _, tool := range tools {
				finish = make(chan struct{})
				h.Want(http.StatusOK, nil, "PATCH", "/api/agents/bot",
					kit.Object{"policy": kit.Object{"tools": kit.Object{tool.ID: policy}}})
				turn := kit.StartTurn(h, h.StartConversation("bot").ID, "begin "+tool.ID)
				if policy == "ask" {
					var box api.Inbox
					kit.Eventually(t, "a person to be asked", func() bool {
						h.Want(http.StatusOK, &box, "GET", "/api/inbox", nil)
						return len(box.Approvals) == 1
					})
					h.Want(http.StatusOK, nil, "POST", "/api/approvals/"+box.Approvals[0].ID+"/decision",
						kit.Object{"decision": "approve"})
				}
				<-entered
				at := ""
				for _, op := range kit.ListOperations(h) {
					if op.RunID == turn.ID {
						at = "/api/operations/" + op.ID
					}
				}
				var op reeve.Operation
				h.Want(http.StatusOK, &op, "POST", at+"/result", kit.Object{"content": "EARLY"})
				h.Want(http.StatusConflict, nil, "POST", at+"/result", kit.Object{"content": "TWICE"})
				close(finish)
				d := kit.WaitForTurn(h, turn.ID)
				if h.Want(http.StatusOK, &op, "GET", at, nil); op.State != reeve.Committed ||
					d.Output != "It is done." {
					t.Errorf("%s, %s: %+v, %+v", policy, tool.ID, op, d.Turn)
				}
				if f := checkResults(t, h, d, false)[tool.ID]; f.Content != "EARLY" {
					t.Errorf("%s, %s: %+v", policy, tool.ID, f)
				}
			}
		}
		for _, tool := range tools[1:] { // what was proposed is made when its turn is over
			finish = make(chan struct{})
			h.Want(http.StatusOK, nil, "PATCH", "/api/agents/bot",
				kit.Object{"policy": kit.Object{"tools": kit.Object{tool.ID: "propose"}}})
			kit.WaitForTurn(h, kit.StartTurn(h, h.StartConversation("bot").ID, "begin "+tool.ID).ID)
			var made reeve.Proposal
			h.Want(http.StatusOK, &made, "POST", "/api/proposals/"+kit.GetInbox(h).Proposals[0].ID+"/accept",
				kit.Object{})
			<-entered
			h.Want(http.StatusOK, nil, "POST", "/api/operations/"+made.OperationID+"/result",
				kit.Object{"content": "EARLY"})
			close(finish)
			if op := kit.GetOperation(h, made.OperationID); op.State != reeve.Committed {
				t.Errorf("%s: %+v", tool.ID, op)
			}
		}
	})
}
