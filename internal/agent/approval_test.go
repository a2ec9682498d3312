package agent

import (
	"testing"
	"time"

	"reeve"
	"reeve/internal/gate"
	"reeve/internal/store"
)

// TestG14_RejectionResumesRun checks that the rejection of a call resumes the run at once, without waiting for the
// scheduler's next poll.
func TestG14_RejectionResumesRun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ttl    time.Duration
		tier   reeve.Tier
		answer func(*world, reeve.Operation) error
	}{
		"denied": {0, reeve.Privileged, func(w *world, op reeve.Operation) error {
			f := w.frames()
			_, err := w.gate.Inbox.DecideApproval(t.Context(), home, f[len(f)-1].ApprovalID, false, "ann", "")
			return err
		}},
		"expired": {-time.Hour, reeve.Privileged, func(w *world, _ reeve.Operation) error {
			_, err := w.gate.Step(t.Context())
			return err
		}},
		"of unknown outcome, and left so": {0, reeve.SideEffecting, func(w *world, op reeve.Operation) error {
			_, err := w.gate.Inbox.Resolve(t.Context(), home, op.ID,
				reeve.ResolveRequest{Resolution: reeve.ResolveSkip},
				"ann")
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
				ops, err = s.Ledger().ListOperations(t.Context(), home, store.OperationFilter{Limit: 1})
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

// TestW04_DecisionResumesTurnWithAsyncCall checks that a decision on a call, or its outcome, resumes the turn while an
// earlier asynchronous call has no result yet.
func TestW04_DecisionResumesTurnWithAsyncCall(t *testing.T) {
	t.Parallel()
	decide := func(yes bool) func(*world, reeve.Operation) error {
		return func(w *world, _ reeve.Operation) error {
			f := w.frames()
			_, err := w.gate.Inbox.DecideApproval(t.Context(), home, f[len(f)-1].ApprovalID, yes, "ann", "")
			return err
		}
	}
	for name, c := range map[string]struct {
		ttl    time.Duration
		tier   reeve.Tier
		awaits bool
		answer func(*world, reeve.Operation) error
	}{
		"approved": {0, reeve.Privileged, false, decide(true)},
		"denied":   {0, reeve.Privileged, false, decide(false)},
		"expired":  {-time.Hour, reeve.Privileged, false, func(*world, reeve.Operation) error { return nil }},
		"of unknown outcome, and left so": {0, reeve.SideEffecting, false, func(w *world, op reeve.Operation) error {
			_, err := w.gate.Inbox.Resolve(t.Context(), home, op.ID,
				reeve.ResolveRequest{Resolution: reeve.ResolveSkip},
				"ann")
			return err
		}},
		"answered by what it began": {0, reeve.SideEffecting, true, func(w *world, op reeve.Operation) error {
			return w.db.Update(t.Context(), func(tx *store.Tx) error {
				return w.gate.CompleteAwaited(t.Context(), tx, home, op.ID, reeve.CallOutcome{Content: "done"})
			})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			slow := tool("slow", reeve.Keyed, func(*reeve.Invocation) (any, error) {
				return nil,
					reeve.Errorf(reeve.InProgress, "it will come")
			})
			slow.Async = true
			risky := tool("risky", reeve.Unsafe, func(*reeve.Invocation) (any, error) {
				if c.tier == reeve.Privileged {
					return "done", nil
				}
				return nil, reeve.Errorf(reeve.UnknownOutcome, "the line is dead")
			})
			if c.awaits {
				risky = tool("risky", reeve.Local, func(*reeve.Invocation) (any, error) {
					return nil,
						reeve.Errorf(reeve.InProgress, "it was asked")
				})
				risky.AwaitsOutcome = true
			}
			risky.Tier = c.tier
			w := newWorld(t, `{}`, []reeve.Tool{slow, risky}, calls("slow", `{}`, "risky", `{}`), says("So be it."),
				says("All is done."))
			if c.ttl != 0 {
				w.gate.ApprovalTTL = c.ttl
			}
			run := w.say("Do both.")
			runs, _, err := w.room.Step(t.Context(), 8)
			w.must(err)
			for _, run := range runs {
				w.room.Serve(t.Context(), run)
			}
			ops := map[string]reeve.Operation{}
			w.must(w.db.View(t.Context(), func(s *store.Snap) error {
				list, err := s.Ledger().ListOperations(t.Context(), home, store.OperationFilter{Limit: 2})
				for _, op := range list {
					ops[op.Tool] = op
				}
				return err
			}))
			w.must(c.answer(w, ops["risky"]))
			w.work()
			if got := w.turn(run.ID); got.State != reeve.RunParked || got.Output != "So be it." ||
				len(w.model.asked) != 2 {
				t.Fatalf("after the answer the turn is %+v", got)
			}
			var results []string
			for _, f := range w.frames() {
				if f.Type == reeve.FrameResult {
					results = append(results, f.Tool)
				}
			}
			if len(results) != 1 || results[0] != "risky" {
				t.Errorf("clients were told the results of %v", results)
			}
			wellFormed(t, w.last())
			_, err = w.gate.Deliver(t.Context(), home, ops["slow"].ID, gate.Delivery{Content: "came"})
			w.must(err)
			w.work()
			if got := w.turn(run.ID); got.State != reeve.RunCompleted || got.Output != "All is done." {
				t.Errorf("after the outcome the turn is %+v", got)
			}
		})
	}
}
