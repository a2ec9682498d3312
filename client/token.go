package client

import (
	"context"

	"reeve"
	"reeve/api"
)

// List lists the tokens valid in the workspace.
func (s TokenService) List(ctx context.Context) (api.TokenList, error) {
	return get[api.TokenList](ctx, s.conn, path("tokens"), nil)
}

// Create creates a token. The secret is in this response only.
func (s TokenService) Create(ctx context.Context, t api.TokenRequest) (api.NewToken, error) {
	return post[api.NewToken](ctx, s.conn, path("tokens"), t)
}

// Update changes the role of a token.
func (s TokenService) Update(ctx context.Context, id string, u api.TokenUpdate) (reeve.AccessToken, error) {
	return patch[reeve.AccessToken](ctx, s.conn, path("tokens", id), u)
}

// Revoke revokes a token immediately.
func (s TokenService) Revoke(ctx context.Context, id string) error {
	return s.conn.delete(ctx, path("tokens", id))
}

// NewConsoleLink makes a link that signs in to the web console once, with the rights of the client's token. The code is
// in this response only.
func (s TokenService) NewConsoleLink(ctx context.Context) (api.ConsoleLink, error) {
	return post[api.ConsoleLink](ctx, s.conn, path("console", "links"), nil)
}
