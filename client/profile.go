package client

import (
	"context"

	"reeve"
)

// Profiles lists what agents of each kind may do.
func (c *Client) Profiles(ctx context.Context) (reeve.ProfileList, error) {
	return get[reeve.ProfileList](ctx, c, path("profiles"), nil)
}

// SetProfile says what agents of a kind may do.
func (c *Client) SetProfile(ctx context.Context, kind string, capabilities []string) (reeve.Profile, error) {
	if capabilities == nil {
		capabilities = []string{}
	}
	return put[reeve.Profile](ctx, c, path("profiles", kind), reeve.ProfileRequest{Capabilities: capabilities})
}
