package store

import (
	"context"

	"reeve"
)

const budgetQuery = `SELECT b.subject, b.parent, b.on_exceed, limit_calls, limit_tokens, limit_micros, limit_millis, used_calls, used_tokens,
	used_micros, used_millis, CAST(COALESCE(sum(r.calls), 0) AS BIGINT), CAST(COALESCE(sum(r.tokens), 0) AS BIGINT), CAST(COALESCE(sum(r.micros), 0) AS BIGINT), CAST(COALESCE(sum(r.millis), 0) AS BIGINT)
	FROM budgets b LEFT JOIN reservations r ON r.workspace_id = b.workspace_id AND r.subject = b.subject WHERE b.workspace_id = $1`

const budgetGroup = ` GROUP BY b.subject, b.parent, b.on_exceed, limit_calls, limit_tokens, limit_micros, limit_millis, used_calls, used_tokens,
	used_micros, used_millis ORDER BY b.subject`

func scanBudget(r scanner) (b reeve.Budget, err error) {
	return b, r.Scan(&b.Subject, &b.Parent, &b.OnExceed, &b.Limit.Calls, &b.Limit.Tokens, &b.Limit.Micros, &b.Limit.Millis,
		&b.Used.Calls, &b.Used.Tokens, &b.Used.Micros, &b.Used.Millis,
		&b.Reserved.Calls, &b.Reserved.Tokens, &b.Reserved.Micros, &b.Reserved.Millis)
}

// PutBudget sets a subject's limits; what it has used stays.
func (t *Tx) PutBudget(ctx context.Context, workspace string, b reeve.Budget) error {
	if err := t.Touch(ctx, workspace); err != nil {
		return err
	}
	return t.exec(ctx, `INSERT INTO budgets (workspace_id, subject, parent, on_exceed, limit_calls, limit_tokens, limit_micros, limit_millis,
			used_calls, used_tokens, used_micros, used_millis) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0, 0, 0, 0)
		ON CONFLICT (workspace_id, subject) DO UPDATE SET parent = $3, on_exceed = $4, limit_calls = $5, limit_tokens = $6, limit_micros = $7, limit_millis = $8`,
		workspace, b.Subject, b.Parent, string(b.OnExceed), b.Limit.Calls, b.Limit.Tokens, b.Limit.Micros, b.Limit.Millis)
}

// DeleteBudget removes a subject's limits.
func (t *Tx) DeleteBudget(ctx context.Context, workspace, subject string) error {
	if err := t.Touch(ctx, workspace); err != nil {
		return err
	}
	n, err := t.affect(ctx, `DELETE FROM budgets WHERE workspace_id = $1 AND subject = $2`, workspace, subject)
	if err == nil && n == 0 {
		return notFound("budget", subject)
	}
	return err
}

// ListBudgets reads a workspace's budgets.
func (s *Snap) ListBudgets(ctx context.Context, workspace string) ([]reeve.Budget, error) {
	return all(ctx, s, scanBudget, budgetQuery+budgetGroup, workspace)
}

// GetBudget reads one budget; false means that the subject has none.
func (s *Snap) GetBudget(ctx context.Context, workspace, subject string) (reeve.Budget, bool, error) {
	return one(ctx, s, scanBudget, budgetQuery+` AND b.subject = $2`+budgetGroup, workspace, subject)
}

// LockBudget is GetBudget for a transaction that will reserve or spend: others that would wait.
func (t *Tx) LockBudget(ctx context.Context, workspace, subject string) (reeve.Budget, bool, error) {
	if err := t.exec(ctx, `UPDATE budgets SET parent = parent WHERE workspace_id = $1 AND subject = $2`, workspace, subject); err != nil {
		return reeve.Budget{}, false, err
	}
	return t.GetBudget(ctx, workspace, subject)
}

// Reserve claims an amount of a budget for a call under way.
func (t *Tx) Reserve(ctx context.Context, workspace, subject, call, owner string, a reeve.Amount) error {
	return t.exec(ctx, `INSERT INTO reservations (workspace_id, subject, call_id, calls, tokens, micros, millis, owner) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
		ON CONFLICT (workspace_id, subject, call_id) DO UPDATE SET calls = $4, tokens = $5, micros = $6, millis = $7, owner = $8`,
		workspace, subject, call, a.Calls, a.Tokens, a.Micros, a.Millis, owner)
}

// Spend turns a call's claims into what it really cost, on each budget it draws on. All its claims go, also on budgets that it
// drew on when it began and does not any more.
func (t *Tx) Spend(ctx context.Context, workspace string, subjects []string, call string, a reeve.Amount) error {
	for _, subject := range subjects {
		if err := t.exec(ctx, `UPDATE budgets SET used_calls = used_calls + $3, used_tokens = used_tokens + $4, used_micros = used_micros + $5,
				used_millis = used_millis + $6 WHERE workspace_id = $1 AND subject = $2`,
			workspace, subject, a.Calls, a.Tokens, a.Micros, a.Millis); err != nil {
			return err
		}
	}
	if call == "" {
		return nil
	}
	return t.exec(ctx, `DELETE FROM reservations WHERE workspace_id = $1 AND call_id = $2`, workspace, call)
}

// ReleaseLost drops the claims of calls whose process is gone and that left no operation to finish.
func (t *Tx) ReleaseLost(ctx context.Context) error {
	return t.exec(ctx, `DELETE FROM reservations WHERE owner NOT IN (SELECT id FROM processes)
		AND call_id NOT IN (SELECT call_id FROM operations WHERE state IN ('prepared', 'dispatched'))
		AND call_id NOT IN (SELECT call_id FROM operations WHERE state IN ('parked', 'unknown'))`) // each has its index
}
