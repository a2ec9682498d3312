package gate

import (
	"context"
	"errors"

	"reeve"
	"reeve/internal/store"
)

// Thought is one question to a model, seen as something that costs.
type Thought struct {
	Call reeve.Call   // who asks: workspace, agent, run, session
	Most reeve.Amount // what it may cost at the most; reserved before it is asked
	Ask  func(ctx context.Context) (reeve.Amount, error)
	Keep func(ctx context.Context, tx *store.Tx) error // stores the answer, in the transaction that charges for it
}

// Think asks a model within the budgets of whoever asks, and stores the answer with what it cost. Nobody thinks while the kill
// switch is on.
func (g *Gate) Think(ctx context.Context, t Thought) error {
	p, err := g.begin(ctx, t.Call)
	if err != nil {
		return err
	}
	if err := p.view.stopped(); err != nil {
		return err
	}
	p.entry = &entry{tool: reeve.Tool{ID: "model", Effect: reeve.Read, Cost: reeve.Amount{Tokens: t.Most.Tokens, Micros: t.Most.Micros}, TimeoutMS: max(1, t.Most.Millis)}.WithDefaults()}
	var short *exhausted
	if err := p.reserve(ctx); errors.As(err, &short) {
		return short.refusal()
	} else if err != nil {
		return err
	}
	spent, err := t.Ask(ctx)
	if err != nil {
		p.letGo(ctx)
		return err
	}
	keep := context.WithoutCancel(ctx)
	return g.DB.Update(keep, func(tx *store.Tx) error {
		if err := p.spend(keep, tx, spent); err != nil {
			return err
		}
		return t.Keep(keep, tx)
	})
}
