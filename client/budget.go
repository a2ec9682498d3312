package client

import (
	"context"

	"reeve"
)

// Budgets lists the workspace's budgets.
func (c *Client) Budgets(ctx context.Context) (reeve.BudgetList, error) {
	return get[reeve.BudgetList](ctx, c, path("budgets"), nil)
}

// SetBudget limits what a subject may spend: workspace, agent:<id> or run:<id>.
func (c *Client) SetBudget(ctx context.Context, subject string, b reeve.BudgetRequest) (reeve.Budget, error) {
	return put[reeve.Budget](ctx, c, path("budgets", subject), b)
}

// DeleteBudget lifts a subject's limits.
func (c *Client) DeleteBudget(ctx context.Context, subject string) error {
	return c.remove(ctx, path("budgets", subject))
}
