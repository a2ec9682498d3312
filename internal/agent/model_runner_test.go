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

func tool(id string, effect reeve.Effect, h func(inv *reeve.Invocation) (any, error)) reeve.Tool {
	t := reeve.Tool{ID: id, Description: "A tool of a test.", Effect: effect, Tier: reeve.SideEffecting,
		Parameters: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`),
		Handler:    func(_ context.Context, inv *reeve.Invocation) (any, error) { return h(inv) }}
	if effect == reeve.Read {
		t.Tier = reeve.ReadOnly
	}
	return t
}

func echo(inv *reeve.Invocation) (any, error) { return "got " + string(inv.Args), nil }

// wellFormed checks that a request is valid: roles alternate, and every call has exactly one result, in the next
// message.
func wellFormed(t *testing.T, r model.Request) {
	t.Helper()
	var open map[string]bool
	for i, m := range r.Messages {
		if i > 0 && m.Role == r.Messages[i-1].Role {
			t.Errorf("message %d: %s speaks twice", i, m.Role)
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
					t.Errorf("message %d: a result for %s, which nobody asked for", i, p.ID)
				}
				delete(open, p.ID)
			}
		}
		if len(open) > 0 {
			t.Errorf("message %d: calls without a result: %v", i, open)
		}
	}
}

func TestW01_WordsOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `{"instructions":"You are {{who}}.","variables":{"who":"kind {{who}}"}}`, nil, says("Hello, Ann."))
	run := w.say("Hi!")
	w.work()
	got := w.turn(run.ID)
	if got.State != reeve.RunCompleted || got.Output != "Hello, Ann." || got.ModelRequests != 1 ||
		got.Spent.Tokens != 15 ||
		got.Spent.Micros != 7 {
		t.Errorf("the turn came to %+v", got)
	}
	r := w.last()
	if r.System != "You are kind {{who}}." {
		t.Errorf("the instructions became %q: a variable's value is inserted literally", r.System)
	}
	if len(r.Messages) != 1 || r.Messages[0].Parts[0].Text != "Hi!" {
		t.Errorf("the model was asked %+v", r.Messages)
	}
	f := w.frames()
	if len(f) != 1 || f[0].Type != reeve.FrameMessage || f[0].Text != "Hello, Ann." {
		t.Errorf("clients were told %+v", f)
	}
}

func TestW03_TwoToolsInOneAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `{}`, []reeve.Tool{tool("look", reeve.Read, echo), tool("write", reeve.Keyed, echo)},
		calls("look", `{"n":1}`, "write", `{"n":2}`), says("Done."))
	run := w.say("Do both.")
	w.work()
	if got := w.turn(run.ID); got.State != reeve.RunCompleted || got.ModelRequests != 2 || len(w.model.asked) != 2 {
		t.Fatalf("the turn came to %+v after %d questions", got, len(w.model.asked))
	}
	r := w.last()
	wellFormed(t, r)
	results := r.Messages[len(r.Messages)-1].Parts
	if len(results) != 2 || results[0].Text != `got {"n":1}` || results[1].Text != `got {"n":2}` {
		t.Errorf("the model was told %+v", results)
	}
}

func TestW04_AsyncResultComesLater(t *testing.T) {
	t.Parallel()
	slow := tool("slow", reeve.Read, echo)
	slow.Async = true
	w := newWorld(t, `{}`, []reeve.Tool{slow}, calls("slow", `{"n":7}`), says("I have begun."), says("It came to 7."))
	run := w.say("Start it.")
	runs, _, err := w.room.Step(t.Context(), 8)
	w.must(err)
	for _, r := range runs {
		w.room.Serve(t.Context(), r)
	}
	if got := w.turn(run.ID); got.State != reeve.RunParked || got.Output != "I have begun." {
		t.Fatalf("before the result the turn is %+v", got)
	}
	if r := w.last(); !strings.Contains(r.Messages[len(r.Messages)-1].Parts[0].Text, "later") {
		t.Errorf("the model was told %+v", r.Messages)
	}
	w.must(w.db.View(t.Context(), func(s *store.Snap) error {
		l, err := readRun(t.Context(), s, run)
		if err == nil && (len(l.awaitedCalls()) != 1 || !slices.Equal(l.lastAnswer().unseenCalls, l.awaitedCalls())) {
			t.Errorf("the answer says that it waits for %v, and %v is awaited",
				l.lastAnswer().unseenCalls, l.awaitedCalls())
		}
		return err
	}))
	w.work()
	if got := w.turn(run.ID); got.State != reeve.RunCompleted || got.Output != "It came to 7." ||
		got.ModelRequests != 3 {
		t.Fatalf("after the result the turn is %+v", got)
	}
	r := w.last()
	wellFormed(t, r)
	if news := r.Messages[len(r.Messages)-1].Parts[0].Text; !strings.Contains(news, `got {"n":7}`) {
		t.Errorf("the news was %q", news)
	}
	var types []string
	for _, f := range w.frames() {
		types = append(types, string(f.Type))
	}
	if got := strings.Join(types, " "); got != "tool_started message_complete tool_result message_complete" {
		t.Errorf("clients were told %s", got)
	}
}

func TestW06_BadInputReachesTheModel(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `{}`, []reeve.Tool{tool("look", reeve.Read, echo)}, calls("look", `{"n":"x"}`, "nosuch", `{}`),
		says("I see."))
	run := w.say("Try.")
	w.work()
	if got := w.turn(run.ID); got.State != reeve.RunCompleted || got.Issues.ToolFailures != 2 {
		t.Fatalf("the turn came to %+v", got)
	}
	r := w.last()
	wellFormed(t, r)
	results := r.Messages[len(r.Messages)-1].Parts
	if !results[0].IsError || !strings.Contains(results[0].Text, "/n") || !results[1].IsError ||
		!strings.Contains(results[1].Text, "nosuch") {
		t.Errorf("the model was told %+v", results)
	}
}

func TestW09_AssemblyFailingFailsTheTurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `{}`, nil, says("never"))
	w.think.Assemble = assembler(func() error { return errors.New("no luck") })
	run := w.say("Hi")
	w.work()
	if got := w.turn(run.ID); got.State != reeve.RunFailed || got.Code != reeve.AssemblyFailed ||
		len(w.model.asked) != 0 {
		t.Fatalf("the turn came to %+v after %d questions", got, len(w.model.asked))
	}
}

func TestW09_ExtractionFailingFlagsTheTurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `{}`, nil, says("Hello."))
	var n atomic.Int64
	w.think.Extract = extractor(func() error { n.Add(1); return errors.New("no luck") })
	run := w.say("Hi")
	w.work()
	if got := w.turn(run.ID); got.State != reeve.RunCompleted || !got.Issues.ExtractionFailed || n.Load() != 3 {
		t.Fatalf("the turn came to %+v after %d tries", got, n.Load())
	}
}

type assembler func() error

func (f assembler) Assemble(context.Context, AssemblyInput) (model.Request, error) {
	return model.Request{}, f()
}

type extractor func() error

func (f extractor) Extract(context.Context, ExtractionInput) ([]string, error) { return nil, f() }

func TestW20_MovesAreLimited(t *testing.T) {
	t.Parallel()
	again := calls("look", `{}`)
	w := newWorld(t, `{"max_model_requests":2}`, []reeve.Tool{tool("look", reeve.Read, echo)}, again, again,
		says("Enough."))
	run := w.say("Loop.")
	w.work()
	if got := w.turn(run.ID); got.State != reeve.RunCompleted || got.Code != reeve.StepLimit ||
		got.Output != "Enough." || !got.Issues.LimitReached {
		t.Fatalf("the turn came to %+v", got)
	}
	if w.last().Choice != model.NoCall {
		t.Error("the final answer was asked for with tools")
	}
}

func TestW20_ModelNeverStops(t *testing.T) {
	t.Parallel()
	again := calls("look", `{}`)
	w := newWorld(t, `{"max_model_requests":2}`, []reeve.Tool{tool("look", reeve.Read, echo)}, again, again, again,
		says("Hello again."))
	run := w.say("Loop.")
	w.work()
	if got := w.turn(run.ID); got.State != reeve.RunFailed || got.Code != reeve.StepLimit {
		t.Fatalf("the turn came to %+v", got)
	}
	next := w.say("Still there?")
	w.work()
	if got := w.turn(next.ID); got.State != reeve.RunCompleted {
		t.Fatalf("the next turn came to %+v", got)
	}
	wellFormed(t, w.last())
}

// TestW20_TurnOfManyMessages checks that a run with many messages continues at its end, and that its moves are limited.
func TestW20_TurnOfManyMessages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `{"max_model_requests":2}`, []reeve.Tool{tool("look", reeve.Read, echo)}, calls("look", `{"n":1}`),
		calls("look", `{"n":2}`), says("Enough."))
	run := w.say("Look everywhere.")
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
	w.work()
	if got := w.turn(run.ID); got.State != reeve.RunCompleted || got.Code != reeve.StepLimit ||
		got.Output != "Enough." || got.ModelRequests != 3 {
		t.Fatalf("the turn came to %+v after %d questions", got, len(w.model.asked))
	}
	wellFormed(t, w.last())
	if got := told(w.last()); !strings.Contains(got, `got {"n":1}`) || !strings.Contains(got, `got {"n":2}`) {
		t.Errorf("the model was told %s", got)
	}
}

func TestG14_ApprovalParksAndResumesTurn(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	risky := tool("risky", reeve.Unsafe, func(*reeve.Invocation) (any, error) { n.Add(1); return "deed done", nil })
	risky.Tier = reeve.Privileged
	w := newWorld(t, `{}`, []reeve.Tool{risky, tool("look", reeve.Read, echo)}, calls("risky", `{}`, "look", `{"n":1}`),
		says("All done."))
	run := w.say("Do it.")
	w.work()
	if got := w.turn(run.ID); got.State != reeve.RunParked || len(w.model.asked) != 1 || n.Load() != 0 {
		t.Fatalf("before the approval the turn is %+v", got)
	}
	f := w.frames()
	ask := f[len(f)-1]
	if ask.Type != reeve.FrameApproval || ask.ApprovalID == "" {
		t.Fatalf("clients were told %+v", ask)
	}
	w.start([]reeve.Tool{risky, tool("look", reeve.Read, echo)}) // the server is gone meanwhile
	if _, err := w.gate.Inbox.DecideApproval(t.Context(), home, ask.ApprovalID, true, "ann", ""); err != nil {
		t.Fatal(err)
	}
	w.work()
	if got := w.turn(run.ID); got.State != reeve.RunCompleted || got.Output != "All done." || n.Load() != 1 {
		t.Fatalf("after the approval the turn is %+v, and the deed was done %d times", got, n.Load())
	}
	r := w.last()
	wellFormed(t, r)
	results := r.Messages[len(r.Messages)-1].Parts
	if len(results) != 2 || results[0].Text != "deed done" || results[1].Text != `got {"n":1}` {
		t.Errorf("the model was told %+v", results)
	}
}

func TestL09_RestartReplaysPlan(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	write := tool("write", reeve.Keyed, func(*reeve.Invocation) (any, error) { n.Add(1); return "written", nil })
	w := newWorld(t, `{}`, []reeve.Tool{write}, calls("write", `{"n":1}`, "write", `{"n":2}`), says("Done."))
	run := w.say("Write twice.")
	// The server dies between the first call's result and the second: only the first call is made.
	v := &turn{ModelRunner: w.think, run: run, agent: w.agent, isClientTool: map[string]bool{},
		deferred:        map[string]bool{},
		reportedResults: map[string]bool{}}
	var err error
	v.set, err = readSettings(w.agent.Config)
	w.must(err)
	w.must(v.readLog(t.Context()))
	if end := v.step(t.Context()); end != nil {
		t.Fatalf("asking ended the turn: %+v", end)
	}
	w.must(v.readLog(t.Context()))
	if end := v.callTools(t.Context(), v.openCalls(v.log.lastAnswer())[:1]); end != nil {
		t.Fatalf("the first call ended the turn: %+v", end)
	}
	w.start([]reeve.Tool{write})
	w.work()
	if got := w.turn(run.ID); got.State != reeve.RunCompleted || got.Attempts != 2 || n.Load() != 2 ||
		len(w.model.asked) != 2 {
		t.Fatalf("the turn came to %+v, with %d effects and %d questions", got, n.Load(), len(w.model.asked))
	}
	wellFormed(t, w.last())
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

func TestW02_RecentTurnsAndActiveOnes(t *testing.T) {
	t.Parallel()
	slow := tool("slow", reeve.Read, echo)
	slow.Async = true
	w := newWorld(t, `{"recent_turns":2}`, []reeve.Tool{slow}, says("one"), says("two"), says("three"),
		calls("slow", `{}`), says("begun"), says("five"))
	for _, text := range []string{"first", "second", "third"} {
		w.say(text)
		w.work()
	}
	w.say("fourth, slow")
	runs, _, err := w.room.Step(t.Context(), 8)
	w.must(err)
	for _, r := range runs {
		w.room.Serve(t.Context(), r)
	}
	w.say("fifth")
	runs, _, err = w.room.Step(t.Context(), 8)
	w.must(err)
	for _, r := range runs {
		w.room.Serve(t.Context(), r)
	}
	r := w.last()
	wellFormed(t, r)
	var said []string
	for _, m := range r.Messages {
		said = append(said, m.Parts[0].Text)
	}
	if got := strings.Join(said, "|"); got != "second|two|third|three|fifth" {
		t.Errorf("the model was told %s", got)
	}
	if !strings.Contains(r.System, "fourth, slow") || !strings.Contains(r.System, "waits for slow") {
		t.Errorf("of the active turn it was told %q", r.System)
	}
	if len(r.Tools) != 1 || r.Tools[0].Name != "slow" || !strings.Contains(r.Tools[0].Description, "later") {
		t.Errorf("the tools were %+v", r.Tools)
	}
}

func TestG17_ModelExceedsBudget(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `{"max_tokens":100}`, nil, says("Hello."), says("Hello."))
	w.update(func(tx *store.Tx) error {
		return tx.Ledger().PutBudget(t.Context(), home, reeve.Budget{Subject: "agent:" + w.agent.ID,
			OnExceed: reeve.EndOverBudget, Limit: reeve.Amount{Tokens: 110}})
	})
	first, second := w.say("Hi"), reeve.Run{}
	w.work()
	if got := w.turn(first.ID); got.State != reeve.RunCompleted {
		t.Fatalf("the first turn came to %+v", got)
	}
	second = w.say("Hi again")
	w.work()
	if got := w.turn(second.ID); got.State != reeve.RunFailed || got.Code != reeve.BudgetExceeded ||
		len(w.model.asked) != 1 {
		t.Fatalf("the second turn came to %+v", got)
	}
}
