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

// Adding a pending write does not wait for a running flush, and a write that is added during a flush is not lost.
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

// A call has one result. If an operation was ended while its handler ran, the caller gets the stored result.
func TestG12_StoredResultWins(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		info reeve.ResultInfo
		ends reeve.State
		word reeve.Resolution
	}{
		"it was skipped": {reeve.ResultInfo{Status: "error", Code: reeve.Skipped, Message: "left"}, reeve.Unknown,
			reeve.ResolveSkip},
		"it failed":   {reeve.ResultInfo{Status: "error", Code: reeve.ToolFailed, Message: "no"}, reeve.Failed, ""},
		"it happened": {reeve.ResultInfo{Status: "success"}, reeve.Committed, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			g, e, sent := newTestGate(t, reeve.Keyed)
			var op reeve.Operation
			read := func() error {
				return g.DB.View(ctx, func(s *store.Snap) (err error) {
					op, err = s.Ledger().GetOperation(ctx, "home", "op_1")
					return err
				})
			}
			// fill the cache, so that the next commit is that of the call
			if _, err := g.viewCache.getAgent(ctx, g, "home", "agt_one"); err != nil {
				t.Fatal(err)
			}
			e.onNextCommit(func() error {
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
				t.Errorf("%d processed, %d sent; %v", n, sent.Load(), err)
			}
			if err := read(); err != nil || op.State != c.ends || op.Resolution != c.word || op.Owner != "" ||
				op.ResultID == "" {
				t.Errorf("%+v, %v", op, err)
			}
		})
	}
}

// Data from a tool that cannot be recorded is left out. The outcome is recorded all the same and the call is not sent
// again.
func TestG12_OutcomeIsRecordedWithoutInvalidData(t *testing.T) {
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
				g, e, sent := newTestGate(t, effect)
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
					e.failingPrefix.Store(&c.never)
				}
				res, err := g.Call(ctx, reeve.Call{Workspace: "home", Agent: "agt_one", Tool: "act",
					Tools: []string{"act"}, Args: []byte("{}"), Operation: "op_1", Via: reeve.ViaGo})
				if err != nil || res.State != reeve.Committed || !strings.Contains(res.Content, c.gives) ||
					len(res.Changed) != c.events {
					t.Errorf("%+v, %v", res, err)
				}
				if n, err := g.Step(ctx); n != 0 || err != nil || sent.Load() != 1 || g.pending.flush(ctx) {
					t.Errorf("%d processed, %d sent; %v", n, sent.Load(), err)
				}
			})
		}
	}
}

// Deliver fails if the outcome cannot be recorded, so that the sender delivers it again.
func TestW11_DeliverFailsIfNotRecorded(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	g, e, _ := newTestGate(t, reeve.Keyed)
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
		t.Fatalf("%d processed; %v", n, err)
	}
	never := "UPDATE calls SET state"
	e.failingPrefix.Store(&never)
	if op, err := g.Deliver(ctx, "home", "op_1", Delivery{Content: "came"}); err == nil {
		t.Errorf("accepted, and the operation is %s", op.State)
	}
	e.failingPrefix.Store(nil)
	if g.pending.flush(ctx) {
		t.Error("the failed delivery is a pending write")
	}
	if op, err := g.Deliver(ctx, "home", "op_1", Delivery{Content: "came"}); err != nil || op.State != reeve.Committed {
		t.Errorf("delivered again: %+v, %v", op, err)
	}
}
