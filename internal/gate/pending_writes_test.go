package gate

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"reeve"
	"reeve/internal/store"
)

// Adding a pending write does not wait for a flush that is under way, and a write added meanwhile is not lost.
func TestG12_PendingWritesCanBeAddedDuringAFlush(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	var p pendingWrites
	var written []string
	succeeds := func(name string) func(context.Context) error {
		return func(context.Context) error { written = append(written, name); return nil }
	}
	addsAgain := func(operation string, err error) {
		p.add(operation, func(context.Context) error {
			if !p.mu.TryLock() {
				t.Fatal("add would wait for the flush")
			}
			p.mu.Unlock()
			p.add(operation, succeeds(operation))
			return err
		})
	}
	down := true
	addsAgain("written", nil)
	addsAgain("not written", errors.New("the store is down"))
	p.add("tried again", func(ctx context.Context) error {
		if down {
			return errors.New("the store is down")
		}
		return succeeds("tried again")(ctx)
	})
	p.add("another's", func(context.Context) error {
		return reeve.Errorf(reeve.Conflict,
			"another process has written it")
	})
	if !p.flush(ctx) || len(written) != 0 {
		t.Errorf("wrote %q, and nothing is left", written)
	}
	down = false
	if p.flush(ctx) {
		t.Errorf("wrote %q, and something is left", written)
	}
	if slices.Sort(written); !slices.Equal(written, []string{"not written", "tried again", "written"}) {
		t.Errorf("wrote %q", written)
	}
}

// A call has one result. A request that comes back when somebody else has ended its operation is answered with what
// stands.
func TestG12_AResultThatIsThereCounts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		info reeve.ResultInfo
		ends reeve.State
		word reeve.Resolution
	}{
		"it was skipped": {reeve.ResultInfo{Status: "error", Code: reeve.Skipped, Message: "left"}, reeve.Unknown,
			reeve.SkipIt},
		"it failed":   {reeve.ResultInfo{Status: "error", Code: reeve.ToolFailed, Message: "no"}, reeve.Failed, ""},
		"it happened": {reeve.ResultInfo{Status: "success"}, reeve.Committed, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			g, e, sent := sender(t, reeve.Keyed)
			var op reeve.Operation
			read := func() error {
				return g.DB.View(ctx, func(s *store.Snap) (err error) {
					op, err = s.Ledger().
						GetOperation(ctx, "home", "op_1")
					return err
				})
			}
			if _, err := g.viewCache.getAgent(ctx, g, "home", "agt_one"); err != nil { // so that the next commit is the call's
				t.Fatal(err)
			}
			e.then(func() error {
				if err := read(); err != nil {
					return err
				}
				return g.DB.Update(ctx, func(tx *store.Tx) error {
					is, r := op, newResult(tx, "said", c.info)
					is.State, is.Resolution, is.ResultID, is.Owner = c.ends, c.word, r.ID, ""
					return tx.Ledger().TransitionOperation(ctx, op, is, r)
				})
			})
			res, err := g.Call(ctx, reeve.Call{Workspace: "home", Agent: "agt_one", Tool: "send",
				Tools: []string{"send"}, Args: []byte("{}"), Operation: "op_1", Via: reeve.ViaGo})
			if err != nil || res.State != c.ends || res.Code != c.info.Code || res.Content != "said" {
				t.Errorf("%+v, %v", res, err)
			}
			if n, err := g.Step(ctx); n != 0 || err != nil || sent.Load() != 1 {
				t.Errorf("%d taken up, %d sent; %v", n, sent.Load(), err)
			}
			if err := read(); err != nil || op.State != c.ends || op.Resolution != c.word || op.Owner != "" ||
				op.ResultID == "" {
				t.Errorf("%+v, %v", op, err)
			}
		})
	}
}

