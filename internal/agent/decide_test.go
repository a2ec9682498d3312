package agent

import (
	"testing"
	"time"

	"reeve"
	"reeve/internal/store"
)

// TestG14_WhoeverSaysNoLetsTheRunGoOn: a call that will not run is told of at once, like one that did. The wake room would find out for itself, some seconds later.
func TestG14_WhoeverSaysNoLetsTheRunGoOn(t *testing.T) {
	for name, c := range map[string]struct {
		ttl    time.Duration
		tier   reeve.Tier
		answer func(*world, reeve.Operation) error
	}{
		"denied": {0, reeve.Privileged, func(w *world, op reeve.Operation) error {
			f := w.frames()
			_, err := w.gate.Decide(t.Context(), home, f[len(f)-1].ApprovalID, false, "ann", "")
			return err
		}},
		"expired": {-time.Hour, reeve.Privileged, func(w *world, _ reeve.Operation) error {
			_, err := w.gate.Step(t.Context())
			return err
		}},
		"of unknown outcome, and left so": {0, reeve.SideEffecting, func(w *world, op reeve.Operation) error {
			_, err := w.gate.Resolve(t.Context(), home, op.ID, reeve.ResolveRequest{Resolution: reeve.SkipIt}, "ann")
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			risky := tool("risky", reeve.Unsafe, func(*reeve.Invocation) (any, error) {
				return nil, reeve.Errorf(reeve.UnknownOutcome, "the line is dead")
			})
			risky.Tier = c.tier
			w := newWorld(t, `{}`, []reeve.Tool{risky}, calls("risky", `{}`), says("Then not."))
			if c.ttl != 0 {
				w.gate.ApprovalTTL = c.ttl
			}
			run := w.say("Do it.")
			runs, _, err := w.room.Step(t.Context(), 8)
			w.must(err)
			for _, run := range runs {
				w.room.Serve(t.Context(), run)
			}
			if got := w.turn(run.ID); got.State != reeve.RunParked {
				t.Fatalf("before the answer the turn is %+v", got)
			}
			var ops []reeve.Operation
			w.must(w.db.View(t.Context(), func(s *store.Snap) (err error) {
				ops, err = s.ListOperations(t.Context(), home, store.OperationFilter{Limit: 1})
				return err
			}))
			told := 0
			w.gate.OnChange = func() { told++ }
			w.must(c.answer(w, ops[0]))
			if told != 1 {
				t.Errorf("the wake room was told %d times", told)
			}
			w.work()
			if got := w.turn(run.ID); got.State != reeve.RunCompleted || got.Output != "Then not." {
				t.Errorf("after the answer the turn is %+v", got)
			}
		})
	}
}
