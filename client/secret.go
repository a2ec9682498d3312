package client

import (
	"context"
	"net/http"

	"reeve/api"
)

// List lists the names of the workspace's secrets.
func (s SecretService) List(ctx context.Context) (api.SecretList, error) {
	return get[api.SecretList](ctx, s.conn, path("secrets"), nil)
}

// Set stores a secret. No route returns its value.
func (s SecretService) Set(ctx context.Context, name, value string) error {
	return s.conn.do(ctx, &request{method: http.MethodPut, path: path("secrets", name),
		body: api.SecretRequest{Value: value}}, nil)
}

// Delete removes a secret.
func (s SecretService) Delete(ctx context.Context, name string) error {
	return s.conn.delete(ctx, path("secrets", name))
}
