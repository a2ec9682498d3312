package host

import (
	"context"

	"reeve/internal/store"
)

// payloadStore stores the old content of files that a tool replaces, so that the change can be undone.
type payloadStore struct{ db *store.DB }

func (k payloadStore) Put(ctx context.Context, workspace string, b []byte) (hash string, err error) {
	err = k.db.Update(ctx, func(tx *store.Tx) error {
		hash, err = tx.Ledger().PutPayload(ctx, workspace, store.UndoPayload, b)
		return err
	})
	return hash, err
}

func (k payloadStore) Get(ctx context.Context, workspace, hash string) (b []byte, err error) {
	err = k.db.View(ctx, func(s *store.Snap) error {
		got, err := s.Ledger().GetPayload(ctx, workspace, store.UndoPayload, hash, 0, -1)
		b = got.Body
		return err
	})
	return b, err
}
