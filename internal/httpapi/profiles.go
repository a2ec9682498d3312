package httpapi

import (
	"context"
	"slices"

	"reeve"
	"reeve/api"
	"reeve/internal/gate"
	"reeve/internal/store"
)

// profileHandlers serves capability profiles.
type profileHandlers struct {
	db   *store.DB
	gate *gate.Gate
}

func (h *profileHandlers) list(ctx context.Context, who reeve.Principal, _ *Scoped) (*body[api.ProfileList], error) {
	out := &body[api.ProfileList]{}
	err := h.db.View(ctx, func(snap *store.Snap) (err error) {
		out.Body.Profiles, err = h.gate.Catalogue.Profiles(ctx, snap, who.Workspace)
		return err
	})
	return out, err
}

func (h *profileHandlers) put(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Kind string `path:"kind" minLength:"1" maxLength:"64" pattern:"^[a-z][a-z0-9_.-]*$"`
	Body api.ProfileRequest
}) (*body[reeve.Profile], error) {
	p := reeve.Profile{Kind: in.Kind, Capabilities: slices.Compact(slices.Sorted(slices.Values(in.Body.Capabilities)))}
	return &body[reeve.Profile]{p}, h.db.Update(ctx, func(tx *store.Tx) error {
		return tx.Agents().PutProfile(ctx, who.Workspace, p)
	})
}
