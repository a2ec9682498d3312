package client

import (
	"context"
	"encoding/json"
	"io"
	"net/http"

	"reeve/api"
)

// Status tells how the server is, and who the client is to it.
func (s ServerService) Status(ctx context.Context) (api.Status, error) {
	return get[api.Status](ctx, s.conn, path("status"), nil)
}

// Doctor has the server check its parts.
func (s ServerService) Doctor(ctx context.Context) (api.DoctorReport, error) {
	return get[api.DoctorReport](ctx, s.conn, path("doctor"), nil)
}

// CheckHealth returns nil when the server's process is up. It needs no token.
func (s ServerService) CheckHealth(ctx context.Context) error { return s.probe(ctx, "/healthz") }

// CheckReady returns nil when the server can serve. It needs no token.
func (s ServerService) CheckReady(ctx context.Context) error { return s.probe(ctx, "/readyz") }

func (s ServerService) probe(ctx context.Context, path string) error {
	return s.conn.do(ctx, &request{method: http.MethodGet, path: path}, nil)
}

// OpenAPI returns the description of the API. It needs no token.
func (s ServerService) OpenAPI(ctx context.Context) (json.RawMessage, error) {
	r := &request{method: http.MethodGet, path: "/openapi.json"}
	resp, err := s.conn.send(ctx, r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, s.conn.lost(ctx, r, err)
	}
	return b, nil
}
