package gate

import (
	"context"
	"errors"
	"time"

	"reeve"
	"reeve/internal/store"
)

// AskModel lets a model be asked within the budgets of the caller. It reserves what the question may cost at the most,
// and charges what it cost in the transaction in which keep stores the answer. It refuses while the kill switch is on.
func (g *Gate) AskModel(ctx context.Context, who reeve.Call, most reeve.Amount, ask func(context.Context) (reeve.Amount,
	error),
	keep func(context.Context, *store.Tx) error) error {
	req, err := g.newRequest(ctx, who)
	if err != nil {
		return err
	}
	if err := req.checkNotStopped(); err != nil {
		return err
	}
	budget := &reservation{request: req, cost: reeve.Amount{Tokens: most.Tokens, Micros: most.Micros},
		timeout: time.Duration(max(1, most.Millis)) * time.Millisecond}
	var short *budgetExhausted
	if err := budget.claim(ctx); errors.As(err, &short) {
		return short.refusal()
	} else if err != nil {
		return err
	}
	lasting, charged, unsure := context.WithoutCancel(ctx), false, false
	defer func() {
		if !charged { // also after a panic
			budget.release(ctx)
		}
	}()
	spent, err := ask(ctx)
	if err == nil {
		err = g.DB.Update(lasting, func(tx *store.Tx) error {
			if err := budget.spendInTx(lasting, tx, spent); err != nil {
				return err
			}
			return keep(lasting, tx)
		})
		if charged = err == nil; charged {
			return nil
		}
		unsure = reeve.CodeOf(err) == reeve.UnknownOutcome // it may be charged already
	}
	if !unsure && (spent.Tokens > 0 || spent.Micros > 0) { // an answer that is not kept costs what it cost
		failed := g.DB.Update(lasting, func(tx *store.Tx) error { return budget.spendInTx(lasting, tx, spent) })
		if charged = failed == nil; !charged {
			g.Log.Warn("could not charge a budget for a model's answer that was not kept", "agent", who.Agent, "error",
				failed)
		}
	}
	return err
}
