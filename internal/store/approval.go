package store

import (
	"context"

	"reeve"
)

const approvalColumns = `id, workspace_id, operation_id, call_id, agent_id, tool, args, args_hash, tool_version, policy,
	why, reason, preview,
	state, decided_by, comment, decided_at, expires_at, created_at, private_to`

func scanApproval(r scanner) (a reeve.Approval, err error) {
	defer wrapCorrupt("approvals", &a.ID, &err)
	var decided, expires, created int64
	err = r.Scan(&a.ID, &a.WorkspaceID, &a.OperationID, &a.CallID, &a.AgentID, &a.Tool, &a.Args, &a.ArgsHash,
		&a.ToolVersion, &a.Policy, &a.Why,
		&a.Reason, &a.Preview, &a.State, &a.DecidedBy, &a.Comment, &decided, &expires, &created,
		&a.PrivateTo)
	a.DecidedAt, a.ExpiresAt, a.CreatedAt = timeOrNil(decided), reeve.FromMillis(expires), reeve.FromMillis(created)
	return a, err
}

// InsertApproval inserts a pending approval.
func (t LedgerTx) InsertApproval(ctx context.Context, a reeve.Approval) error {
	t.tx.announceInbox(a.WorkspaceID, TopicApprovals, announcedID(a.ID, a.PrivateTo), "")
	return t.tx.exec(ctx, `INSERT INTO approvals (`+approvalColumns+`)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, '', '', 0, $15, $16, $17)`,
		a.ID, a.WorkspaceID, a.OperationID, a.CallID, a.AgentID, a.Tool, reeve.SanitizeText(a.Args), a.ArgsHash,
		a.ToolVersion, a.Policy, a.Why, reeve.SanitizeText(a.Reason), reeve.SanitizeText(a.Preview),
		string(a.State), reeve.Millis(a.ExpiresAt), reeve.Millis(t.now), a.PrivateTo)
}

// GetApproval returns an approval of a workspace.
func (s Ledger) GetApproval(ctx context.Context, workspace, id string) (reeve.Approval, error) {
	a, ok, err := queryOne(ctx, s.Snap, scanApproval, `SELECT `+approvalColumns+
		` FROM approvals WHERE workspace_id = $1 AND id = $2`, workspace, id)
	if err == nil && (!ok || !s.canSee(a.PrivateTo)) {
		return reeve.Approval{}, notFound("approval", id)
	}
	return a, err
}

// LastApproval returns the newest approval of an operation. It returns false if there is none.
func (s Ledger) LastApproval(ctx context.Context, operation string) (reeve.Approval, bool, error) {
	return queryOne(ctx, s.Snap, scanApproval, `SELECT `+approvalColumns+
		` FROM approvals WHERE operation_id = $1 ORDER BY id DESC LIMIT 1`, operation)
}

// ApprovalsOf returns all approvals of an operation, oldest first.
func (s Ledger) ApprovalsOf(ctx context.Context, operation string) ([]reeve.Approval, error) {
	return queryAll(ctx, s.Snap, scanApproval, `SELECT `+approvalColumns+
		` FROM approvals WHERE operation_id = $1 ORDER BY id`, operation)
}

// ListApprovals returns a page of approvals before an id, newest first. An approval whose time has passed counts as
// expired. An empty state means all.
func (s Ledger) ListApprovals(ctx context.Context, workspace string, state reeve.ApprovalState, before string,
	limit int) ([]reeve.Approval, error) {
	where := `workspace_id = $1 AND ($2 = '' OR CASE WHEN state = 'pending' AND expires_at <= $4 THEN 'expired'
		ELSE state END = $2)`
	args := []any{workspace, string(state), limit, reeve.Millis(s.now)}
	if state == reeve.ApprovalPending {
		where += ` AND state = 'pending'` // uses the index of pending approvals
	}
	if before != "" { // a separate condition, so that the index scan starts there
		where, args = where+` AND id < $5`, append(args, before)
	}
	where, args = s.onlyVisible(`private_to`, where, args)
	return queryAll(ctx, s.Snap, func(r scanner) (reeve.Approval, error) {
		a, err := scanApproval(r)
		return a.AsOf(s.now), err
	}, `SELECT `+approvalColumns+` FROM approvals WHERE `+where+` ORDER BY id DESC LIMIT $3`, args...)
}

// DueApprovals returns pending approvals that have expired.
func (s Ledger) DueApprovals(ctx context.Context, limit int) ([]reeve.Approval, error) {
	return queryAll(ctx, s.Snap, skipCorrupt(s.Snap, scanApproval, nil), `SELECT `+approvalColumns+` FROM approvals
		WHERE state = 'pending' AND expires_at <= $1
		ORDER BY expires_at LIMIT $2`, reeve.Millis(s.now), limit)
}

// NextExpiry returns the time, in milliseconds, at which the next pending approval expires. It returns false if there
// is none.
func (s Ledger) NextExpiry(ctx context.Context) (int64, bool, error) {
	return queryOne(ctx, s.Snap, skipCorrupt(s.Snap, dueRow("approvals"), nil),
		`SELECT id, expires_at FROM approvals WHERE state = 'pending' AND expires_at > $1 ORDER BY expires_at LIMIT 1`,
		reeve.Millis(s.now))
}

// TransitionApproval stores the decision on an approval. It returns a Conflict if the approval is no longer in the
// state from.
func (t LedgerTx) TransitionApproval(ctx context.Context, a reeve.Approval, from reeve.ApprovalState) error {
	t.tx.announceInbox(a.WorkspaceID, TopicApprovals, announcedID(a.ID, a.PrivateTo), "")
	n, err := t.tx.execCount(ctx,
		`UPDATE approvals SET state = $3, decided_by = $4, comment = $5, decided_at = $6 WHERE id = $1 AND state = $2`,
		a.ID, string(from), string(a.State), a.DecidedBy, reeve.SanitizeText(a.Comment), reeve.Millis(t.now))
	if err == nil && n == 0 {
		return reeve.Errorf(reeve.Conflict, "approval %s was decided already", a.ID).
			Hintf("read the approval to see the decision; the first decision counts")
	}
	return err
}
