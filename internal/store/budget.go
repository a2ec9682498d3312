package store

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"reeve"
)

const budgetQuery = `SELECT b.subject, b.parent, b.on_exceed, limit_calls, limit_tokens, limit_micros, limit_millis,
	used_calls, used_tokens, used_micros, used_millis,
	CAST(COALESCE(sum(r.calls), 0) AS BIGINT), CAST(COALESCE(sum(r.tokens), 0) AS BIGINT), CAST(COALESCE(sum(r.micros),
	0) AS BIGINT), CAST(COALESCE(sum(r.millis), 0) AS BIGINT)
	FROM budgets b LEFT JOIN reservations r ON r.workspace_id = b.workspace_id AND r.subject = b.subject
	WHERE b.workspace_id = $1`

const budgetGroup = ` GROUP BY b.subject, b.parent, b.on_exceed, limit_calls, limit_tokens, limit_micros, limit_millis,
	used_calls, used_tokens,
	used_micros, used_millis ORDER BY b.subject`

func scanBudget(r scanner) (b reeve.Budget, err error) {
	defer wrapCorrupt("budgets", &b.Subject, &err)
	if err := r.Scan(&b.Subject, &b.Parent, &b.OnExceed, &b.Limit.Calls, &b.Limit.Tokens, &b.Limit.Micros,
		&b.Limit.Millis,
		&b.Used.Calls, &b.Used.Tokens, &b.Used.Micros, &b.Used.Millis,
		&b.Reserved.Calls, &b.Reserved.Tokens, &b.Reserved.Micros, &b.Reserved.Millis); err != nil {
		return b, err
	}
	for _, a := range []reeve.Amount{b.Limit, b.Used} {
		if min(a.Calls, a.Tokens, a.Micros, a.Millis) < 0 {
			return b, &columnError{"a limit or a used amount", "is negative"}
		}
	}
	return b, nil
}

// clampAmount limits each part of an amount to the range from 0 to limit.
func clampAmount(a reeve.Amount, limit int64) reeve.Amount {
	clamp := func(n int64) int64 { return min(max(0, n), limit) }
	return reeve.Amount{Calls: clamp(a.Calls), Tokens: clamp(a.Tokens), Micros: clamp(a.Micros),
		Millis: clamp(a.Millis)}
}

// maxReservation bounds one reservation, so that the sum of all reservations does not overflow. It is higher than any
// limit.
const maxReservation = 1 << 53

// PutBudget sets a subject's limits and keeps its used amounts. It refuses a parent that leads back to the budget.
//
// It locks the budget first, like a call that uses the budget, and then increments the workspace's revision.
// Incrementing before reading serializes concurrent changes, so that two of them cannot create a cycle together.
func (t LedgerTx) PutBudget(ctx context.Context, workspace string, b reeve.Budget) error {
	t.tx.announceInbox(workspace, TopicBudgets, "", "")
	if err := firstError(t.lockBudgetRow(ctx, workspace, b.Subject), t.tx.IncrementRevision(ctx, workspace),
		t.checkNoCycle(ctx, workspace, b)); err != nil {
		return err
	}
	return t.tx.exec(ctx, `INSERT INTO budgets (workspace_id, subject, parent, on_exceed, limit_calls, limit_tokens,
		limit_micros, limit_millis,
			used_calls, used_tokens, used_micros, used_millis) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0, 0, 0, 0)
		ON CONFLICT (workspace_id, subject) DO UPDATE SET parent = $3, on_exceed = $4, limit_calls = $5,
		limit_tokens = $6, limit_micros = $7, limit_millis = $8`,
		workspace, b.Subject, b.Parent, string(b.OnExceed), b.Limit.Calls, b.Limit.Tokens, b.Limit.Micros,
		b.Limit.Millis)
}

// checkNoCycle returns a Validation error if the parents of a budget lead back to it.
func (t LedgerTx) checkNoCycle(ctx context.Context, workspace string, b reeve.Budget) error {
	path := []string{b.Subject}
	for parent := b.Parent; parent != ""; {
		if parent == b.Subject {
			return &reeve.Error{Code: reeve.Validation, Message: "budgets would form a cycle: " +
				strings.Join(append(path, parent), ", whose parent is "),
				Hint: "choose a parent that does not depend on this budget, or none",
				Fields: []reeve.Field{{Path: "/parent", Message: "leads back to " + b.Subject,
					Expected: "a budget that does not depend on this one"}}}
		}
		if slices.Contains(path, parent) { // a cycle that was stored by an older version
			return nil
		}
		path = append(path, parent)
		next, _, err := t.GetBudget(ctx, workspace, parent)
		if err != nil {
			return err
		}
		parent = next.Parent
	}
	return nil
}

