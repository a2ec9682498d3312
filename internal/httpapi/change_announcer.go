package httpapi

import (
	"context"

	"reeve"
	"reeve/internal/gate"
	"reeve/internal/store"
)

// changeAnnouncer commits changes that people make and wakes the agents that watch them.
type changeAnnouncer struct {
	db   *store.DB
	gate *gate.Gate
}

// update commits a person's change, and wakes the agents that watch one of the tokens that change returns.
func (a changeAnnouncer) update(ctx context.Context, who reeve.Principal, change func(*store.Tx) ([]reeve.Token,
	error)) error {
	told := false
	err := a.db.Update(ctx, func(tx *store.Tx) error {
		tokens, err := change(tx)
		if told = len(tokens) > 0; err != nil || !told {
			return err
		}
		return tx.Queue().RecordPersonChange(ctx, who.Workspace, tokens, a.gate.Window)
	})
	if err == nil && told && a.gate.OnChange != nil {
		a.gate.OnChange()
	}
	return err
}
