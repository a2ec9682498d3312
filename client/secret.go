package client

import (
	"context"
	"net/http"

	"reeve"
)

// Secrets lists the names of the workspace's secrets.
func (c *Client) Secrets(ctx context.Context) (reeve.SecretList, error) {
	return get[reeve.SecretList](ctx, c, path("secrets"), nil)
}

// SetSecret stores a secret. No route gives its value back.
func (c *Client) SetSecret(ctx context.Context, name, value string) error {
	return c.do(ctx, &request{method: http.MethodPut, path: path("secrets", name), body: reeve.SecretRequest{Value: value}}, nil)
}

// DeleteSecret removes a secret.
func (c *Client) DeleteSecret(ctx context.Context, name string) error {
	return c.remove(ctx, path("secrets", name))
}
