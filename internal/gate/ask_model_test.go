package gate

import (
	"context"
	"errors"
	"testing"

	"reeve"
	"reeve/internal/store"
)

// AskModel releases its reservation and charges the cost, no matter how the request ends.
func TestG17_AskModelReleasesItsReservation(t *testing.T) {
	t.Parallel()
	costs := reeve.Amount{Tokens: 30}
	succeed := func(context.Context) (reeve.Amount, error) { return costs, nil }
	storeNothing := func(context.Context, *store.Tx) error { return nil }
	for name, c := range map[string]struct {
		ask   func(context.Context) (reeve.Amount, error)
		store func(context.Context, *store.Tx) error
		used  int64
	}{
		"answered": {succeed, storeNothing, 30},
		"panicked": {func(context.Context) (reeve.Amount, error) { panic("test") }, storeNothing, 0},
		"failed": {func(context.Context) (reeve.Amount, error) {
			return reeve.Amount{Millis: 5}, errors.New("no")
		}, storeNothing, 0},
		"failed with a cost": {func(context.Context) (reeve.Amount, error) { return costs, errors.New("no") },
			storeNothing, 30},
		"not stored": {succeed, func(context.Context, *store.Tx) error { return errors.New("no") },
			30},
		"panicked during the store": {succeed, func(context.Context, *store.Tx) error { panic("test") }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			g, _, _ := newTestGate(t, reeve.Read)
			if err := g.DB.Update(ctx, func(tx *store.Tx) error {
				return tx.Ledger().PutBudget(ctx, "home", reeve.Budget{Subject: "agent:agt_one",
					Limit: reeve.Amount{Tokens: 1000}, OnExceed: reeve.EndOverBudget})
			}); err != nil {
				t.Fatal(err)
			}
			var b reeve.Budget
			read := func() error {
				return g.DB.View(ctx, func(s *store.Snap) (err error) {
					b, _, err = s.Ledger().GetBudget(ctx, "home", "agent:agt_one")
					return err
				})
			}
			func() {
				defer func() { _ = recover() }()
				_ = g.AskModel(ctx, reeve.Call{Workspace: "home", Agent: "agt_one", Via: reeve.ViaRun},
					reeve.ModelCost{Input: 70, Output: 30, Millis: 1000},
					func(ctx context.Context, _ int64) (reeve.Amount, error) {
						if err := read(); err != nil || b.Reserved.Tokens != 100 {
							t.Errorf("budget during the request: %+v, %v", b, err)
						}
						return c.ask(ctx)
					}, c.store)
			}()
			if err := read(); err != nil || b.Used.Tokens != c.used || !b.Reserved.IsZero() {
				t.Errorf("budget after the request: %+v, %v", b, err)
			}
		})
	}
}

// After an uncertain commit nothing is charged twice, and nothing stays reserved for a call that was not made.
func TestG17_UncertainCommitIsNotChargedTwice(t *testing.T) {
	t.Parallel()
	loseCommit := func() error {
		return store.Fault{Kind: store.FaultUncertain, Err: errors.New("the connection broke")}
	}
	storeNothing := func(context.Context, *store.Tx) error { return nil }
	askModel := func(g *Gate, ask func(context.Context) (reeve.Amount, error)) error {
		return g.AskModel(t.Context(), reeve.Call{Workspace: "home", Agent: "agt_one", Via: reeve.ViaRun},
			reeve.ModelCost{Input: 70, Output: 30, Millis: 1000},
			func(ctx context.Context, _ int64) (reeve.Amount, error) { return ask(ctx) }, storeNothing)
	}
	for name, c := range map[string]struct {
		do   func(*Gate, *testEngine) error
		used int64
	}{
		"storing the response": {func(g *Gate, e *testEngine) error {
			return askModel(g, func(context.Context) (reeve.Amount, error) {
				e.onNextCommit(loseCommit)
				return reeve.Amount{Tokens: 30}, nil
			})
		}, 30},
		"reserving for a request": {func(g *Gate, e *testEngine) error {
			e.onNextCommit(loseCommit)
			return askModel(g, func(context.Context) (reeve.Amount, error) {
				t.Error("the model was called")
				return reeve.Amount{}, nil
			})
		}, 0},
		"reserving for a read": {func(g *Gate, e *testEngine) error {
			e.onNextCommit(loseCommit)
			_, err := g.Call(t.Context(), reeve.Call{Workspace: "home", Agent: "agt_one", Tool: "send",
				Tools: []string{"send"}, Args: []byte("{}"), Via: reeve.ViaGo})
			return err
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			g, e, sent := newTestGate(t, reeve.Read)
			if err := g.DB.Update(ctx, func(tx *store.Tx) error {
				return tx.Ledger().PutBudget(ctx, "home", reeve.Budget{Subject: "agent:agt_one",
					Limit: reeve.Amount{Tokens: 1000}, OnExceed: reeve.EndOverBudget})
			}); err != nil {
				t.Fatal(err)
			}
			if err := c.do(g, e); reeve.CodeOf(err) != reeve.UnknownOutcome || sent.Load() != 0 {
				t.Errorf("handler calls: %d; error: %v", sent.Load(), err)
			}
			if err := g.DB.View(ctx, func(s *store.Snap) error {
				b, _, err := s.Ledger().GetBudget(ctx, "home", "agent:agt_one")
				if b.Used.Tokens != c.used || !b.Reserved.IsZero() {
					t.Errorf("budget: %+v", b)
				}
				return err
			}); err != nil {
				t.Error(err)
			}
		})
	}
}
