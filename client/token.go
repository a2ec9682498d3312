package client

import (
	"context"

	"reeve"
)

// Tokens lists the tokens valid in the workspace.
func (c *Client) Tokens(ctx context.Context) (reeve.TokenList, error) {
	return get[reeve.TokenList](ctx, c, path("tokens"), nil)
}

// CreateToken makes a token. The answer is the only place that shows it.
func (c *Client) CreateToken(ctx context.Context, t reeve.TokenRequest) (reeve.NewToken, error) {
	return post[reeve.NewToken](ctx, c, path("tokens"), t)
}

// RevokeToken makes a token worthless at once.
func (c *Client) RevokeToken(ctx context.Context, id string) error {
	return c.remove(ctx, path("tokens", id))
}
