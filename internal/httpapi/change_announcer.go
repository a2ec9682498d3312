package httpapi

import (
	"context"

	"reeve"
	"reeve/internal/gate"
	"reeve/internal/store"
)

// changeAnnouncer commits changes that people make, and wakes the agents that subscribe to them.
type changeAnnouncer struct {
	db   *store.DB
	gate *gate.Gate
}

// update runs change in a transaction. It wakes the agents that subscribe to a token that change returns.
func (a changeAnnouncer) update(ctx context.Context, who reeve.Principal, change func(*store.Tx) ([]reeve.Token,
	error)) error {
	hasTokens := false
	err := a.db.Update(ctx, func(tx *store.Tx) error {
		tokens, err := change(tx)
		if hasTokens = len(tokens) > 0; err != nil || !hasTokens {
			return err
		}
		return tx.Queue().RecordPersonChange(ctx, who.Workspace, tokens, a.gate.Window)
	})
	if err == nil && hasTokens && a.gate.OnChange != nil {
		a.gate.OnChange()
	}
	return err
}
