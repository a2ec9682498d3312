package storetest

import (
	"errors"
	"fmt"
	"testing"

	"reeve"
	"reeve/internal/store"
)

// proposals tests proposals and change sets.
var proposals = map[string]func(*testing.T, *store.DB){
	"proposal": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		draft := func(id, set string, ordinal, round int, args string) reeve.Proposal {
			return reeve.Proposal{ID: id, WorkspaceID: ws, SetID: set, Ordinal: ordinal, Round: round,
				AgentID: "agt_one", RunID: "run_1", ThreadID: "agt_one:run:run_1",
				CallID: "msg_1", Tool: "echo", Args: `{"a": 1}`, ArgsHash: args, ToolVersion: "v", Settings: "s",
				Base: "b", Preview: "+ a", Reason: "r", UserID: "u",
				State: reeve.ProposalPending}
		}
		insert := func(p reeve.Proposal) error {
			return db.Update(ctx, func(tx *store.Tx) error { return tx.Ledger().InsertProposal(ctx, p) })
		}
		get := func(id string) reeve.Proposal {
			return view(t, db, func(s *store.Snap) (reeve.Proposal, error) {
				return s.Ledger().GetProposal(ctx, ws, id)
			})
		}
		want := draft("prop_1", "cs_1", 1, 1, "h1")
		must(t, insert(want))
		got := get("prop_1")
		want.CreatedAt = got.CreatedAt
		if got != want || got.CreatedAt.IsZero() {
			t.Fatalf("round trip:\n got %+v\nwant %+v", got, want)
		}
		wantCode(t, db.View(ctx, func(s *store.Snap) error {
			_, err := s.Ledger().GetProposal(ctx, "ws_two", "prop_1")
			return err
		}), reeve.NotFound)
		wantStale := func(err error, what string) {
			t.Helper()
			if !errors.As(err, new(store.ErrStaleDecision)) {
				t.Fatalf("%s: %v", what, err)
			}
		}
		wantStale(insert(draft("prop_x", "cs_1", 1, 1, "h2")), "an ordinal that is used in the set")
		wantStale(insert(draft("prop_x", "cs_1", 2, 1, "h1")), "a round that is used")
		must(t, insert(draft("prop_2", "cs_1", 2, 1, "h2")))
		must(t, insert(draft("prop_3", "cs_2", 1, 2, "h1")))
		update(t, db, func(tx *store.Tx) error {
			for user, want := range map[string]string{"u": "prop_3true", "v": "false", "": "false"} {
				last, ok, err := tx.Ledger().LastProposal(ctx, "agt_one", "echo", "h1", user)
				must(t, err)
				equal(t, fmt.Sprint(last.ID, ok), want, "last equal proposal of user %q", user)
			}
			round, err := tx.Ledger().LastRound(ctx, "agt_one", "echo", "h1")
			must(t, err)
			equal(t, round, 2, "last round")
			n, err := tx.Ledger().LastOrdinal(ctx, "cs_1")
			equal(t, n, 2, "last ordinal")
			return err
		})

		// Exactly one decision succeeds. The state of the proposal then follows the state of its operation.
		errs := runConcurrently(16, func(i int) error {
			mine := want
			mine.State, mine.DecidedBy, mine.OperationID = reeve.ProposalAccepted, fmt.Sprint("user", i), "op_1"
			return db.Update(ctx, func(tx *store.Tx) error {
				return tx.Ledger().TransitionProposal(ctx, mine, reeve.ProposalPending)
			})
		})
		won := 0
		for i, err := range errs {
			if err == nil {
				won++
				equal(t, get("prop_1").DecidedBy, fmt.Sprint("user", i), "decided by")
			} else {
				wantStale(err, "second decision")
			}
		}
		equal(t, won, 1, "successful decisions")
		equal(t, get("prop_1").State, reeve.ProposalAccepted, "state without an operation")
		op := newOperation("op_1", reeve.Prepared)
		op.RunID = "run_1"
		update(t, db, func(tx *store.Tx) error { return insertOperation(ctx, tx, op) })
		equal(t, get("prop_1").State, reeve.ProposalAccepted, "state with a prepared operation")
		for _, c := range []struct {
			state reeve.State
			code  reeve.Code
			want  reeve.ProposalState
		}{{reeve.Committed, "", reeve.ProposalApplied}, {reeve.Failed, reeve.ToolFailed, reeve.ProposalFailed},
			{reeve.Failed, reeve.Stale, reeve.ProposalStale},
			{reeve.DeniedOp, reeve.Denied, reeve.ProposalDenied}, {reeve.DeniedOp, reeve.Stale, reeve.ProposalStale}} {
			_ = db.Update(ctx, func(tx *store.Tx) error {
				is := op
				is.State, is.Code, is.Message = c.state, c.code, "cause"
				must(t, tx.Ledger().TransitionOperation(ctx, op, is, nil))
				p, err := tx.Ledger().GetProposal(ctx, ws, "prop_1")
				must(t, err)
				equal(t, fmt.Sprint(p.State, p.Code, p.Message), fmt.Sprint(c.want, c.code, "cause"), "%s", c.state)
				return errTest // rolls back
			})
		}

		list := func(f store.ProposalFilter) string {
			f.Limit = 2
			return joinIDs(view(t, db, func(s *store.Snap) ([]reeve.Proposal, error) {
				return s.Ledger().ListProposals(ctx, ws, f)
			}), func(p reeve.Proposal) string { return p.ID })
		}
		equal(t, list(store.ProposalFilter{}), "prop_3 prop_2", "first page")
		equal(t, list(store.ProposalFilter{Before: "prop_2"}), "prop_1", "second page")
		equal(t, list(store.ProposalFilter{State: reeve.ProposalPending, Before: "prop_3"}), "prop_2", "pending")
		equal(t, list(store.ProposalFilter{State: reeve.ProposalAccepted}), "prop_1", "accepted")
		equal(t, list(store.ProposalFilter{Set: "cs_2", Agent: "agt_one"}), "prop_3", "proposals of a set")
		equal(t, list(store.ProposalFilter{Agent: "agt_two"}), "", "proposals of another agent")
		items := view(t, db, func(s *store.Snap) ([]reeve.Proposal, error) {
			return s.Ledger().ListChangeSetItems(ctx, ws, "cs_1", true, 0, 9)
		})
		equal(t, joinIDs(items, func(p reeve.Proposal) string { return p.ID }), "prop_2", "pending items of a set")
		sets := func(f store.ChangeSetFilter) string {
			f.Limit = 9
			return joinIDs(view(t, db, func(s *store.Snap) ([]reeve.ChangeSet, error) {
				list, cursors, err := s.Ledger().ListChangeSets(ctx, ws, f)
				equal(t, len(cursors), len(list), "cursors")
				return list, err
			}), func(c reeve.ChangeSet) string {
				return fmt.Sprintf("%s:%d+%d", c.ID, c.Counts[reeve.ProposalPending], c.Counts[reeve.ProposalAccepted])
			})
		}
		equal(t, sets(store.ChangeSetFilter{}), "cs_2:1+0 cs_1:1+1", "sets")
		equal(t, sets(store.ChangeSetFilter{Before: "prop_3"}), "cs_1:1+1", "second page of sets")
		equal(t, sets(store.ChangeSetFilter{Pending: true, Agent: "agt_one"}), "cs_2:1+0 cs_1:1+1",
			"sets with pending proposals")
		wantCode(t, db.View(ctx, func(s *store.Snap) error {
			_, err := s.Ledger().GetChangeSet(ctx, "ws_two", "cs_1")
			return err
		}), reeve.NotFound)

		// The operation of an accepted proposal does not park the run that proposed it.
		parkingOperation := func() string {
			return view(t, db, func(s *store.Snap) (string, error) {
				return s.Ledger().FindParkedOperation(ctx, ws,
					op.RunID)
			})
		}
		update(t, db, func(tx *store.Tx) error {
			is := op
			is.State = reeve.Parked
			return tx.Ledger().TransitionOperation(ctx, op, is, nil)
		})
		equal(t, parkingOperation(), "", "operation that parks the run")
		other := newOperation("op_2", reeve.Parked)
		other.RunID = op.RunID
		update(t, db, func(tx *store.Tx) error { return insertOperation(ctx, tx, other) })
		equal(t, parkingOperation(), "op_2", "operation that parks the run")
	},
}
