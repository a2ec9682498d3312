package gate

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"reeve"
	"reeve/internal/store"
)

// If the commit before a request is uncertain or returns after the lease was lost, this process does not send the
// request. The operation is released and processed later.
func TestG10_NothingIsSentAfterAnUncertainCommit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		after func(*Gate) error
		got   reeve.Code
	}{
		"the commit is uncertain": {func(*Gate) error {
			return store.Fault{Kind: store.FaultUncertain, Err: errors.New("the connection broke")}
		}, reeve.UnknownOutcome},
		"the lease has expired": {func(g *Gate) error {
			g.lease.renew(reeve.Now().Add(-time.Minute), true)
			return nil
		}, reeve.InProgress},
		"the lease was lost and renewed": {func(g *Gate) error { g.lease.renew(reeve.Now(), false); return nil },
			reeve.InProgress},
	} {
		for effect, ends := range map[reeve.Effect]reeve.State{reeve.Keyed: reeve.Committed,
			reeve.Verifiable: reeve.Committed, reeve.Unsafe: reeve.Unknown} {
			t.Run(name+", "+string(effect), func(t *testing.T) {
				t.Parallel()
				ctx := t.Context()
				g, e, sent := newTestGate(t, effect)
				call := reeve.Call{Workspace: "home", Agent: "agt_one", Tool: "send", Tools: []string{"send"},
					Args: []byte("{}"), Operation: "op_1", Via: reeve.ViaGo}
				// fill the cache, so that the next commit is that of the call
				if _, err := g.viewCache.getAgent(ctx, g, "home", "agt_one"); err != nil {
					t.Fatal(err)
				}
				e.onNextCommit(func() error { return c.after(g) })
				res, err := g.Call(ctx, call)
				if code := res.Code; sent.Load() != 0 || err == nil && code != c.got || err != nil &&
					reeve.CodeOf(err) != c.got {
					t.Fatalf("%d sent; %+v, %v", sent.Load(), res, err)
				}
				g.lease.renew(reeve.Now(), true)
				var op reeve.Operation
				// a verifiable operation waits for InFlightUntil
				for begun := reeve.Monotonic(); op.State != ends && reeve.Since(begun) < time.Minute; {
					if _, err := g.Step(ctx); err != nil {
						t.Fatal(err)
					}
					if err := g.DB.View(ctx, func(s *store.Snap) (err error) {
						op, err = s.Ledger().GetOperation(ctx, "home", "op_1")
						return err
					}); err != nil {
						t.Fatal(err)
					}
				}
				if want := map[reeve.State]int32{reeve.Committed: 1}[ends]; op.State != ends || sent.Load() != want {
					t.Errorf("%s, owned by %q; %d sent", op.State, op.Owner, sent.Load())
				}
			})
		}
	}
}

// An operation that was written again after an uncertain commit is not released.
func TestG10_RepeatedCallIsNotReleased(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	g, e, sent := newTestGate(t, reeve.Keyed)
	g.releaseLater(reeve.Operation{ID: "op_1", WorkspaceID: "home"}) // its commit failed
	for at := reeve.Now(); !reeve.Now().After(at); {                 // wait for the next millisecond
	}
	e.onNextCommit(func() error { g.pending.flush(ctx); return nil })
	call := reeve.Call{Workspace: "home", Agent: "agt_one", Tool: "send", Tools: []string{"send"}, Args: []byte("{}"),
		Operation: "op_1", Via: reeve.ViaGo}
	if res, err := g.Call(ctx, call); err != nil || res.State != reeve.Committed || sent.Load() != 1 {
		t.Errorf("%d sent; %+v, %v", sent.Load(), res, err)
	}
}

// A call that fails because the store is unavailable is not recorded as a failure of the tool. The same call succeeds
// later.
func TestG19_StoreErrorsAreNotToolFailures(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	g, e, _ := newTestGate(t, reeve.Keyed)
	trouble := store.Fault{Kind: store.FaultBusy, Err: errors.New("canceling statement")}
	var fail, hang atomic.Bool
	if err := g.Catalogue.AddTool(reeve.MustTool(reeve.Tool{ID: "write", Description: "Writes.", Effect: reeve.Local,
		TimeoutMS: 2000}, func(ctx context.Context, _ struct{}) (string, error) {
		tx, err := store.TxFrom(ctx)
		switch {
		case err != nil:
			return "", err
		case fail.Load():
			return "", trouble
		case hang.Load():
			e.blocksWrites.Store(true)
			defer e.blocksWrites.Store(false)
		}
		return "written", tx.Chat().PutScratchpad(ctx, "home", "s", []string{"x"})
	})); err != nil {
		t.Fatal(err)
	}
	if err := g.Open(ctx); err != nil {
		t.Fatal(err)
	}
	call := reeve.Call{Workspace: "home", Agent: "agt_one", Tool: "write", Tools: []string{"write"}, Args: []byte("{}"),
		Operation: "op_1", Via: reeve.ViaGo}
	for name, b := range map[string]*atomic.Bool{"the tool returns the error": &fail,
		"the store blocks until the tool's timeout": &hang} {
		b.Store(true)
		if res, err := g.Call(ctx, call); reeve.CodeOf(err) != reeve.Unavailable || res.CallID != "" {
			t.Fatalf("%s: %+v, %v", name, res, err)
		}
		b.Store(false)
	}
	if res, err := g.Call(ctx, call); err != nil || res.State != reeve.Committed {
		t.Fatalf("%+v, %v", res, err)
	}
}
