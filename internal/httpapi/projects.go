package httpapi

import (
	"context"

	"reeve"
	"reeve/api"
	"reeve/internal/store"
)

// hideProjectPath clears the project's path on the server's disk unless the caller is an owner.
func hideProjectPath(who reeve.Principal, p reeve.Project) reeve.Project {
	if !who.Role.Allows(reeve.Owner) {
		p.Path = ""
	}
	return p
}

// projectHandlers serves projects: the repositories that agents may work on.
type projectHandlers struct {
	db       *store.DB
	branches Branches
}

func (h *projectHandlers) list(ctx context.Context, who reeve.Principal, _ *Scoped) (*body[api.ProjectList], error) {
	out := &body[api.ProjectList]{}
	return out, h.db.View(ctx, func(snap *store.Snap) (err error) {
		out.Body.Projects, err = snap.Agents().ListProjects(ctx, who.Workspace)
		for i, p := range out.Body.Projects {
			out.Body.Projects[i] = hideProjectPath(who, p)
		}
		return err
	})
}

func (h *projectHandlers) create(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Body reeve.ProjectRequest
}) (*body[reeve.Project], error) {
	// the path may be any directory of the server, including those of other workspaces
	if err := h.db.View(ctx, func(snap *store.Snap) error { return checkServerToken(ctx, snap, who) }); err != nil {
		return nil, err
	}
	if err := reeve.CheckName(in.Body.Name); err != nil {
		return nil, err
	}
	p, err := h.branches.NewProject(ctx, who, in.Body)
	if err != nil {
		return nil, err
	}
	out := &body[reeve.Project]{}
	return out, h.db.Update(ctx, func(tx *store.Tx) error {
		p.ID, p.CreatedAt = tx.NewID(reeve.PrefixProject), tx.Now()
		out.Body = p
		if err := tx.Agents().InsertProject(ctx, p); err != nil {
			return err
		}
		return tx.Ledger().SaveResponse(ctx, out.Body)
	})
}

func (h *projectHandlers) get(ctx context.Context, who reeve.Principal, in *IDPath) (*body[reeve.Project], error) {
	out := &body[reeve.Project]{}
	return out, h.db.View(ctx, func(snap *store.Snap) error {
		p, err := snap.Agents().GetProject(ctx, who.Workspace, in.ID)
		out.Body = hideProjectPath(who, p)
		return err
	})
}

func (h *projectHandlers) remove(ctx context.Context, who reeve.Principal, in *IDPath) (*none, error) {
	return nil, h.db.Update(ctx, func(tx *store.Tx) error {
		p, err := tx.Agents().GetProject(ctx, who.Workspace, in.ID)
		if err != nil {
			return err
		}
		return tx.Agents().DeleteProject(ctx, p)
	})
}
