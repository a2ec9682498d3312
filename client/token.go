package client

import (
	"context"

	"reeve"
)

// List lists the tokens valid in the workspace.
func (s TokenService) List(ctx context.Context) (reeve.TokenList, error) {
	return get[reeve.TokenList](ctx, s.conn, path("tokens"), nil)
}

// Create makes a token. The answer is the only place that shows it.
func (s TokenService) Create(ctx context.Context, t reeve.TokenRequest) (reeve.NewToken, error) {
	return post[reeve.NewToken](ctx, s.conn, path("tokens"), t)
}

// Revoke makes a token worthless at once.
func (s TokenService) Revoke(ctx context.Context, id string) error {
	return s.conn.remove(ctx, path("tokens", id))
}
