package httpapi

import (
	"context"

	"reeve"
	"reeve/api"
	"reeve/internal/store"
)

// secretHandlers serves the names of secrets and stores their values.
type secretHandlers struct {
	db *store.DB
}

func (h *secretHandlers) list(ctx context.Context, who reeve.Principal, _ *Scoped) (*body[api.SecretList], error) {
	out := &body[api.SecretList]{}
	return out, h.db.View(ctx, func(snap *store.Snap) (err error) {
		out.Body.Secrets, err = snap.Agents().ListSecrets(ctx, who.Workspace)
		return err
	})
}

// SecretPath is the input of routes with a secret's name in the path.
type SecretPath struct {
	Scoped
	Name string `path:"name" minLength:"1" maxLength:"64" pattern:"^[A-Za-z_][A-Za-z0-9_]*$" doc:"Such as GITHUB_TOKEN"`
}

func (h *secretHandlers) put(ctx context.Context, who reeve.Principal, in *struct {
	SecretPath
	Body api.SecretRequest
}) (*none, error) {
	if err := reeve.CheckSecret(in.Body.Value); err != nil {
		return nil, err
	}
	return nil, h.db.Update(ctx, func(tx *store.Tx) error {
		return tx.Agents().PutSecret(ctx, who.Workspace, in.Name, in.Body.Value)
	})
}

func (h *secretHandlers) remove(ctx context.Context, who reeve.Principal, in *SecretPath) (*none, error) {
	return nil, h.db.Update(ctx, func(tx *store.Tx) error {
		return tx.Agents().DeleteSecret(ctx, who.Workspace, in.Name)
	})
}
