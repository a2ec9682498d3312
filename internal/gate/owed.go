package gate

import (
	"context"
	"sync"

	"reeve"
)

// owed is what this process knows and could not write down: outcomes of requests that have left, while the store takes no
// writes. The loop tries again until it does; if the process ends first, the operation is taken up like any other it left.
type owed struct {
	mu   sync.Mutex
	debt map[string]func(context.Context) error // by operation
}

// owe answers for an outcome that could not be recorded. The effect may have happened, so the caller must not be told that
// nothing did. Another's claim on the operation settles it.
func (p *pass) owe(op reeve.Operation, record func(context.Context) error, err error) (reeve.Result, error) {
	if reeve.CodeOf(err) == reeve.Conflict {
		return reeve.Result{}, err
	}
	p.g.Log.Error("could not record the outcome of an operation; trying again until it is", "operation", op.ID, "error", err)
	p.g.owed.mu.Lock()
	if p.g.owed.debt == nil {
		p.g.owed.debt = map[string]func(context.Context) error{}
	}
	p.g.owed.debt[op.ID] = record
	p.g.owed.mu.Unlock()
	p.g.nudge()
	return p.pending(op), nil
}

// pay writes down what is owed, and tells whether something still is.
func (o *owed) pay(ctx context.Context) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for id, record := range o.debt {
		if err := record(ctx); err == nil || reeve.CodeOf(err) == reeve.Conflict {
			delete(o.debt, id)
		}
	}
	return len(o.debt) > 0
}