// What cannot be recorded of what a tool gave is left out: that it has sent is recorded, and it is not sent again.
func TestG12_AnOutcomeIsRecordedWhateverTheToolSays(t *testing.T) {
	t.Parallel()
	good := reeve.Token{Class: reeve.EntityID, Name: "a"}
	for name, c := range map[string]struct {
		says   []reeve.Token
		never  string
		gives  string
		events int
	}{
		"a name that is no text": {[]reeve.Token{good, {Class: reeve.EntityID, Name: "a\x00"},
			{Class: reeve.EntityID, Name: "\xff"}}, "", "done", 1},
		"of no class":                {[]reeve.Token{{Class: "rumour", Name: "a"}, good}, "", "done", 1},
		"the store does not want it": {[]reeve.Token{good}, "INSERT INTO events", "could not be recorded", 0},
	} {
		for _, effect := range []reeve.Effect{reeve.Keyed, reeve.Verifiable, reeve.Unsafe} {
			t.Run(name+", "+string(effect), func(t *testing.T) {
				t.Parallel()
				ctx := t.Context()
				g, e, sent := sender(t, effect)
				tool := reeve.Tool{ID: "act", Description: "Acts.", Parameters: []byte(`{"type":"object"}`),
					Effect: effect, Tier: reeve.SideEffecting,
					Handler: func(_ context.Context, inv *reeve.Invocation) (any, error) {
						sent.Add(1)
						inv.EmitAll(c.says)
						inv.UndoWith("act", struct{}{})
						return "done", nil
					}}
				if effect == reeve.Verifiable {
					tool.Verify = func(context.Context, *reeve.Invocation) (reeve.Outcome, any, error) {
						return reeve.CannotTell, nil, nil
					}
				}
				if err := errors.Join(g.Catalogue.AddTool(tool), g.Open(ctx)); err != nil {
					t.Fatal(err)
				}
				if c.never != "" {
					e.never.Store(&c.never)
				}
				res, err := g.Call(ctx, reeve.Call{Workspace: "home", Agent: "agt_one", Tool: "act",
					Tools: []string{"act"}, Args: []byte("{}"), Operation: "op_1", Via: reeve.ViaGo})
				if err != nil || res.State != reeve.Committed || !strings.Contains(res.Content, c.gives) ||
					len(res.Changed) != c.events {
					t.Errorf("%+v, %v", res, err)
				}
				if n, err := g.Step(ctx); n != 0 || err != nil || sent.Load() != 1 || g.pending.flush(ctx) {
					t.Errorf("%d taken up, %d sent; %v", n, sent.Load(), err)
				}
			})
		}
	}
}

// An outcome that is brought from outside, and cannot be recorded, is not taken: only whoever brings it has it, and
// brings it again.
func TestW11_AnOutcomeThatIsNotRecordedIsNotTaken(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	g, e, _ := sender(t, reeve.Keyed)
	tool := reeve.Tool{ID: "later", Description: "Answers later.", Parameters: []byte(`{"type":"object"}`),
		Effect: reeve.Unsafe, Tier: reeve.SideEffecting, Async: true, TimeoutMS: 3_600_000,
		Handler: func(context.Context, *reeve.Invocation) (any, error) {
			return nil, reeve.Errorf(reeve.InProgress, "taken")
		}}
	if err := errors.Join(g.Catalogue.AddTool(tool), g.Open(ctx)); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Call(ctx, reeve.Call{Workspace: "home", Agent: "agt_one", Tool: "later", Tools: []string{"later"},
		Args: []byte("{}"), Operation: "op_1", Via: reeve.ViaGo}); err != nil {
		t.Fatal(err)
	}
	if n, err := g.Step(ctx); n != 1 || err != nil {
		t.Fatalf("%d taken up; %v", n, err)
	}
	never := "UPDATE calls SET state"
	e.never.Store(&never)
	if op, err := g.Deliver(ctx, "home", "op_1", Delivery{Content: "came"}); err == nil {
		t.Errorf("taken, and it is %s", op.State)
	}
	e.never.Store(nil)
	if g.pending.flush(ctx) {
		t.Error("it is owed all the same")
	}
	if op, err := g.Deliver(ctx, "home", "op_1", Delivery{Content: "came"}); err != nil || op.State != reeve.Committed {
		t.Errorf("brought again: %+v, %v", op, err)
	}
}
