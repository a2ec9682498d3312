package client

import (
	"context"
	"encoding/json"
	"io"
	"net/http"

	"reeve"
)

// Status tells how the server is, and who the client is to it.
func (c *Client) Status(ctx context.Context) (reeve.Status, error) {
	return get[reeve.Status](ctx, c, path("status"), nil)
}

// Doctor has the server check its parts.
func (c *Client) Doctor(ctx context.Context) (reeve.CheckUp, error) {
	return get[reeve.CheckUp](ctx, c, path("doctor"), nil)
}

// Healthy gives nil when the server's process is up. It needs no token.
func (c *Client) Healthy(ctx context.Context) error { return c.probe(ctx, "/healthz") }

// Ready gives nil when the server can serve. It needs no token.
func (c *Client) Ready(ctx context.Context) error { return c.probe(ctx, "/readyz") }

func (c *Client) probe(ctx context.Context, path string) error {
	return c.do(ctx, &request{method: http.MethodGet, path: path}, nil)
}

// OpenAPI gives the description of the API. It needs no token.
func (c *Client) OpenAPI(ctx context.Context) (json.RawMessage, error) {
	r := &request{method: http.MethodGet, path: "/openapi.json"}
	resp, err := c.send(ctx, r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, c.lost(ctx, r, err)
	}
	return b, nil
}
