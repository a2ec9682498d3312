package gate

import (
	"context"
	"errors"
	"time"

	"reeve"
	"reeve/internal/store"
)

// AskModel calls ask, which sends a request to a model, within the budgets of the caller. It reserves the maximum cost
// first. If the budgets leave less than that, ask gets a lower cap of the answer, down to cost.MinOutput. AskModel
// charges the real cost in the transaction in which save stores the response. It returns an error while the kill switch
// is on.
func (g *Gate) AskModel(ctx context.Context, who reeve.Call, cost reeve.ModelCost,
	ask func(ctx context.Context, maxOutput int64) (reeve.Amount, error),
	save func(context.Context, *store.Tx) error) error {
	req, err := g.newRequest(ctx, who)
	if err != nil {
		return err
	}
	if err := req.checkNotStopped(); err != nil {
		return err
	}
	budget := &reservation{request: req, model: &cost, maxOutput: cost.Output,
		timeout: time.Duration(max(1, cost.Millis)) * time.Millisecond}
	var short *budgetExhausted
	if err := budget.claim(ctx); errors.As(err, &short) {
		return reeve.Errorf(reeve.BudgetExceeded, "%s", short.describe()).Hintf("an owner can raise the budget")
	} else if err != nil {
		return err
	}
	detached, isCharged, isUncertain := context.WithoutCancel(ctx), false, false
	defer func() {
		if !isCharged { // also after a panic
			budget.release(ctx)
		}
	}()
	spent, err := ask(ctx, budget.maxOutput)
	if err == nil {
		err = g.DB.Update(detached, func(tx *store.Tx) error {
			if err := budget.spendInTx(detached, tx, spent); err != nil {
				return err
			}
			return save(detached, tx)
		})
		if isCharged = err == nil; isCharged {
			return nil
		}
		isUncertain = reeve.CodeOf(err) == reeve.UnknownOutcome // it may be charged already
	}
	if !isUncertain && (spent.Tokens > 0 || spent.Micros > 0) { // a response that is not stored is charged too
		failed := g.DB.Update(detached, func(tx *store.Tx) error { return budget.spendInTx(detached, tx, spent) })
		if isCharged = failed == nil; !isCharged {
			g.Log.Warn("could not charge a budget for a model response that was not stored", "agent", who.Agent,
				"error", failed)
		}
	}
	return err
}
