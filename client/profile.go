package client

import (
	"context"

	"reeve"
)

// List lists what agents of each kind may do.
func (s ProfileService) List(ctx context.Context) (reeve.ProfileList, error) {
	return get[reeve.ProfileList](ctx, s.conn, path("profiles"), nil)
}

// Set says what agents of a kind may do.
func (s ProfileService) Set(ctx context.Context, kind string, capabilities []string) (reeve.Profile, error) {
	if capabilities == nil {
		capabilities = []string{}
	}
	return put[reeve.Profile](ctx, s.conn, path("profiles", kind), reeve.ProfileRequest{Capabilities: capabilities})
}
