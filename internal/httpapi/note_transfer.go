package httpapi

import (
	"context"
	"errors"
	"strconv"

	"reeve"
	"reeve/api"
	"reeve/internal/store"
)

// errDryRun undoes the transaction of a dry run.
var errDryRun = errors.New("dry run")

// importNotes imports notes of the caller in one transaction.
func (h *noteHandlers) importNotes(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Body api.NoteImportRequest
}) (*body[api.NoteImport], error) {
	w := personWriter(who, who.User)
	if in.Body.Untrusted {
		w.Origin = reeve.NoteUntrusted
	}
	out := &body[api.NoteImport]{}
	err := h.announcer.update(ctx, who, func(tx *store.Tx) ([]reeve.Token, error) {
		out.Body = api.NoteImport{Results: []reeve.ImportedNote{}, DryRun: in.Body.DryRun}
		for _, r := range in.Body.Notes {
			got, err := tx.Notes().ImportNote(ctx, w, r)
			if err != nil {
				return nil, err
			}
			out.Body.Results = append(out.Body.Results, got)
		}
		if in.Body.DryRun {
			return nil, errDryRun
		}
		return []reeve.Token{{Class: reeve.SemanticKey, Name: reeve.KeyNote}}, tx.Ledger().SaveResponse(ctx, out.Body)
	})
	if errors.Is(err, errDryRun) {
		for i := range out.Body.Results {
			if r := &out.Body.Results[i]; r.Outcome == reeve.NoteCreated {
				r.NoteID = ""
			}
		}
		return out, nil
	}
	if err == nil {
		h.searcher.Wakeup()
	}
	return out, err
}

// export returns all notes of the caller, deleted and replaced ones too.
func (h *noteHandlers) export(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Page
}) (*body[api.NoteExport], error) {
	after, err := parsePositionCursor(in.Cursor, 63)
	if err != nil {
		return nil, err
	}
	out := &body[api.NoteExport]{}
	return out, h.db.View(ctx, func(snap *store.Snap) error {
		var next int64
		var err error
		out.Body.Notes, next, err = snap.Notes().ExportNotes(ctx, who.Workspace, who.User, after, in.Limit)
		if len(out.Body.Notes) == in.Limit {
			out.Body.Next = positionCursor + strconv.FormatInt(next, 10)
		}
		return err
	})
}
