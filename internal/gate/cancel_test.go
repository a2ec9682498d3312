package gate

import (
	"testing"

	"reeve"
	"reeve/internal/store"
)

// If a call is approved and cancelled at the same time, the first decision counts and the second writes nothing.
func TestG15_ApprovedWhileCancelled(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	g, _, sent := newTestGate(t, reeve.Keyed)
	update := func(f func(*store.Tx) error) {
		t.Helper()
		if err := g.DB.Update(ctx, f); err != nil {
			t.Fatal(err)
		}
	}
	update(func(tx *store.Tx) error {
		a, err := tx.Agents().GetAgent(ctx, "home", "agt_one")
		if err != nil {
			return err
		}
		a.Policy.Tools = map[string]reeve.PolicyAnswer{"send": reeve.Ask}
		return tx.Agents().UpdateAgent(ctx, a)
	})
	res, err := g.Call(ctx, reeve.Call{Workspace: "home", Agent: "agt_one", Tool: "send", Tools: []string{"send"},
		Args: []byte("{}"), Operation: "op_1", Via: reeve.ViaGo})
	if err != nil || res.State != reeve.Parked {
		t.Fatalf("%+v, %v", res, err)
	}
	var op reeve.Operation
	var m []reeve.Message
	read := func() {
		t.Helper()
		if err := g.DB.View(ctx, func(s *store.Snap) (err error) {
			if op, err = s.Ledger().GetOperation(ctx, "home", "op_1"); err == nil {
				m, err = s.Ledger().ListMessages(ctx, "home", op.ThreadID, "", 10)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	read()
	seen := op
	if _, err := g.Inbox.DecideApproval(ctx, "home", res.ApprovalID, true, "ann", "", ""); err != nil {
		t.Fatal(err)
	}
	update(func(tx *store.Tx) error {
		return cancelUnlessDecided(ctx, tx, seen, reeve.Errorf(reeve.Denied, "cancelled"))
	})
	if _, err := g.Step(ctx); err != nil {
		t.Fatal(err)
	}
	if read(); op.State != reeve.Committed || sent.Load() != 1 || len(m) != 2 {
		t.Errorf("%d handler calls, %d messages: %+v", sent.Load(), len(m), op)
	}
}
