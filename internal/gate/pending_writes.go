package gate

import (
	"context"
	"maps"
	"sync"

	"reeve"
	"reeve/internal/store"
)

// pendingWrites holds writes about operations of this process that the store did not take: outcomes of requests that
// have left, and releases of operations that were not sent. The loop tries them again until the store takes them or
// another process was faster. If this process ends first, the operations are recovered like any other that it left.
type pendingWrites struct {
	mu     sync.Mutex
	writes map[string]func(context.Context) error // by operation
}

func (p *pendingWrites) add(operation string, write func(context.Context) error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.writes == nil {
		p.writes = map[string]func(context.Context) error{}
	}
	p.writes[operation] = write
}

// flush tries all writes, and reports whether some are left. It does not hold the lock meanwhile: a store that does not
// answer takes long to fail, and add must not wait for that.
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
	maps.Copy(due, p.writes) // a newer write for the same operation counts
	p.writes = due
	return len(p.writes) > 0
}

// releaseLater gives back an operation that nobody here works on, though the store may say that this process owns it:
// the commit was never confirmed, or came too late to be acted on. Nothing was sent. An operation that was written
// since is owned for another reason, and stays.
func (g *Gate) releaseLater(op reeve.Operation) {
	at := reeve.Now()
	g.pending.add(op.ID, func(ctx context.Context) error {
		return g.DB.Update(ctx, func(tx *store.Tx) error {
			is, found, err := tx.Ledger().FindOperation(ctx, op.WorkspaceID, op.ID)
			if err != nil || !found || is.Owner != g.processID || is.State.Final() || is.UpdatedAt.After(at) {
				return err
			}
			free, now := is, tx.Now()
			free.Owner, free.NextAttemptAt = "", &now
			return tx.Ledger().TransitionOperation(ctx, is, free, nil)
		})
	})
	g.Wakeup()
}
