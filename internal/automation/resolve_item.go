package automation

import (
	"context"
	"strconv"

	"reeve"
	"reeve/internal/store"
)

// ResolveItem skips an item or starts it anew, as a person decided. Calls of the item that wait for a person are
// cancelled.
func (s *Service) ResolveItem(ctx context.Context, workspace, id, item string, to reeve.ItemState,
	why string) (v reeve.Item, err error) {
	err = s.DB.Update(ctx, func(tx *store.Tx) error {
		m, err := tx.Automations().GetAutomation(ctx, workspace, id)
		if err != nil {
			return err
		}
		was, err := tx.Automations().GetItem(ctx, m.AgentID, item)
		if err != nil {
			return err
		}
		if v, err = tx.Automations().ResolveItem(ctx, was, to, why); err != nil {
			return err
		}
		said := "a person skipped the item " + strconv.Quote(was.ID)
		if to == reeve.ItemProcessing {
			said = "a person restarted the item " + strconv.Quote(was.ID)
		}
		if err := s.Gate.CancelForItem(ctx, tx, was, said); err != nil {
			return err
		}
		return tx.Ledger().SaveResponse(ctx, v)
	})
	return v, err
}
