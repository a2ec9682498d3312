package client

import (
	"context"

	"reeve"
	"reeve/api"
)

// List lists the capability profiles of the agent kinds.
func (s ProfileService) List(ctx context.Context) (api.ProfileList, error) {
	return get[api.ProfileList](ctx, s.conn, path("profiles"), nil)
}

// Set sets the capability profile of an agent kind.
func (s ProfileService) Set(ctx context.Context, kind string, capabilities []string) (reeve.Profile, error) {
	if capabilities == nil {
		capabilities = []string{}
	}
	return put[reeve.Profile](ctx, s.conn, path("profiles", kind), api.ProfileRequest{Capabilities: capabilities})
}
