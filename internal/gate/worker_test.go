package gate

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"reeve"
	"reeve/internal/store"
)

// The worker logs an operation that it cannot process, and the operation stays due. It does not log an operation of a
// stopped agent.
func TestG15_FailedOperationIsLogged(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for name, c := range map[string]struct {
		change func(*reeve.Agent)
		log    string // a part of the log
	}{
		"damaged": {func(a *reeve.Agent) { a.Config = []byte("{broken") }, "op_1"},
		"stopped": {func(a *reeve.Agent) { a.StoppedAt = &a.CreatedAt }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g, _, sent := newTestGate(t, reeve.Keyed)
			var log bytes.Buffer
			g.Log = slog.New(slog.NewTextHandler(&log, nil))
			change := func(f func(*reeve.Agent)) {
				t.Helper()
				if err := g.DB.Update(ctx, func(tx *store.Tx) error {
					a, err := tx.Agents().GetAgent(ctx, "home", "agt_one")
					if f(&a); err != nil {
						return err
					}
					return tx.Agents().UpdateAgent(ctx, a)
				}); err != nil {
					t.Fatal(err)
				}
			}
			change(func(a *reeve.Agent) { a.Policy.Tools = map[string]reeve.PolicyAnswer{"send": reeve.Ask} })
			res, err := g.Call(ctx, reeve.Call{Workspace: "home", Agent: "agt_one", Tool: "send",
				Tools: []string{"send"}, Args: []byte("{}"), Operation: "op_1", Via: reeve.ViaGo})
			if err != nil || res.State != reeve.Parked {
				t.Fatalf("%+v, %v", res, err)
			}
			if _, err := g.Inbox.DecideApproval(ctx, "home", res.ApprovalID, true, "ann", "", ""); err != nil {
				t.Fatal(err)
			}
			var op reeve.Operation
			read := func() {
				t.Helper()
				if err := g.DB.View(ctx, func(s *store.Snap) (err error) {
					op, err = s.Ledger().GetOperation(ctx, "home", "op_1")
					return err
				}); err != nil {
					t.Fatal(err)
				}
			}
			read()
			change(c.change)
			(&operationWorker{g}).processOperation(ctx, op) // as if it had been claimed before the change
			if read(); op.State != reeve.Prepared || op.NextAttemptAt == nil || sent.Load() != 0 {
				t.Errorf("%d sent: %+v", sent.Load(), op)
			}
			if got := log.String(); !strings.Contains(got, c.log) || (c.log == "") != (got == "") {
				t.Errorf("log: %q", got)
			}
		})
	}
}

// The worker waits no longer than until the next approval expires. Parking a call wakes the worker if the approval
// expires before the next poll.
func TestG14_WorkerWaitsUntilNextExpiry(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	g, _, _ := newTestGate(t, reeve.Keyed)
	if err := g.DB.Update(ctx, func(tx *store.Tx) error {
		a, err := tx.Agents().GetAgent(ctx, "home", "agt_one")
		if err != nil {
			return err
		}
		a.Policy.Tools = map[string]reeve.PolicyAnswer{"send": reeve.Ask}
		return tx.Agents().UpdateAgent(ctx, a)
	}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		ttl     time.Duration
		wakeups int
		maxWait time.Duration
	}{{time.Hour, 0, pollInterval}, {pollInterval / 2, 1, pollInterval / 2}} {
		g.ApprovalTTL = c.ttl
		if res, err := g.Call(ctx, reeve.Call{Workspace: "home", Agent: "agt_one", Tool: "send",
			Tools: []string{"send"}, Args: []byte("{}"), Via: reeve.ViaGo}); err != nil || res.State != reeve.Parked {
			t.Fatalf("%+v, %v", res, err)
		}
		if len(g.wakeSignal) != c.wakeups {
			t.Errorf("an approval for %s: %d wakeups of the worker, want %d", c.ttl, len(g.wakeSignal), c.wakeups)
		}
		for _, free := range []int{maxConcurrent, 0} {
			if _, next, err := (&operationWorker{g}).claim(ctx, free); err != nil || next > c.maxWait {
				t.Errorf("an approval for %s, claiming %d: the worker waits for %s, want at most %s; %v", c.ttl, free,
					next, c.maxWait, err)
			}
		}
	}
}

