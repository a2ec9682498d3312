package agent

import (
	"testing"
	"time"

	"reeve"
	"reeve/internal/gate"
	"reeve/internal/store"
)

// TestG14_RejectionResumesRun checks that the rejection of a call resumes the run immediately, without waiting for the
// scheduler's next poll.
func TestG14_RejectionResumesRun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ttl    time.Duration
		tier   reeve.Tier
		decide func(*harness, reeve.Operation) error
	}{
		"denied": {0, reeve.Privileged, func(w *harness, op reeve.Operation) error {
			f := w.listFrames()
			_, err := w.gate.Inbox.DecideApproval(t.Context(), home, f[len(f)-1].ApprovalID, false, "ann", "", "")
			return err
		}},
		"expired": {-time.Hour, reeve.Privileged, func(w *harness, _ reeve.Operation) error {
			_, err := w.gate.Step(t.Context())
			return err
		}},
		"unknown outcome, skipped": {0, reeve.SideEffecting, func(w *harness, op reeve.Operation) error {
			_, err := w.gate.Inbox.Resolve(t.Context(), home, op.ID,
				reeve.ResolveRequest{Resolution: reeve.ResolveSkip},
				"ann")
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			risky := newTool("risky", reeve.Unsafe, func(*reeve.Invocation) (any, error) {
				return nil, reeve.Errorf(reeve.UnknownOutcome, "the connection broke")
			})
			risky.Tier = c.tier
			w := newHarness(t, `{}`, []reeve.Tool{risky}, callAnswer("risky", `{}`), textAnswer("I will not do it."))
			if c.ttl != 0 {
				w.gate.ApprovalTTL = c.ttl
			}
			run := w.beginTurn("Do it.")
			runs, _, err := w.scheduler.Step(t.Context(), 8)
			w.must(err)
			for _, run := range runs {
				w.scheduler.Serve(t.Context(), run)
			}
			if got := w.getRun(run.ID); got.State != reeve.RunParked {
				t.Fatalf("turn before the decision: %+v", got)
			}
			var ops []reeve.Operation
			w.must(w.db.View(t.Context(), func(s *store.Snap) (err error) {
				ops, err = s.Ledger().ListOperations(t.Context(), home, store.OperationFilter{Limit: 1})
				return err
			}))
			notified := 0
			w.gate.OnChange = func() { notified++ }
			w.must(c.decide(w, ops[0]))
			if notified != 1 {
				t.Errorf("the scheduler was notified %d times, want once", notified)
			}
			w.runUntilIdle()
			if got := w.getRun(run.ID); got.State != reeve.RunCompleted || got.Output != "I will not do it." {
				t.Errorf("turn after the decision: %+v", got)
			}
		})
	}
}

// TestW04_DecisionResumesTurnWithAsyncCall checks that a decision on a call, or its outcome, resumes the turn while an
// earlier asynchronous call has no result yet.
func TestW04_DecisionResumesTurnWithAsyncCall(t *testing.T) {
	t.Parallel()
	decide := func(approve bool) func(*harness, reeve.Operation) error {
		return func(w *harness, _ reeve.Operation) error {
			f := w.listFrames()
			_, err := w.gate.Inbox.DecideApproval(t.Context(), home, f[len(f)-1].ApprovalID, approve, "ann", "", "")
			return err
		}
	}
	for name, c := range map[string]struct {
		ttl    time.Duration
		tier   reeve.Tier
		awaits bool
		decide func(*harness, reeve.Operation) error
	}{
		"approved": {0, reeve.Privileged, false, decide(true)},
		"denied":   {0, reeve.Privileged, false, decide(false)},
		"expired":  {-time.Hour, reeve.Privileged, false, func(*harness, reeve.Operation) error { return nil }},
		"unknown outcome, skipped": {0, reeve.SideEffecting, false, func(w *harness, op reeve.Operation) error {
			_, err := w.gate.Inbox.Resolve(t.Context(), home, op.ID,
				reeve.ResolveRequest{Resolution: reeve.ResolveSkip},
				"ann")
			return err
		}},
		"completed by an awaited run": {0, reeve.SideEffecting, true, func(w *harness, op reeve.Operation) error {
			return w.db.Update(t.Context(), func(tx *store.Tx) error {
				return w.gate.CompleteAwaited(t.Context(), tx, home, op.ID, reeve.CallOutcome{Content: "done"})
			})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			slow := newTool("slow", reeve.Keyed, func(*reeve.Invocation) (any, error) {
				return nil, reeve.Errorf(reeve.InProgress, "started")
			})
			slow.Async = true
			risky := newTool("risky", reeve.Unsafe, func(*reeve.Invocation) (any, error) {
				if c.tier == reeve.Privileged {
					return "done", nil
				}
				return nil, reeve.Errorf(reeve.UnknownOutcome, "the connection broke")
			})
			if c.awaits {
				risky = newTool("risky", reeve.Local, func(*reeve.Invocation) (any, error) {
					return nil, reeve.Errorf(reeve.InProgress, "started")
				})
				risky.AwaitsOutcome = true
			}
			risky.Tier = c.tier
			w := newHarness(t, `{}`, []reeve.Tool{slow, risky}, callAnswer("slow", `{}`, "risky", `{}`),
				textAnswer("Understood."), textAnswer("Everything is done."))
			if c.ttl != 0 {
				w.gate.ApprovalTTL = c.ttl
			}
			run := w.beginTurn("Do both.")
			runs, _, err := w.scheduler.Step(t.Context(), 8)
			w.must(err)
			for _, run := range runs {
				w.scheduler.Serve(t.Context(), run)
			}
			ops := map[string]reeve.Operation{}
			w.must(w.db.View(t.Context(), func(s *store.Snap) error {
				list, err := s.Ledger().ListOperations(t.Context(), home, store.OperationFilter{Limit: 2})
				for _, op := range list {
					ops[op.Tool] = op
				}
				return err
			}))
			w.must(c.decide(w, ops["risky"]))
			w.runUntilIdle()
			if got := w.getRun(run.ID); got.State != reeve.RunParked || got.Output != "Understood." ||
				len(w.model.requests) != 2 {
				t.Fatalf("turn after the decision: %+v", got)
			}
			var results []string
			for _, f := range w.listFrames() {
				if f.Type == reeve.FrameResult {
					results = append(results, f.Tool)
				}
			}
			if len(results) != 1 || results[0] != "risky" {
				t.Errorf("clients received the results of %v", results)
			}
			checkWellFormed(t, w.lastRequest())
			_, err = w.gate.Deliver(t.Context(), home, ops["slow"].ID, gate.Delivery{Content: "result"})
			w.must(err)
			w.runUntilIdle()
			if got := w.getRun(run.ID); got.State != reeve.RunCompleted || got.Output != "Everything is done." {
				t.Errorf("turn after the delivery: %+v", got)
			}
		})
	}
}
