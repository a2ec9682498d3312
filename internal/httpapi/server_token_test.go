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

// createMisleadingTokens creates tokens whose names, users and roles resemble those of the server's own token.
func createMisleadingTokens(t *testing.T, h *reevetest.Host, by []string, more object) []string {
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
	onBothEngines(t, func(t *testing.T, env testEnv) {
		h := env.start(t, testTools()...)
		boss := withToken(createToken(t, h, reeve.Owner)) // the owner of the only workspace
		forged := append(createMisleadingTokens(t, h, boss, nil),
			createMisleadingTokens(t, h, boss, object{"expires_at": "2100-01-01T00:00:00Z"})...)
		h.Want(201, nil, "POST", "/api/workspaces", object{"id": "beta"})
		workspaces := []string{"default", "beta"}
		forged = append(forged, createMisleadingTokens(t, h, withToken(createToken(t, h, reeve.Owner, workspaces...)),
			object{"workspaces": workspaces})...)
		h.Want(201, nil, "POST", "/api/workspaces", object{"id": "last"})
		before := takeSnapshot(t, h, "X-Workspace-Id", "last")

		all := samples(missing)
		operations := filterSampled(loadOpenAPI(t, h).operations())
		serverOperations := []string{"downloadBackup", "createWorkspace", "createProject"}
		for i, mine := range forged {
			for _, o := range operations {
				s, isServerOperation := all[o.id], slices.Contains(serverOperations, o.id)
				if isServerOperation {
					wantProblem(t, s.send(h, o.method, withToken(mine)...), 403, reeve.Forbidden)
				}
				// One token of each group tries every operation.
				if isServerOperation || i%9 == 0 || o.id == "listAgents" {
					wantProblem(t, s.send(h, o.method, withToken(mine, "last")...), 403, reeve.Forbidden)
				}
			}
			wantProblem(t, h.Do("GET", "/metrics", nil, withToken(mine)...), 403, reeve.Forbidden)
		}
		wantUnchanged(t, before, takeSnapshot(t, h, "X-Workspace-Id", "last"))

		// No request can create a server token. Only a server token can revoke one.
		for _, field := range []string{"server", "Server", "is_server"} {
			wantFieldError(t, h.Do("POST", "/api/tokens", object{"name": "x", "role": "owner", field: true}, boss...),
				"/"+field)
		}
		ownerOfAll := withToken(createToken(t, h, reeve.Owner, "default", "beta", "last"))
		for _, c := range decode[api.TokenList](t, h.Want(200, nil, "GET", "/api/tokens", nil)).Tokens {
			if strings.Contains(h.Token, c.ID) {
				wantProblem(t, h.Do("DELETE", "/api/tokens/"+c.ID, nil, boss...), 403, reeve.Forbidden)
				wantProblem(t, h.Do("DELETE", "/api/tokens/"+c.ID, nil, ownerOfAll...), 403, reeve.Forbidden)
			}
		}
		wantProblem(t, h.Do("GET", "/api/backup", nil, ownerOfAll...), 403, reeve.Forbidden)
		h.Want(200, nil, "GET", "/api/agents", nil, "X-Workspace-Id", "last")
		h.Want(200, nil, "GET", "/api/backup", nil)
	})
}

// The metrics cover all workspaces. Only a server token and the configured metrics token can read them.
func TestI19_MetricsNeedToken(t *testing.T) {
	t.Parallel()
	const scrape = "scrape-0123456789"
	env := newTestEnv(t)
	env.cfg.MetricsToken = scrape
	h := env.start(t)
	h.Want(200, nil, "GET", "/metrics", nil)
	h.Want(200, nil, "GET", "/metrics", nil, "X-Workspace-Id", "")
	h.Want(200, nil, "GET", "/metrics", nil, withToken(scrape)...)
	wantProblem(t, h.Do("GET", "/metrics", nil, "Authorization", ""), 401, reeve.Unauthenticated)
	for _, wrong := range []string{scrape + "x", scrape[:len(scrape)-1], "reeve_x_y"} {
		wantProblem(t, h.Do("GET", "/metrics", nil, withToken(wrong)...), 401, reeve.Unauthenticated)
	}
	for _, role := range reeve.Roles() {
		wantProblem(t, h.Do("GET", "/metrics", nil, withToken(createToken(t, h, role))...), 403, reeve.Forbidden)
	}
	// The metrics token cannot read anything else.
	wantProblem(t, h.Do("GET", "/api/agents", nil, withToken(scrape)...), 401, reeve.Unauthenticated)
	plain := startServer(t)
	for _, none := range []string{"", "Bearer " + scrape, "Bearer "} {
		wantProblem(t, plain.Do("GET", "/metrics", nil, "Authorization", none), 401, reeve.Unauthenticated)
	}
}
