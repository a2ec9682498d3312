package httpapi

import (
	"context"

	"reeve"
	"reeve/api"
	"reeve/internal/store"
)

// workspaceHandlers serves workspaces.
type workspaceHandlers struct {
	db *store.DB
}

func (h *workspaceHandlers) list(ctx context.Context, who reeve.Principal,
	_ *Scoped) (*body[api.WorkspaceList], error) {
	out := &body[api.WorkspaceList]{Body: api.WorkspaceList{Workspaces: []reeve.Workspace{}}}
	return out, h.db.View(ctx, func(snap *store.Snap) error {
		c, _, err := snap.Agents().GetCredential(ctx, who.TokenID)
		if err != nil {
			return err
		}
		for _, id := range c.Workspaces {
			w, err := snap.Agents().GetWorkspace(ctx, id)
			if err != nil {
				return err
			}
			out.Body.Workspaces = append(out.Body.Workspaces, w)
		}
		return nil
	})
}

// create creates a workspace. At first only server tokens are valid in it.
func (h *workspaceHandlers) create(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Body api.WorkspaceRequest
}) (*body[reeve.Workspace], error) {
	name := in.Body.Name
	if name == "" {
		name = in.Body.ID
	}
	out := &body[reeve.Workspace]{}
	return out, h.db.Update(ctx, func(tx *store.Tx) (err error) {
		if err := checkServerToken(ctx, &tx.Snap, who); err != nil {
			return err
		}
		if out.Body, err = tx.Agents().InsertWorkspace(ctx, in.Body.ID, name); err != nil {
			return err
		}
		return tx.Ledger().SaveResponse(ctx, out.Body)
	})
}