// One pass of the worker closes all expired approvals, even if there are more than one batch.
func TestG14_ManyApprovalsExpire(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	g, _, _ := newTestGate(t, reeve.Keyed)
	if err := g.DB.Update(ctx, func(tx *store.Tx) error {
		a, err := tx.Agents().GetAgent(ctx, "home", "agt_one")
		if err != nil {
			return err
		}
		a.Policy.Tools = map[string]reeve.PolicyAnswer{"send": reeve.Ask}
		return tx.Agents().UpdateAgent(ctx, a)
	}); err != nil {
		t.Fatal(err)
	}
	g.ApprovalTTL = -time.Second
	for range 101 {
		if res, err := g.Call(ctx, reeve.Call{Workspace: "home", Agent: "agt_one", Tool: "send",
			Tools: []string{"send"}, Args: []byte("{}"), Via: reeve.ViaGo}); err != nil || res.State != reeve.Parked {
			t.Fatalf("%+v, %v", res, err)
		}
	}
	if _, _, err := (&operationWorker{g}).claim(ctx, 0); err != nil {
		t.Fatal(err)
	}
	if err := g.DB.View(ctx, func(s *store.Snap) error {
		left, err := s.Ledger().DueApprovals(ctx, 101)
		if len(left) != 0 {
			t.Errorf("%d expired approvals are left", len(left))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// An agent whose row could not be read can act as soon as the row is corrected, and so can agents that act for it.
func TestI09_CorrectedAgentCanAct(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for _, who := range []string{"agt_one", "agt_boss"} {
		t.Run(who, func(t *testing.T) {
			t.Parallel()
			g, _, sent := newTestGate(t, reeve.Keyed)
			config := func(a reeve.Agent, text string) {
				t.Helper()
				a.Config = []byte(text)
				if err := g.DB.Update(ctx, func(tx *store.Tx) error {
					return tx.Agents().UpdateAgent(ctx, a)
				}); err != nil {
					t.Fatal(err)
				}
			}
			if err := g.DB.Update(ctx, func(tx *store.Tx) error {
				return tx.Agents().InsertAgent(ctx, reeve.Agent{ID: "agt_boss", WorkspaceID: "home", Name: "boss",
					Kind: "assistant", Lifecycle: reeve.AgentActive, CreatedAt: tx.Now()})
			}); err != nil {
				t.Fatal(err)
			}
			g.CacheAncestry(reeve.Run{ID: "run_1", WorkspaceID: "home", AgentID: "agt_one",
				Ancestors: []reeve.Ancestor{{AgentID: "agt_boss", Tools: []string{"send"}}}})
			call := reeve.Call{Workspace: "home", Agent: "agt_one", Tool: "send", Tools: []string{"send"},
				Args: []byte("{}"), Run: "run_1", Via: reeve.ViaGo}
			var a reeve.Agent
			if err := g.DB.View(ctx, func(s *store.Snap) (err error) {
				a, err = s.Agents().GetAgent(ctx, "home", who)
				return err
			}); err != nil {
				t.Fatal(err)
			}
			config(a, "{broken")
			if res, err := g.Call(ctx, call); reeve.CodeOf(err) != reeve.Corrupt || sent.Load() != 0 {
				t.Fatalf("corrupt: %+v, %v", res, err)
			}
			config(a, "{}")
			if res, err := g.Call(ctx, call); err != nil || res.State != reeve.Committed || sent.Load() != 1 {
				t.Errorf("corrected: %+v, %v", res, err)
			}
		})
	}
}
