package client

import (
	"context"
	"encoding/json"
	"io"
	"net/http"

	"reeve/api"
)

// Status returns the state of the server and the identity of the caller.
func (s ServerService) Status(ctx context.Context) (api.Status, error) {
	return get[api.Status](ctx, s.conn, path("status"), nil)
}

// Doctor runs the health checks of the server.
func (s ServerService) Doctor(ctx context.Context) (api.DoctorReport, error) {
	return get[api.DoctorReport](ctx, s.conn, path("doctor"), nil)
}

// CheckHealth returns nil if the server's process is running. It needs no token.
func (s ServerService) CheckHealth(ctx context.Context) error { return s.probe(ctx, "/healthz") }

// CheckReady returns nil if the server can handle requests. It needs no token.
func (s ServerService) CheckReady(ctx context.Context) error { return s.probe(ctx, "/readyz") }

func (s ServerService) probe(ctx context.Context, path string) error {
	return s.conn.do(ctx, &request{method: http.MethodGet, path: path}, nil)
}

// OpenAPI returns the OpenAPI document of the API. It needs no token.
func (s ServerService) OpenAPI(ctx context.Context) (json.RawMessage, error) {
	r := &request{method: http.MethodGet, path: "/openapi.json"}
	resp, err := s.conn.send(ctx, r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, s.conn.requestError(ctx, r, err)
	}
	return b, nil
}
