package storetest

import (
	"fmt"
	"testing"
	"time"

	"reeve"
	"reeve/internal/store"
)

// approvals tests requests for approval and decisions about them.
var approvals = map[string]func(*testing.T, *store.DB){
	"approval": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		insertApproval := func(id, op string, expires time.Time) reeve.Approval {
			a := reeve.Approval{ID: id, WorkspaceID: ws, OperationID: op, CallID: "msg_1", AgentID: "agt_one",
				Tool: "echo", Args: `{"a": 1}`, ArgsHash: "h",
				ToolVersion: "v", Policy: "p", Why: "w", Reason: "r", Preview: "+ a", State: reeve.ApprovalPending,
				ExpiresAt: expires}
			update(t, db, func(tx *store.Tx) error { return tx.Ledger().InsertApproval(ctx, a) })
			return a
		}
		later, past := reeve.Now().Add(time.Hour), reeve.Now().Add(-time.Second)
		a := insertApproval("apr_1", "op_1", later)
		got := view(t, db, func(s *store.Snap) (reeve.Approval, error) {
			return s.Ledger().GetApproval(ctx, ws, "apr_1")
		})
		a.CreatedAt = got.CreatedAt
		if got != a || got.CreatedAt.IsZero() {
			t.Fatalf("round trip:\n got %+v\nwant %+v", got, a)
		}
		wantCode(t, db.View(ctx, func(s *store.Snap) error {
			_, err := s.Ledger().GetApproval(ctx, "ws_two", "apr_1")
			return err
		}), reeve.NotFound)
		insertApproval("apr_2", "op_1", past)
		insertApproval("apr_3", "op_2", later)
		due := view(t, db, func(s *store.Snap) ([]reeve.Approval, error) { return s.Ledger().DueApprovals(ctx, 10) })
		equal(t, joinIDs(due, approvalID), "apr_2", "due approvals")
		update(t, db, func(tx *store.Tx) error {
			last, ok, err := tx.Ledger().LastApproval(ctx, "op_1")
			equal(t, last.ID, "apr_2", "last approval of an operation")
			equal(t, ok, true, "has an approval")
			return err
		})
		list := func(state reeve.ApprovalState, before string, limit int) string {
			return joinIDs(view(t, db, func(s *store.Snap) ([]reeve.Approval, error) {
				return s.Ledger().ListApprovals(ctx, ws, state, before, limit)
			}), approvalID)
		}
		equal(t, list("", "", 2), "apr_3 apr_2", "first page")
		equal(t, list("", "apr_2", 2), "apr_1", "second page")
		errs := runConcurrently(16, func(i int) error {
			mine := a
			mine.State, mine.DecidedBy, mine.Comment = []reeve.ApprovalState{reeve.ApprovalApproved,
				reeve.ApprovalDenied}[i%2],
				fmt.Sprint("user", i), "comment"
			return db.Update(ctx, func(tx *store.Tx) error {
				return tx.Ledger().TransitionApproval(ctx, mine, reeve.ApprovalPending)
			})
		})
		wantOneSuccess(t, errs, reeve.Conflict)
		got = view(t, db, func(s *store.Snap) (reeve.Approval, error) {
			return s.Ledger().GetApproval(ctx, ws, "apr_1")
		})
		for i, err := range errs {
			if err == nil {
				equal(t, got.DecidedBy, fmt.Sprint("user", i), "decided by")
			}
		}
		if got.DecidedAt == nil || got.State == reeve.ApprovalPending {
			t.Fatalf("decided: %+v", got)
		}
		equal(t, list(reeve.ApprovalPending, "", 9), "apr_3", "pending")
		equal(t, list(reeve.ApprovalPending, "apr_3", 9), "", "pending, second page")
		equal(t, list(reeve.ApprovalExpired, "", 9), "apr_2", "expired, although the state is not updated yet")
		for _, v := range view(t, db, func(s *store.Snap) ([]reeve.Approval, error) {
			return s.Ledger().ListApprovals(ctx, ws, "", "", 9)
		}) {
			equal(t, v.State == reeve.ApprovalExpired, v.ID == "apr_2", "%s is expired", v.ID)
		}
	},
}

func approvalID(a reeve.Approval) string { return a.ID }
