package gate

import (
	"context"
	"maps"
	"sync"

	"reeve"
	"reeve/internal/store"
)

// owed is what this process knows of operations in its hands and could not write down, while the store takes no writes: outcomes of requests that have left, and
// that it lets go of what it has not sent. The loop tries again until it can, or somebody else was faster; if the process ends first, the operation is taken up like any other it left.
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
	p.g.owed.add(op.ID, record)
	p.g.Nudge()
	return pending(op), nil
}

// forGood tells whether the store will never take what it has refused, however often it is asked: it is neither away nor full, and nobody else was faster.
func forGood(err error) bool {
	switch reeve.CodeOf(err) {
	case reeve.Validation, reeve.TooLarge, reeve.Internal, reeve.Corrupt:
		return true
	default:
		return false
	}
}

// bare is an outcome without what its tool said: that it has come to this must be recorded, whatever it was.
func (p *pass) bare(o outcome) outcome {
	o.changed, o.undo = nil, nil
	if o.err == nil {
		o.out = p.g.cut("It happened; what the tool gave could not be recorded.")
	}
	return o
}

// answered is what stands of an operation that somebody else has ended meanwhile, such as whoever brought its outcome or the end of its run.
// Those have charged for it. One that is still open is another's, which is a conflict.
func (p *pass) answered(ctx context.Context, was reeve.Operation) (is reeve.Operation, res reeve.Result, err error) {
	err = p.g.DB.View(ctx, func(s *store.Snap) error {
		c, err := s.GetCall(ctx, was.WorkspaceID, was.CallID)
		if err != nil {
			return err
		}
		if c.Result == nil {
			return reeve.Errorf(reeve.Conflict, "operation %s is in other hands", was.ID)
		}
		is = c.Operation
		res, err = stored(c)
		return err
	})
	return is, res, err
}

// disown gives back an operation that nobody here works on, though it may be in this process's hands by the store: the commit that put it there was never answered, or came too
// late to be acted on. Nothing was sent. Whoever takes it up then, finds out. One that was written since is in somebody's hands again.
func (g *Gate) disown(op reeve.Operation) {
	at := reeve.Now()
	g.owed.add(op.ID, func(ctx context.Context) error {
		return g.DB.Update(ctx, func(tx *store.Tx) error {
			is, found, err := tx.FindOperation(ctx, op.WorkspaceID, op.ID)
			if err != nil || !found || is.Owner != g.process || is.State.Final() || is.UpdatedAt.After(at) {
				return err
			}
			free, now := is, tx.Now()
			free.Owner, free.NextAttemptAt = "", &now
			return tx.MoveOperation(ctx, is, free, nil)
		})
	})
	g.Nudge()
}

func (o *owed) add(operation string, record func(context.Context) error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.debt == nil {
		o.debt = map[string]func(context.Context) error{}
	}
	o.debt[operation] = record
}

// pay writes down what is owed, and tells whether something still is. It takes it out meanwhile: a store that does not answer takes long to say so, and whoever owes something must not wait for that.
func (o *owed) pay(ctx context.Context) bool {
	o.mu.Lock()
	due := o.debt
	o.debt = nil
	o.mu.Unlock()
	if len(due) == 0 {
		return false
	}
	for id, record := range due {
		if err := record(ctx); err == nil || reeve.CodeOf(err) == reeve.Conflict {
			delete(due, id)
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	maps.Copy(due, o.debt) // what is owed anew counts
	o.debt = due
	return len(o.debt) > 0
}
