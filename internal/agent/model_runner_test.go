package agent

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"reeve"
	"reeve/internal/store"
	"reeve/model"
)

func newTool(id string, effect reeve.Effect, h func(inv *reeve.Invocation) (any, error)) reeve.Tool {
	t := reeve.Tool{ID: id, Description: "A tool for tests.", Effect: effect, Tier: reeve.SideEffecting,
		Parameters: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`),
		Handler:    func(_ context.Context, inv *reeve.Invocation) (any, error) { return h(inv) }}
	if effect == reeve.Read {
		t.Tier = reeve.ReadOnly
	}
	return t
}

func echo(inv *reeve.Invocation) (any, error) { return "got " + string(inv.Args), nil }

// checkWellFormed checks that a request is valid: roles alternate, and every call has exactly one result, in the next
// message.
func checkWellFormed(t *testing.T, r model.Request) {
	t.Helper()
	var open map[string]bool
	for i, m := range r.Messages {
		if i > 0 && m.Role == r.Messages[i-1].Role {
			t.Errorf("message %d: role %s follows itself", i, m.Role)
		}
		if m.Role == model.Assistant {
			open = map[string]bool{}
			for _, p := range m.Parts {
				if p.Type == model.ToolCall {
					open[p.ID] = true
				}
			}
			continue
		}
		for _, p := range m.Parts {
			if p.Type == model.Result {
				if !open[p.ID] {
					t.Errorf("message %d: result for %s, which is not an open call", i, p.ID)
				}
				delete(open, p.ID)
			}
		}
		if len(open) > 0 {
			t.Errorf("message %d: calls without a result: %v", i, open)
		}
	}
}

func TestW01_TextAnswer(t *testing.T) {
	t.Parallel()
	w := newHarness(t, `{"instructions":"You are {{who}}.","variables":{"who":"kind {{who}}"}}`, nil,
		textAnswer("Hello, Ann."))
	run := w.beginTurn("Hi!")
	w.runUntilIdle()
	got := w.getRun(run.ID)
	if got.State != reeve.RunCompleted || got.Output != "Hello, Ann." || got.ModelRequests != 1 ||
		got.Spent.Tokens != 15 ||
		got.Spent.Micros != 7 {
		t.Errorf("the turn ended as %+v", got)
	}
	r := w.lastRequest()
	if r.System != "You are kind {{who}}." {
		t.Errorf("instructions: %q; the value of a variable must be inserted literally", r.System)
	}
	if len(r.Messages) != 1 || r.Messages[0].Parts[0].Text != "Hi!" {
		t.Errorf("messages of the request: %+v", r.Messages)
	}
	f := w.listFrames()
	if len(f) != 1 || f[0].Type != reeve.FrameMessage || f[0].Text != "Hello, Ann." {
		t.Errorf("frames: %+v", f)
	}
}

func TestW03_TwoToolsInOneAnswer(t *testing.T) {
	t.Parallel()
	w := newHarness(t, `{}`, []reeve.Tool{newTool("look", reeve.Read, echo), newTool("write", reeve.Keyed, echo)},
		callAnswer("look", `{"n":1}`, "write", `{"n":2}`), textAnswer("Done."))
	run := w.beginTurn("Do both.")
	w.runUntilIdle()
	if got := w.getRun(run.ID); got.State != reeve.RunCompleted || got.ModelRequests != 2 ||
		len(w.model.requests) != 2 {
		t.Fatalf("the turn ended as %+v after %d requests", got, len(w.model.requests))
	}
	r := w.lastRequest()
	checkWellFormed(t, r)
	results := r.Messages[len(r.Messages)-1].Parts
	if len(results) != 2 || results[0].Text != `got {"n":1}` || results[1].Text != `got {"n":2}` {
		t.Errorf("results in the request: %+v", results)
	}
}

func TestW04_AsyncResultComesLater(t *testing.T) {
	t.Parallel()
	slow := newTool("slow", reeve.Read, echo)
	slow.Async = true
	w := newHarness(t, `{}`, []reeve.Tool{slow}, callAnswer("slow", `{"n":7}`), textAnswer("Started."),
		textAnswer("The result is 7."))
	run := w.beginTurn("Start it.")
	runs, _, err := w.scheduler.Step(t.Context(), 8)
	w.must(err)
	for _, r := range runs {
		w.scheduler.Serve(t.Context(), r)
	}
	if got := w.getRun(run.ID); got.State != reeve.RunParked || got.Output != "Started." {
		t.Fatalf("turn before the result: %+v", got)
	}
	if r := w.lastRequest(); !strings.Contains(r.Messages[len(r.Messages)-1].Parts[0].Text, "later") {
		t.Errorf("results in the request: %+v", r.Messages)
	}
	w.must(w.db.View(t.Context(), func(s *store.Snap) error {
		l, err := readRun(t.Context(), s, run)
		if err == nil && (len(l.awaitedCalls()) != 1 || !slices.Equal(l.lastAnswer().unseenCalls, l.awaitedCalls())) {
			t.Errorf("the answer records unseen calls %v, want %v", l.lastAnswer().unseenCalls, l.awaitedCalls())
		}
		return err
	}))
	w.runUntilIdle()
	if got := w.getRun(run.ID); got.State != reeve.RunCompleted || got.Output != "The result is 7." ||
		got.ModelRequests != 3 {
		t.Fatalf("turn after the result: %+v", got)
	}
	r := w.lastRequest()
	checkWellFormed(t, r)
	if text := r.Messages[len(r.Messages)-1].Parts[0].Text; !strings.Contains(text, `got {"n":7}`) {
		t.Errorf("last message: %q", text)
	}
	var types []string
	for _, f := range w.listFrames() {
		types = append(types, string(f.Type))
	}
	if got := strings.Join(types, " "); got != "tool_started message_complete tool_result message_complete" {
		t.Errorf("frames: %s", got)
	}
}

func TestW06_InvalidCallsAreReportedToModel(t *testing.T) {
	t.Parallel()
	w := newHarness(t, `{}`, []reeve.Tool{newTool("look", reeve.Read, echo)},
		callAnswer("look", `{"n":"x"}`, "nosuch", `{}`), textAnswer("I see."))
	run := w.beginTurn("Try.")
	w.runUntilIdle()
	if got := w.getRun(run.ID); got.State != reeve.RunCompleted || got.Issues.ToolFailures != 2 {
		t.Fatalf("the turn ended as %+v", got)
	}
	r := w.lastRequest()
	checkWellFormed(t, r)
	results := r.Messages[len(r.Messages)-1].Parts
	if !results[0].IsError || !strings.Contains(results[0].Text, "/n") || !results[1].IsError ||
		!strings.Contains(results[1].Text, "nosuch") {
		t.Errorf("results in the request: %+v", results)
	}
}

func TestW09_AssemblyFailureFailsTurn(t *testing.T) {
	t.Parallel()
	w := newHarness(t, `{}`, nil, textAnswer("never"))
	w.runner.Assemble = assemblerFunc(func() error { return errors.New("failed") })
	run := w.beginTurn("Hi")
	w.runUntilIdle()
	if got := w.getRun(run.ID); got.State != reeve.RunFailed || got.Code != reeve.AssemblyFailed ||
		len(w.model.requests) != 0 {
		t.Fatalf("the turn ended as %+v after %d requests", got, len(w.model.requests))
	}
}

func TestW09_ExtractionFailureIsRecorded(t *testing.T) {
	t.Parallel()
	w := newHarness(t, `{}`, nil, textAnswer("Hello."))
	var n atomic.Int64
	w.runner.Extract = extractorFunc(func() error { n.Add(1); return errors.New("failed") })
	run := w.beginTurn("Hi")
	w.runUntilIdle()
	if got := w.getRun(run.ID); got.State != reeve.RunCompleted || !got.Issues.ExtractionFailed || n.Load() != 3 {
		t.Fatalf("the turn ended as %+v after %d attempts", got, n.Load())
	}
}

// assemblerFunc is an assembler that returns the error of a function.
type assemblerFunc func() error

func (f assemblerFunc) Assemble(context.Context, AssemblyInput) (model.Request, error) {
	return model.Request{}, f()
}

// extractorFunc is an extractor that returns the error of a function.
type extractorFunc func() error

func (f extractorFunc) Extract(context.Context, ExtractionInput) ([]string, error) { return nil, f() }

func TestW20_MovesAreLimited(t *testing.T) {
	t.Parallel()
	again := callAnswer("look", `{}`)
	w := newHarness(t, `{"max_model_requests":2}`, []reeve.Tool{newTool("look", reeve.Read, echo)}, again, again,
		textAnswer("Enough."))
	run := w.beginTurn("Loop.")
	w.runUntilIdle()
	if got := w.getRun(run.ID); got.State != reeve.RunCompleted || got.Code != reeve.StepLimit ||
		got.Output != "Enough." || !got.Issues.LimitReached {
		t.Fatalf("the turn ended as %+v", got)
	}
	if w.lastRequest().Choice != model.NoCall {
		t.Error("the request for the final answer allows tool calls")
	}
}

func TestW20_ModelNeverStops(t *testing.T) {
	t.Parallel()
	again := callAnswer("look", `{}`)
	w := newHarness(t, `{"max_model_requests":2}`, []reeve.Tool{newTool("look", reeve.Read, echo)}, again, again, again,
		textAnswer("Hello again."))
	run := w.beginTurn("Loop.")
	w.runUntilIdle()
	if got := w.getRun(run.ID); got.State != reeve.RunFailed || got.Code != reeve.StepLimit {
		t.Fatalf("the turn ended as %+v", got)
	}
	next := w.beginTurn("Still there?")
	w.runUntilIdle()
	if got := w.getRun(next.ID); got.State != reeve.RunCompleted {
		t.Fatalf("the next turn ended as %+v", got)
	}
	checkWellFormed(t, w.lastRequest())
}

// TestW20_TurnOfManyMessages checks that a run with many messages continues at its end, and that its moves are limited.
func TestW20_TurnOfManyMessages(t *testing.T) {
	t.Parallel()
	w := newHarness(t, `{"max_model_requests":2}`, []reeve.Tool{newTool("look", reeve.Read, echo)},
		callAnswer("look", `{"n":1}`),
		callAnswer("look", `{"n":2}`), textAnswer("Enough."))
	run := w.beginTurn("Look everywhere.")
	w.update(func(tx *store.Tx) error {
		for range 5000 {
			if err := tx.Ledger().AppendMessage(t.Context(), reeve.Message{ID: tx.NewID(reeve.PrefixMessage),
				WorkspaceID: home, ThreadID: run.ThreadID, AgentID: w.agent.ID, RunID: run.ID,
				Kind: reeve.Thought, Content: "hm", Metadata: []byte("{}")}); err != nil {
				return err
			}
		}
		return nil
	})
	w.runUntilIdle()
	if got := w.getRun(run.ID); got.State != reeve.RunCompleted || got.Code != reeve.StepLimit ||
		got.Output != "Enough." || got.ModelRequests != 3 {
		t.Fatalf("the turn ended as %+v after %d requests", got, len(w.model.requests))
	}
	checkWellFormed(t, w.lastRequest())
	if got := renderParts(w.lastRequest()); !strings.Contains(got, `got {"n":1}`) ||
		!strings.Contains(got, `got {"n":2}`) {
		t.Errorf("the request is %s", got)
	}
}

func TestG14_ApprovalParksAndResumesTurn(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	risky := newTool("risky", reeve.Unsafe, func(*reeve.Invocation) (any, error) {
		n.Add(1)
		return "action done", nil
	})
	risky.Tier = reeve.Privileged
	w := newHarness(t, `{}`, []reeve.Tool{risky, newTool("look", reeve.Read, echo)},
		callAnswer("risky", `{}`, "look", `{"n":1}`),
		textAnswer("All done."))
	run := w.beginTurn("Do it.")
	w.runUntilIdle()
	if got := w.getRun(run.ID); got.State != reeve.RunParked || len(w.model.requests) != 1 || n.Load() != 0 {
		t.Fatalf("turn before the approval: %+v", got)
	}
	f := w.listFrames()
	approval := f[len(f)-1]
	if approval.Type != reeve.FrameApproval || approval.ApprovalID == "" {
		t.Fatalf("frames: %+v", approval)
	}
	w.restart([]reeve.Tool{risky, newTool("look", reeve.Read, echo)}) // the server restarts
	if _, err := w.gate.Inbox.DecideApproval(t.Context(), home, approval.ApprovalID, true, "ann", "", ""); err != nil {
		t.Fatal(err)
	}
	w.runUntilIdle()
	if got := w.getRun(run.ID); got.State != reeve.RunCompleted || got.Output != "All done." || n.Load() != 1 {
		t.Fatalf("turn after the approval: %+v; the tool ran %d times", got, n.Load())
	}
	r := w.lastRequest()
	checkWellFormed(t, r)
	results := r.Messages[len(r.Messages)-1].Parts
	if len(results) != 2 || results[0].Text != "action done" || results[1].Text != `got {"n":1}` {
		t.Errorf("results in the request: %+v", results)
	}
}

func TestL09_RestartReplaysPlan(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	write := newTool("write", reeve.Keyed, func(*reeve.Invocation) (any, error) { n.Add(1); return "written", nil })
	w := newHarness(t, `{}`, []reeve.Tool{write}, callAnswer("write", `{"n":1}`, "write", `{"n":2}`),
		textAnswer("Done."))
	run := w.beginTurn("Write twice.")
	// The server stops between the result of the first call and the second call.
	v := &modelRun{runInfo: runInfo{ModelRunner: w.runner, run: run, agent: w.agent}, isClientTool: map[string]bool{},
		deferred: map[string]bool{}, reportedResults: map[string]bool{}}
	var err error
	v.set, err = readSettings(w.agent.Config)
	w.must(err)
	w.must(v.readLog(t.Context()))
	if end := v.step(t.Context()); end != nil {
		t.Fatalf("the request ended the turn: %+v", end)
	}
	w.must(v.readLog(t.Context()))
	if end := v.callTools(t.Context(), v.openCalls(v.log.lastAnswer())[:1]); end != nil {
		t.Fatalf("the first call ended the turn: %+v", end)
	}
	w.restart([]reeve.Tool{write})
	w.runUntilIdle()
	if got := w.getRun(run.ID); got.State != reeve.RunCompleted || got.Attempts != 2 || n.Load() != 2 ||
		len(w.model.requests) != 2 {
		t.Fatalf("the turn ended as %+v, with %d effects and %d requests", got, n.Load(), len(w.model.requests))
	}
	checkWellFormed(t, w.lastRequest())
	var actions int
	w.must(w.db.View(t.Context(), func(s *store.Snap) error {
		list, err := s.Ledger().RunMessages(t.Context(), home, run.ID, "", 100)
		for _, m := range list {
			if m.Kind == reeve.Action {
				actions++
			}
		}
		return err
	}))
	if actions != 2 {
		t.Errorf("%d actions were recorded", actions)
	}
}

func TestW02_RecentAndActiveTurns(t *testing.T) {
	t.Parallel()
	slow := newTool("slow", reeve.Read, echo)
	slow.Async = true
	w := newHarness(t, `{"recent_turns":2}`, []reeve.Tool{slow}, textAnswer("one"), textAnswer("two"),
		textAnswer("three"),
		callAnswer("slow", `{}`), textAnswer("begun"), textAnswer("five"))
	for _, text := range []string{"first", "second", "third"} {
		w.beginTurn(text)
		w.runUntilIdle()
	}
	w.beginTurn("fourth, slow")
	runs, _, err := w.scheduler.Step(t.Context(), 8)
	w.must(err)
	for _, r := range runs {
		w.scheduler.Serve(t.Context(), r)
	}
	w.beginTurn("fifth")
	runs, _, err = w.scheduler.Step(t.Context(), 8)
	w.must(err)
	for _, r := range runs {
		w.scheduler.Serve(t.Context(), r)
	}
	r := w.lastRequest()
	checkWellFormed(t, r)
	var texts []string
	for _, m := range r.Messages {
		texts = append(texts, m.Parts[0].Text)
	}
	if got := strings.Join(texts, "|"); got != "second|two|third|three|fifth" {
		t.Errorf("the request is %s", got)
	}
	if !strings.Contains(r.System, "fourth, slow") || !strings.Contains(r.System, "waits for slow") {
		t.Errorf("the system prompt lacks the active turn: %q", r.System)
	}
	if len(r.Tools) != 1 || r.Tools[0].Name != "slow" || !strings.Contains(r.Tools[0].Description, "later") {
		t.Errorf("tools: %+v", r.Tools)
	}
}

func TestG17_ModelExceedsBudget(t *testing.T) {
	t.Parallel()
	w := newHarness(t, `{"max_tokens":100}`, nil, textAnswer("Hello."), textAnswer("Hello."))
	w.update(func(tx *store.Tx) error {
		return tx.Ledger().PutBudget(t.Context(), home, reeve.Budget{Subject: "agent:" + w.agent.ID,
			OnExceed: reeve.EndOverBudget, Limit: reeve.Amount{Tokens: 110}})
	})
	first, second := w.beginTurn("Hi"), reeve.Run{}
	w.runUntilIdle()
	if got := w.getRun(first.ID); got.State != reeve.RunCompleted {
		t.Fatalf("the first turn ended as %+v", got)
	}
	second = w.beginTurn("Hi again")
	w.runUntilIdle()
	if got := w.getRun(second.ID); got.State != reeve.RunFailed || got.Code != reeve.BudgetExceeded ||
		len(w.model.requests) != 1 {
		t.Fatalf("the second turn ended as %+v", got)
	}
}
