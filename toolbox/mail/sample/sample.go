// Package sample contains a small mailbox for trials: 24 mails of the staff of a fictitious nursery.
package sample

import (
	"bytes"
	"context"
	_ "embed" // for the mails
	"encoding/json"

	"reeve"
	"reeve/internal/store"
)

//go:embed mail.jsonl
var mails []byte

// Source is the source name of the sample's import.
const Source = "sample"

// Mails returns the mails of the sample.
func Mails() ([]reeve.Email, error) {
	var list []reeve.Email
	for text := range bytes.Lines(mails) {
		var e reeve.Email
		if err := json.Unmarshal(text, &e); err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return list, nil
}

// Import imports the sample into a workspace. A second import changes nothing.
func Import(ctx context.Context, db *store.DB, workspace string) (v reeve.MailImport, err error) {
	list, err := Mails()
	if err != nil {
		return v, err
	}
	lines := make([]reeve.MailLine, len(list))
	for i := range list {
		lines[i].Email = &list[i]
	}
	return v, db.Update(ctx, func(tx *store.Tx) error {
		if v, err = tx.Mail().BeginImport(ctx, workspace, "", reeve.MailImportRequest{Source: Source}); err != nil {
			return err
		}
		if _, err = tx.Mail().AddBatch(ctx, workspace, v.ID, store.MailBatch{After: v.Position, Position: "end",
			Hash: reeve.Hash(mails), Lines: lines}); err != nil {
			return err
		}
		v, err = tx.Mail().FinishImport(ctx, workspace, v.ID, "end")
		return err
	})
}
