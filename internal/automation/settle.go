package automation

import (
	"context"
	"strconv"

	"reeve"
	"reeve/internal/store"
)

// Settle is a person's word on an item: skip it, or do it anew.
func (r *Room) Settle(ctx context.Context, workspace, id, item string, to reeve.ItemState, why string) (v reeve.Item, err error) {
	err = r.DB.Update(ctx, func(tx *store.Tx) error {
		m, err := tx.GetAutomation(ctx, workspace, id)
		if err != nil {
			return err
		}
		was, err := tx.GetItem(ctx, m.AgentID, item)
		if err != nil {
			return err
		}
		if v, err = tx.SettleItem(ctx, was, to, why); err != nil {
			return err
		}
		said := "a person skipped the item " + strconv.Quote(was.ID)
		if to == reeve.ItemProcessing {
			said = "a person began the item " + strconv.Quote(was.ID) + " anew"
		}
		return r.Gate.Withdraw(ctx, tx, was, said)
	})
	if err == nil {
		r.reopened(v)
	}
	return v, err
}

// reopened tells the runs that are under way here that an item is not as they have read it.
func (r *Room) reopened(v reeve.Item) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range r.live {
		if w.run.AgentID == v.AgentID {
			w.mu.Lock()
			w.again[v.ID], w.untold = true, true
			w.mu.Unlock()
		}
	}
}
