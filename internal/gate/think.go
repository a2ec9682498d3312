package gate

import (
	"context"
	"errors"

	"reeve"
	"reeve/internal/store"
)

// Think lets a model be asked within the budgets of whoever asks: what it may cost at the most is reserved before, and what it
// cost is charged in the transaction that keeps its answer. Nobody thinks while the kill switch is on.
func (g *Gate) Think(ctx context.Context, who reeve.Call, most reeve.Amount, ask func(context.Context) (reeve.Amount, error),
	keep func(context.Context, *store.Tx) error) error {
	p, err := g.begin(ctx, who)
	if err != nil {
		return err
	}
	if err := p.stopped(); err != nil {
		return err
	}
	p.entry = &entry{tool: reeve.Tool{ID: "model", Effect: reeve.Read, Cost: reeve.Amount{Tokens: most.Tokens, Micros: most.Micros}, TimeoutMS: max(1, most.Millis)}.WithDefaults()}
	var short *exhausted
	if err := p.reserve(ctx); errors.As(err, &short) {
		return short.refusal()
	} else if err != nil {
		return err
	}
	lasting, settled, unsure := context.WithoutCancel(ctx), false, false
	defer func() {
		if !settled { // nor does a brain that panics keep what it had reserved
			p.letGo(ctx)
		}
	}()
	spent, err := ask(ctx)
	if err == nil {
		err = g.DB.Update(lasting, func(tx *store.Tx) error {
			if err := p.spend(lasting, tx, spent); err != nil {
				return err
			}
			return keep(lasting, tx)
		})
		if settled = err == nil; settled {
			return nil
		}
		unsure = reeve.CodeOf(err) == reeve.UnknownOutcome // it may be charged already, and is not twice
	}
	if !unsure && (spent.Tokens > 0 || spent.Micros > 0) { // it was given up, or could not be kept, and costs what it cost
		charged := g.DB.Update(lasting, func(tx *store.Tx) error { return p.spend(lasting, tx, spent) })
		if settled = charged == nil; !settled {
			g.Log.Warn("what a question cost that came to nothing could not be charged", "agent", who.Agent, "error", charged)
		}
	}
	return err
}
