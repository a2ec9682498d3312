package gate

import (
	"context"
	"maps"
	"sync"

	"reeve"
	"reeve/internal/store"
)

// pendingWrites holds writes about operations of this process that failed: outcomes of dispatched calls, and releases
// of operations that were not sent. The worker repeats a write until it succeeds or fails because another process was
// faster. If this process ends first, its operations are recovered like after any crash.
type pendingWrites struct {
	mu     sync.Mutex
	writes map[string]func(context.Context) error // keyed by operation id
}

func (p *pendingWrites) add(operation string, write func(context.Context) error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.writes == nil {
		p.writes = map[string]func(context.Context) error{}
	}
	p.writes[operation] = write
}

// flush tries all writes and reports whether some are left. It does not hold the lock during the writes, because a
// store that does not respond takes long to fail and add must not wait for that.
func (p *pendingWrites) flush(ctx context.Context) bool {
	p.mu.Lock()
	due := p.writes
	p.writes = nil
	p.mu.Unlock()
	if len(due) == 0 {
		return false
	}
	for id, write := range due {
		if err := write(ctx); err == nil || reeve.CodeOf(err) == reeve.Conflict {
			delete(due, id)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.Copy(due, p.writes) // a newer write replaces an older one for the same operation
	p.writes = due
	return len(p.writes) > 0
}

// releaseLater releases an operation that this process may own in the store but does not work on. This happens if the
// commit of the claim is uncertain or came too late. Nothing was sent. The operation is not released if it was written
// since.
func (g *Gate) releaseLater(op reeve.Operation) {
	at := reeve.Now()
	g.pending.add(op.ID, func(ctx context.Context) error {
		return g.DB.Update(ctx, func(tx *store.Tx) error {
			is, found, err := tx.Ledger().FindOperation(ctx, op.WorkspaceID, op.ID)
			if err != nil || !found || is.Owner != g.processID || is.State.IsFinal() || is.UpdatedAt.After(at) {
				return err
			}
			free, now := is, tx.Now()
			free.Owner, free.NextAttemptAt = "", &now
			return tx.Ledger().TransitionOperation(ctx, is, free, nil)
		})
	})
	g.Wakeup()
}