// DeleteBudget deletes a subject's limits.
func (t LedgerTx) DeleteBudget(ctx context.Context, workspace, subject string) error {
	t.tx.announceInbox(workspace, TopicBudgets, "", "")
	if err := firstError(t.lockBudgetRow(ctx, workspace, subject), t.tx.IncrementRevision(ctx, workspace)); err != nil {
		return err
	}
	n, err := t.tx.execCount(ctx, `DELETE FROM budgets WHERE workspace_id = $1 AND subject = $2`, workspace, subject)
	if err == nil && n == 0 {
		return notFound("budget", subject)
	}
	return err
}

// ListBudgets returns a workspace's budgets.
func (s Ledger) ListBudgets(ctx context.Context, workspace string) ([]reeve.Budget, error) {
	return queryAll(ctx, s.Snap, scanBudget, budgetQuery+budgetGroup, workspace)
}

// HasBudgets reports whether a workspace has budgets, and whether one of them has a parent.
func (s Ledger) HasBudgets(ctx context.Context, workspace string) (has, nested bool, err error) {
	parents, err := queryAll(ctx, s.Snap, scanValue[string], `SELECT DISTINCT parent FROM budgets
		WHERE workspace_id = $1`,
		workspace)
	return len(parents) > 0, slices.ContainsFunc(parents, func(p string) bool { return p != "" }), err
}

// GetBudget returns a subject's budget. It returns false if there is none.
func (s Ledger) GetBudget(ctx context.Context, workspace, subject string) (reeve.Budget, bool, error) {
	return queryOne(ctx, s.Snap, scanBudget, budgetQuery+` AND b.subject = $2`+budgetGroup, workspace, subject)
}

// LockBudget is like GetBudget, but locks the row for a transaction that will reserve or spend.
func (t LedgerTx) LockBudget(ctx context.Context, workspace, subject string) (reeve.Budget, bool, error) {
	if err := t.lockBudgetRow(ctx, workspace, subject); err != nil {
		return reeve.Budget{}, false, err
	}
	return t.GetBudget(ctx, workspace, subject)
}

func (t LedgerTx) lockBudgetRow(ctx context.Context, workspace, subject string) error {
	return t.tx.exec(ctx, `UPDATE budgets SET parent = parent WHERE workspace_id = $1 AND subject = $2`, workspace,
		subject)
}

// Reserve reserves an amount of a budget for a call in progress.
func (t LedgerTx) Reserve(ctx context.Context, workspace, subject, call, owner string, a reeve.Amount) error {
	a = clampAmount(a, maxReservation)
	return t.tx.exec(ctx, `INSERT INTO reservations (workspace_id, subject, call_id, calls, tokens, micros, millis,
		owner) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
		ON CONFLICT (workspace_id, subject, call_id) DO UPDATE SET calls = $4, tokens = $5, micros = $6, millis = $7,
		owner = $8`,
		workspace, subject, call, a.Calls, a.Tokens, a.Micros, a.Millis, owner)
}

// Spend adds the actual cost of a call to its budgets and deletes all its reservations, including those on budgets that
// no longer apply to it.
func (t LedgerTx) Spend(ctx context.Context, workspace string, subjects []string, call string, a reeve.Amount) error {
	if len(subjects) > 0 {
		t.tx.announceInbox(workspace, TopicBudgets, "", "")
	}
	a = clampAmount(a, math.MaxInt64)
	for _, subject := range subjects {
		if err := t.tx.exec(ctx, `UPDATE budgets SET `+addSaturating("used_calls", 3)+`, `+addSaturating("used_tokens",
			4)+`, `+addSaturating("used_micros", 5)+`, `+addSaturating("used_millis", 6)+`
				WHERE workspace_id = $1 AND subject = $2`,
			workspace, subject, a.Calls, a.Tokens, a.Micros, a.Millis); err != nil {
			return err
		}
	}
	if call == "" {
		return nil
	}
	return t.tx.exec(ctx, `DELETE FROM reservations WHERE workspace_id = $1 AND call_id = $2`, workspace, call)
}

// addSaturating returns an assignment that adds an argument to a column. The result is at most the greatest int64. A
// negative column counts as 0.
func addSaturating(column string, arg int) string {
	return fmt.Sprintf(`%[1]s = CASE WHEN %[1]s > %[3]d - $%[2]d THEN %[3]d WHEN %[1]s > 0 THEN %[1]s + $%[2]d
		ELSE $%[2]d END`, column, arg, int64(math.MaxInt64))
}

// DeleteLostReservations deletes the reservations of calls whose process is no longer registered, unless their
// operation is still to be finished. An operation of unknown outcome keeps none; it reserves again when it is repeated.
func (t LedgerTx) DeleteLostReservations(ctx context.Context) error {
	return t.tx.exec(ctx, `DELETE FROM reservations WHERE owner NOT IN (SELECT id FROM processes)
		AND call_id NOT IN (SELECT id FROM calls WHERE state IN ('prepared', 'dispatched'))
		AND call_id NOT IN (SELECT id FROM calls WHERE state IN ('parked', 'unknown')
		AND state = 'parked')`) // each subquery has its own index
}
