package httpapi_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
)

// forge makes tokens with names, users and roles that somebody might choose to be taken for the server.
func forge(t *testing.T, h *reevetest.Host, by []string, more object) []string {
	t.Helper()
	var requests []object
	for _, name := range []string{"owner", "Owner", "server", "root", "default", "*"} {
		requests = append(requests, object{"name": name, "user": name, "role": "owner"})
	}
	requests = append(requests, object{"name": "owner", "role": "owner"},
		object{"name": "owner", "user": "owner", "role": "member"}, object{"name": "owner", "user": "owner",
			"role": "viewer"})
	out := make([]string, len(requests))
	for i, r := range requests {
		maps.Copy(r, more)
		out[i] = decode[api.NewToken](t, h.Want(201, nil, "POST", "/api/tokens", r, by...)).Token
	}
	return out
}

// The name of a token gives it no server rights. A token that a workspace owner creates is not valid in workspaces
// created later, and cannot change the whole server.
func TestI06_NoTokenNameGivesServerRights(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w world) {
		h := w.start(t, tricks()...)
		boss := as(token(t, h, reeve.Owner)) // of the only workspace there is
		forged := append(forge(t, h, boss, nil), forge(t, h, boss, object{"expires_at": "2100-01-01T00:00:00Z"})...)
		h.Want(201, nil, "POST", "/api/workspaces", object{"id": "beta"})
		everywhere := []string{"default", "beta"}
		forged = append(forged, forge(t, h, as(token(t, h, reeve.Owner, everywhere...)),
			object{"workspaces": everywhere})...)
		h.Want(201, nil, "POST", "/api/workspaces", object{"id": "last"})
		before := picture(t, h, "X-Workspace-Id", "last")

		all := samples(nowhere)
		operations := sampled(document(t, h).operations())
		wide := []string{"downloadBackup", "createWorkspace", "createProject"}
		for i, mine := range forged {
			for _, o := range operations {
				s, whole := all[o.id], slices.Contains(wide, o.id)
				if whole {
					refused(t, s.request(h, o.method, as(mine)...), 403, reeve.Forbidden)
				}
				if whole || i%9 == 0 || o.id == "listAgents" { // one of each kind tries everything
					refused(t, s.request(h, o.method, as(mine, "last")...), 403, reeve.Forbidden)
				}
			}
			refused(t, h.Do("GET", "/metrics", nil, as(mine)...), 403, reeve.Forbidden)
		}
		unchanged(t, before, picture(t, h, "X-Workspace-Id", "last"))

		// No request sets the mark, and a server token is a server token's to revoke.
		for _, field := range []string{"server", "Server", "is_server"} {
			refusedAt(t, h.Do("POST", "/api/tokens", object{"name": "x", "role": "owner", field: true}, boss...),
				"/"+field)
		}
		everyone := as(token(t, h, reeve.Owner, "default", "beta", "last"))
		for _, c := range decode[api.TokenList](t, h.Want(200, nil, "GET", "/api/tokens", nil)).Tokens {
			if strings.Contains(h.Token, c.ID) {
				refused(t, h.Do("DELETE", "/api/tokens/"+c.ID, nil, boss...), 403, reeve.Forbidden)
				refused(t, h.Do("DELETE", "/api/tokens/"+c.ID, nil, everyone...), 403, reeve.Forbidden)
			}
		}
		refused(t, h.Do("GET", "/api/backup", nil, everyone...), 403, reeve.Forbidden)
		h.Want(200, nil, "GET", "/api/agents", nil, "X-Workspace-Id", "last")
		h.Want(200, nil, "GET", "/api/backup", nil)
	})
}

// The metrics count all workspaces together: a server token reads them, and the token that the configuration has for
// it.
func TestI19_MetricsTakeAToken(t *testing.T) {
	t.Parallel()
	const scrape = "scrape-0123456789"
	w := newWorld(t)
	w.cfg.MetricsToken = scrape
	h := w.start(t)
	h.Want(200, nil, "GET", "/metrics", nil)
	h.Want(200, nil, "GET", "/metrics", nil, "X-Workspace-Id", "")
	h.Want(200, nil, "GET", "/metrics", nil, as(scrape)...)
	refused(t, h.Do("GET", "/metrics", nil, "Authorization", ""), 401, reeve.Unauthenticated)
	for _, wrong := range []string{scrape + "x", scrape[:len(scrape)-1], "reeve_x_y"} {
		refused(t, h.Do("GET", "/metrics", nil, as(wrong)...), 401, reeve.Unauthenticated)
	}
	for _, role := range reeve.Roles() {
		refused(t, h.Do("GET", "/metrics", nil, as(token(t, h, role))...), 403, reeve.Forbidden)
	}
	refused(t, h.Do("GET", "/api/agents", nil, as(scrape)...), 401, reeve.Unauthenticated) // it reads nothing else
	plain := start(t)
	for _, none := range []string{"", "Bearer " + scrape, "Bearer "} {
		refused(t, plain.Do("GET", "/metrics", nil, "Authorization", none), 401, reeve.Unauthenticated)
	}
}
