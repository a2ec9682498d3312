package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"reeve"
	"reeve/internal/store"
	"reeve/model"
)

// countResults counts the call results in a request.
func countResults(r model.Request) (n int) {
	for _, m := range r.Messages {
		for _, p := range m.Parts {
			if p.Type == model.Result {
				n++
			}
		}
	}
	return n
}

// repeatedCalls returns an answer that calls a tool n times.
func repeatedCalls(tool string, n int) answerFunc {
	var pairs []string
	for range n {
		pairs = append(pairs, tool, `{"n":1}`)
	}
	return callAnswer(pairs...)
}

// TestW02_TurnOfManyCallsIsShown checks that a turn that fits is shown in full, whatever the number of its calls.
func TestW02_TurnOfManyCallsIsShown(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		turns int
		each  []int // number of calls of each previous turn
	}{
		{1, []int{20}}, {3, []int{32, 32, 32}}, {5, []int{64}}, {3, []int{0, 40, 0}}, {1, []int{50, 150}},
	} {
		for _, restart := range []bool{false, true} {
			t.Run(fmt.Sprint(c.turns, c.each, restart), func(t *testing.T) {
				tools := []reeve.Tool{newTool("look", reeve.Read, echo), newTool("write", reeve.Local, echo)}
				w := newHarness(t, fmt.Sprintf(`{"recent_turns":%d}`, c.turns), tools)
				want := 0
				for i, n := range c.each {
					for k, tool := range []string{"look", "write"} {
						if part := n / 2; part > 0 {
							w.model.answers = append(w.model.answers, repeatedCalls(tool, part+k*(n%2)))
						}
					}
					w.model.answers = append(w.model.answers, textAnswer(fmt.Sprint("answer ", i)))
					w.beginTurn(fmt.Sprint("question ", i))
					w.runUntilIdle()
					if i >= len(c.each)-c.turns {
						want += n
					}
				}
				if restart {
					w.restart(tools)
				}
				w.model.answers = append(w.model.answers, textAnswer("fine"))
				w.beginTurn("and now?")
				w.runUntilIdle()
				r := w.lastRequest()
				checkWellFormed(t, r)
				if got := countResults(r); got != want {
					t.Errorf("the request has %d results, want %d", got, want)
				}
				for i := max(0, len(c.each)-c.turns); i < len(c.each); i++ {
					if got := renderParts(r); !strings.Contains(got, fmt.Sprint("question ", i)) ||
						!strings.Contains(got, fmt.Sprint("answer ", i)) {
						t.Errorf("turn %d is not in %s", i, got)
					}
				}
			})
		}
	}
}

// insertPastTurn stores a completed turn of an agent, with calls and results of the given number and size.
func (w *harness) insertPastTurn(agent string, calls, bytes int) {
	w.t.Helper()
	w.update(func(tx *store.Tx) error {
		ctx := w.t.Context()
		run := reeve.Run{ID: tx.NewID(reeve.PrefixRun), WorkspaceID: home, AgentID: agent, Reason: reeve.ReasonUser,
			SessionID: w.conversation.ID, UserID: "ann", Input: "do it all",
			ThreadID: w.conversation.ThreadID(), State: reeve.RunRunning, Wakes: 1, Attempts: 1,
			Owner: w.gate.Process(), StartedAt: tx.Now()}
		run.Key = reeve.DeriveID("wake", run.ID)
		if _, err := tx.Runs().InsertRun(ctx, run); err != nil {
			return err
		}
		ws, err := tx.Agents().GetWorkspace(ctx, home)
		if err != nil {
			return err
		}
		last := ""
		write := func(kind reeve.MessageKind, content string, info any) error {
			meta, err := json.Marshal(info)
			if err != nil {
				return err
			}
			last = tx.NewID(reeve.PrefixMessage)
			return tx.Ledger().AppendMessage(ctx, reeve.Message{ID: last, WorkspaceID: home, ThreadID: run.ThreadID,
				AgentID: agent, RunID: run.ID, Kind: kind, Content: content, Metadata: meta})
		}
		answer := func(text string, parts ...model.Part) error {
			return write(reeve.Thought, text, map[string]any{"type": answerType, "seen": last,
				"answer": model.Answer{Parts: parts}})
		}
		if err := write(reeve.UserMessage, run.Input, reeve.MessageInfo{Type: "said", User: "ann"}); err != nil {
			return err
		}
		for range calls {
			if err := answer("", model.Part{Type: model.ToolCall, ID: "c", Name: "look", Args: json.RawMessage("{}")}); err != nil {
				return err
			}
			op := reeve.Operation{WorkspaceID: home, ThreadID: run.ThreadID, AgentID: agent, RunID: run.ID,
				CallID: tx.NewID(reeve.PrefixMessage), Tool: "look"}
			last = tx.NewID(reeve.PrefixMessage)
			c := store.Call{Operation: op, Args: "{}", Request: []byte(`{"type":"tool_call","tool":"look","ref":"c"}`),
				Result: &store.CallResult{ID: last, Content: strings.Repeat("x", bytes),
					Info: []byte(`{"status":"success"}`)}}
			if err := tx.Ledger().InsertCall(ctx, c, store.Preconditions{Revision: ws.Revision}); err != nil {
				return err
			}
		}
		is := run
		is.State, is.Output, is.Owner = reeve.RunCompleted, "all done", ""
		return errors.Join(answer(is.Output, model.Part{Type: model.Text, Text: is.Output}),
			tx.Runs().TransitionRun(ctx, run, is))
	})
}

// TestL13_TurnOfTooManyCallsIsShortened checks that a turn that does not fit is reduced to its input and output, and
// that the number of messages read is bounded.
func TestL13_TurnOfTooManyCallsIsShortened(t *testing.T) {
	for _, c := range []struct {
		agent        string
		calls, bytes int
		answer       string
	}{
		{"agt_one", 10_000, 10, "all done"}, {"agt_one", 3000, 8000, "all done"},
		{"agt_two", 3000, 8000, "[agt_two] all done"}, {"agt_two", 200, 8000, "[agt_two] all done"},
	} {
		w := newHarness(t, `{"context_tokens":3000}`, nil, textAnswer("short"), textAnswer("fine"))
		w.beginTurn("before")
		w.runUntilIdle()
		w.insertPastTurn(c.agent, c.calls, c.bytes)
		w.beginTurn("and now?")
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		w.runUntilIdle()
		runtime.ReadMemStats(&after)
		checkWellFormed(t, w.lastRequest())
		if got := renderParts(w.lastRequest()); got != "before|short|do it all|"+c.answer+"|and now?" {
			t.Errorf("%+v: the request is %s", c, got)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 16<<20 {
			t.Errorf("%+v: allocated %d MB", c, took>>20)
		}
	}
}

// TestL13_TurnThatJustFits checks that a turn of exactly the available size is shown in full.
func TestL13_TurnThatJustFits(t *testing.T) {
	t.Parallel()
	w := newHarness(t, `{"context_tokens":8012,"recent_turns":1}`, nil, textAnswer("fine"))
	// each call has two parts of four tokens; the user message and the answer have six tokens each
	w.insertPastTurn("agt_one", 1000, 0)
	w.beginTurn("and now?")
	w.runUntilIdle()
	checkWellFormed(t, w.lastRequest())
	if got := countResults(w.lastRequest()); got != 1000 {
		t.Errorf("the request has %d results, want 1000", got)
	}
}
