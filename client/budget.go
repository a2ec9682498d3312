package client

import (
	"context"

	"reeve"
	"reeve/api"
)

// List lists the workspace's budgets.
func (s BudgetService) List(ctx context.Context) (api.BudgetList, error) {
	return get[api.BudgetList](ctx, s.conn, path("budgets"), nil)
}

// Set sets the limits of a subject: workspace, agent:<id> or run:<id>.
func (s BudgetService) Set(ctx context.Context, subject string, b api.BudgetRequest) (reeve.Budget, error) {
	return put[reeve.Budget](ctx, s.conn, path("budgets", subject), b)
}

// Delete removes a subject's limits.
func (s BudgetService) Delete(ctx context.Context, subject string) error {
	return s.conn.delete(ctx, path("budgets", subject))
}
