package store

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"reeve"
)

const budgetQuery = `SELECT b.subject, b.parent, b.on_exceed, limit_calls, limit_tokens, limit_micros, limit_millis, used_calls, used_tokens, used_micros, used_millis,
	CAST(COALESCE(sum(r.calls), 0) AS BIGINT), CAST(COALESCE(sum(r.tokens), 0) AS BIGINT), CAST(COALESCE(sum(r.micros), 0) AS BIGINT), CAST(COALESCE(sum(r.millis), 0) AS BIGINT)
	FROM budgets b LEFT JOIN reservations r ON r.workspace_id = b.workspace_id AND r.subject = b.subject WHERE b.workspace_id = $1`

const budgetGroup = ` GROUP BY b.subject, b.parent, b.on_exceed, limit_calls, limit_tokens, limit_micros, limit_millis, used_calls, used_tokens,
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
			return b, &columnError{"a limit or a use", "is less than 0"}
		}
	}
	return b, nil
}

// spendable is an amount that can be spent: none of it is less than nothing, nor more than so much.
func spendable(a reeve.Amount, most int64) reeve.Amount {
	fit := func(n int64) int64 { return min(max(0, n), most) }
	return reeve.Amount{Calls: fit(a.Calls), Tokens: fit(a.Tokens), Micros: fit(a.Micros), Millis: fit(a.Millis)}
}

// mostClaimed bounds one claim, so that all claims on a budget can be summed. No limit is as high.
const mostClaimed = 1 << 53

// PutBudget sets a subject's limits; what it has used stays. A parent that leads back to the budget is refused. The
// workspace is touched before anything is read: of two changes that would make a circle together, the second finds the
// first. The budget is held before that, as by a call that draws on it: one order of locks.
func (t LedgerTx) PutBudget(ctx context.Context, workspace string, b reeve.Budget) error {
	if err := first(t.lockBudgetRow(ctx, workspace, b.Subject), t.tx.Touch(ctx, workspace),
		t.leadsOut(ctx, workspace, b)); err != nil {
		return err
	}
	return t.tx.exec(ctx, `INSERT INTO budgets (workspace_id, subject, parent, on_exceed, limit_calls, limit_tokens, limit_micros, limit_millis,
			used_calls, used_tokens, used_micros, used_millis) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0, 0, 0, 0)
		ON CONFLICT (workspace_id, subject) DO UPDATE SET parent = $3, on_exceed = $4, limit_calls = $5, limit_tokens = $6, limit_micros = $7, limit_millis = $8`,
		workspace, b.Subject, b.Parent, string(b.OnExceed), b.Limit.Calls, b.Limit.Tokens, b.Limit.Micros,
		b.Limit.Millis)
}

// leadsOut refuses a budget whose parents lead back to it.
func (t LedgerTx) leadsOut(ctx context.Context, workspace string, b reeve.Budget) error {
	path := []string{b.Subject}
	for parent := b.Parent; parent != ""; {
		if parent == b.Subject {
			return &reeve.Error{Code: reeve.Validation, Message: "the budgets would be a circle: " +
				strings.Join(append(path, parent), ", whose parent is "),
				Hint: "give it a parent that does not draw on it, or none",
				Fields: []reeve.Field{{Path: "/parent", Message: "leads back to " + b.Subject,
					Expected: "a budget that does not draw on this one"}}}
		}
		if slices.Contains(path, parent) { // a circle from before they were refused
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

// DeleteBudget removes a subject's limits.
func (t LedgerTx) DeleteBudget(ctx context.Context, workspace, subject string) error {
	if err := first(t.lockBudgetRow(ctx, workspace, subject), t.tx.Touch(ctx, workspace)); err != nil {
		return err
	}
	n, err := t.tx.affect(ctx, `DELETE FROM budgets WHERE workspace_id = $1 AND subject = $2`, workspace, subject)
	if err == nil && n == 0 {
		return notFound("budget", subject)
	}
	return err
}

// ListBudgets reads a workspace's budgets.
func (s Ledger) ListBudgets(ctx context.Context, workspace string) ([]reeve.Budget, error) {
	return all(ctx, s.Snap, scanBudget, budgetQuery+budgetGroup, workspace)
}

// HasBudgets tells whether a workspace has budgets, and whether one of them has a parent.
func (s Ledger) HasBudgets(ctx context.Context, workspace string) (has, nested bool, err error) {
	parents, err := all(ctx, s.Snap, value[string], `SELECT DISTINCT parent FROM budgets WHERE workspace_id = $1`,
		workspace)
	return len(parents) > 0, slices.ContainsFunc(parents, func(p string) bool { return p != "" }), err
}

// GetBudget reads one budget; false means that the subject has none.
func (s Ledger) GetBudget(ctx context.Context, workspace, subject string) (reeve.Budget, bool, error) {
	return one(ctx, s.Snap, scanBudget, budgetQuery+` AND b.subject = $2`+budgetGroup, workspace, subject)
}

// LockBudget is GetBudget for a transaction that will reserve or spend: others that would wait.
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

// Reserve claims an amount of a budget for a call under way.
func (t LedgerTx) Reserve(ctx context.Context, workspace, subject, call, owner string, a reeve.Amount) error {
	a = spendable(a, mostClaimed)
	return t.tx.exec(ctx, `INSERT INTO reservations (workspace_id, subject, call_id, calls, tokens, micros, millis, owner) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
		ON CONFLICT (workspace_id, subject, call_id) DO UPDATE SET calls = $4, tokens = $5, micros = $6, millis = $7, owner = $8`,
		workspace, subject, call, a.Calls, a.Tokens, a.Micros, a.Millis, owner)
}

// Spend turns a call's claims into what it really cost, on each budget it draws on. All its claims go, also on budgets
// that it drew on when it began and does not any more.
func (t LedgerTx) Spend(ctx context.Context, workspace string, subjects []string, call string, a reeve.Amount) error {
	a = spendable(a, math.MaxInt64)
	for _, subject := range subjects {
		if err := t.tx.exec(ctx, `UPDATE budgets SET `+added("used_calls", 3)+`, `+added("used_tokens", 4)+`, `+added("used_micros", 5)+`, `+added("used_millis", 6)+`
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

// added adds an argument to a column. What is more than can be counted stays the most that can, and what was less than
// nothing counts as nothing.
func added(column string, arg int) string {
	return fmt.Sprintf(`%[1]s = CASE WHEN %[1]s > %[3]d - $%[2]d THEN %[3]d WHEN %[1]s > 0 THEN %[1]s + $%[2]d ELSE $%[2]d END`, column, arg, int64(math.MaxInt64))
}

// ReleaseLost drops the claims of calls whose process is gone and that left no operation to finish. One of unknown
// outcome holds none: run again, it claims anew.
func (t LedgerTx) ReleaseLost(ctx context.Context) error {
	return t.tx.exec(ctx, `DELETE FROM reservations WHERE owner NOT IN (SELECT id FROM processes)
		AND call_id NOT IN (SELECT id FROM calls WHERE state IN ('prepared', 'dispatched'))
		AND call_id NOT IN (SELECT id FROM calls WHERE state IN ('parked', 'unknown') AND state = 'parked')`) // each has its index
}
