package storetest

import (
	"reflect"
	"testing"
	"time"

	"reeve"
	"reeve/internal/store"
)

// catalogue tests workspaces, agents, tools and attachments.
var catalogue = map[string]func(*testing.T, *store.DB){
	"workspace": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		wantCode(t, db.Update(ctx, func(tx *store.Tx) error {
			_, err := tx.Agents().InsertWorkspace(ctx, ws, "again")
			return err
		}), reeve.AlreadyExists)
		equal(t, len(view(t, db, func(s *store.Snap) ([]reeve.Workspace, error) {
			return s.Agents().ListWorkspaces(ctx)
		})), 2, "workspaces")
		wantCode(t, db.View(ctx, func(s *store.Snap) error {
			_, err := s.Agents().GetWorkspace(ctx, "none")
			return err
		}), reeve.NotFound)

		equal(t, getRevision(t, db, ws), 1, "revision of a new workspace")
		update(t, db, func(tx *store.Tx) error { return tx.IncrementRevision(ctx, ws) })
		equal(t, getRevision(t, db, ws), 2, "after Touch")
		equal(t, getRevision(t, db, "ws_two"), 1, "revision of the other workspace after Touch")
		update(t, db, func(tx *store.Tx) error { return tx.IncrementAllRevisions(ctx) })
		equal(t, getRevision(t, db, ws), 3, "after TouchAll")
		equal(t, getRevision(t, db, "ws_two"), 2, "revision of the other workspace after TouchAll")

		at := reeve.Now()
		update(t, db, func(tx *store.Tx) error { return tx.Agents().StopWorkspace(ctx, ws, at, "drill") })
		w := view(t, db, func(s *store.Snap) (reeve.Workspace, error) { return s.Agents().GetWorkspace(ctx, ws) })
		if w.StoppedAt == nil || !w.StoppedAt.Equal(at) || w.StopReason != "drill" || w.Revision != 4 {
			t.Fatalf("stopped: %+v", w)
		}
		update(t, db, func(tx *store.Tx) error { return tx.Agents().StopWorkspace(ctx, ws, time.Time{}, "") })
		w = view(t, db, func(s *store.Snap) (reeve.Workspace, error) { return s.Agents().GetWorkspace(ctx, ws) })
		if w.StoppedAt != nil || w.Revision != 5 {
			t.Fatalf("resumed: %+v", w)
		}
	},

	"agent": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		a := setUp(t, db)
		stopped := reeve.Now().Add(-time.Minute)
		a.Name, a.Config, a.Policy, a.StoppedAt = "Zoë 🦉", []byte(`{ "b": 1,  "a": [1.50] }`),
			reeve.Policy{Tools: map[string]reeve.PolicyAnswer{"echo": reeve.Ask},
				Tiers: map[reeve.Tier]reeve.PolicyAnswer{reeve.Privileged: reeve.Deny}}, &stopped
		a.Categories = []string{"general", "mail"}
		update(t, db, func(tx *store.Tx) error { return tx.Agents().UpdateAgent(ctx, a) })
		equal(t, getRevision(t, db, ws), 2, "after UpdateAgent")
		got := view(t, db, func(s *store.Snap) (reeve.Agent, error) { return s.Agents().GetAgent(ctx, ws, a.ID) })
		if got.UpdatedAt.Before(got.CreatedAt) {
			t.Fatalf("updated at %v, before creation at %v", got.UpdatedAt, got.CreatedAt)
		}
		got.UpdatedAt = a.UpdatedAt
		if !reflect.DeepEqual(got, a) {
			t.Fatalf("round trip:\n got %+v\nwant %+v", got, a)
		}
		equal(t, view(t, db, func(s *store.Snap) (reeve.Agent, error) { return s.Agents().GetAgent(ctx, ws, a.Name) }).
			ID, a.ID, "by name")
		wantCode(t, db.View(ctx, func(s *store.Snap) error {
			_, err := s.Agents().GetAgent(ctx, "ws_two", a.ID)
			return err
		}), reeve.NotFound)

		// An id takes precedence over another agent's name.
		update(t, db, func(tx *store.Tx) error {
			return tx.Agents().InsertAgent(ctx, reeve.Agent{ID: "agt_0", WorkspaceID: ws, Name: a.ID, Kind: "assistant",
				Lifecycle: reeve.AgentActive, Mode: reeve.Hybrid, CreatedAt: tx.Now()})
		})
		equal(t, view(t, db, func(s *store.Snap) (reeve.Agent, error) { return s.Agents().GetAgent(ctx, ws, a.ID) }).
			ID, a.ID, "by id")

		same := reeve.Agent{ID: "agt_other", WorkspaceID: ws, Name: a.Name, Kind: "assistant",
			Lifecycle: reeve.AgentActive, Mode: reeve.Hybrid, CreatedAt: reeve.Now()}
		wantCode(t, db.Update(ctx, func(tx *store.Tx) error { return tx.Agents().InsertAgent(ctx, same) }),
			reeve.AlreadyExists)
		same.WorkspaceID = "ws_two" // names are unique per workspace only
		update(t, db, func(tx *store.Tx) error { return tx.Agents().InsertAgent(ctx, same) })
		taken := got
		taken.ID, taken.Name = "agt_0", a.Name
		wantCode(t, db.Update(ctx, func(tx *store.Tx) error { return tx.Agents().UpdateAgent(ctx, taken) }),
			reeve.AlreadyExists)
		foreign := same
		foreign.WorkspaceID, foreign.Name = ws, "stolen" // an update must not reach an agent of another workspace
		update(t, db, func(tx *store.Tx) error { return tx.Agents().UpdateAgent(ctx, foreign) })
		equal(t, view(t, db, func(s *store.Snap) (reeve.Agent, error) {
			return s.Agents().GetAgent(ctx, "ws_two", same.ID)
		}).Name, a.Name, "name of the agent in the other workspace")
		wantCode(t, db.Update(ctx, func(tx *store.Tx) error {
			return tx.Agents().InsertAgent(ctx, reeve.Agent{ID: "agt_lost", WorkspaceID: "none", Name: "lost",
				CreatedAt: tx.Now()})
		}), reeve.NotFound)

		update(t, db, func(tx *store.Tx) error {
			for _, n := range []string{"b", "a", "B", "_", "é"} {
				if err := tx.Agents().InsertAgent(ctx, reeve.Agent{ID: "agt_" + n, WorkspaceID: "ws_two", Name: n,
					Kind: "assistant", Lifecycle: reeve.AgentActive, CreatedAt: tx.Now()}); err != nil {
					return err
				}
			}
			return nil
		})
		var names []string
		for after := ""; ; {
			page := view(t, db, func(s *store.Snap) ([]reeve.Agent, error) {
				return s.Agents().ListAgents(ctx, "ws_two", after, 2)
			})
			if len(page) == 0 {
				break
			}
			for _, a := range page {
				names = append(names, a.Name)
			}
			after = names[len(names)-1]
		}
		equal(t, joinIDs(names, func(s string) string { return s }), "B Zoë 🦉 _ a b é",
			"agents in pages, in byte order")
	},

	"profile": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		update(t, db, func(tx *store.Tx) error {
			return tx.Agents().PutProfile(ctx, ws, reeve.Profile{Kind: "general", Capabilities: []string{"x"}})
		})
		update(t, db, func(tx *store.Tx) error {
			return tx.Agents().PutProfile(ctx, ws, reeve.Profile{Kind: "general", Capabilities: []string{"x", "y"}})
		})
		equal(t, getRevision(t, db, ws), 3, "after two puts")
		list := view(t, db, func(s *store.Snap) ([]reeve.Profile, error) { return s.Agents().ListProfiles(ctx, ws) })
		if len(list) != 1 || !reflect.DeepEqual(list[0].Capabilities, []string{"x", "y"}) {
			t.Fatalf("profiles: %v", list)
		}
		update(t, db, func(tx *store.Tx) error {
			_, ok, err := tx.Agents().GetProfile(ctx, "ws_two", "general")
			equal(t, ok, false, "a profile of another workspace")
			return err
		})
	},

	"tool": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		a := setUp(t, db)
		v := reeve.Tool{ID: "full", WorkspaceID: ws, Kind: reeve.HTTPTool, Name: "Full", Description: "ünïcode ✓",
			Parameters:   []byte(`{"type":"object","x":  1}`),
			ConfigSchema: []byte(`{}`), OutputSchema: []byte(`{"type":"object"}`), HandlerKey: "h", Category: "web", Pack: "p", Tier: reeve.Privileged,
			Effect: reeve.Keyed, Capability: "net", Risk: reeve.HighRisk,
			TimeoutMS: 1234, Retry: reeve.Retry{Attempts: 3, DelayMS: 10, MaxMS: 20}, Identity: []string{"a", "b"},
			Previews: true,
			Cost:     reeve.Amount{Calls: 1, Tokens: 2, Micros: 3, Millis: 4}, Version: 7,
			Spec: []byte(`{"url":"https://x/?a=1&b=<2>"}`), CreatedAt: reeve.Now()}
		update(t, db, func(tx *store.Tx) error { return tx.Agents().PutTool(ctx, v) })
		equal(t, getRevision(t, db, ws), 2, "after PutTool")
		got := view(t, db, func(s *store.Snap) (reeve.Tool, error) { return s.Agents().GetTool(ctx, ws, "full") })
		if !reflect.DeepEqual(got, v) {
			t.Fatalf("round trip:\n got %+v\nwant %+v", got, v)
		}
		equal(t, got.Fingerprint(), v.Fingerprint(), "fingerprint")
		wantCode(t, db.View(ctx, func(s *store.Snap) error {
			_, err := s.Agents().GetTool(ctx, "ws_two", "full")
			return err
		}), reeve.NotFound)
		v.Description, v.Version, v.CreatedAt = "other", 8, v.CreatedAt.Add(time.Hour) // PutTool replaces the whole row
		update(t, db, func(tx *store.Tx) error { return tx.Agents().PutTool(ctx, v) })
		got = view(t, db, func(s *store.Snap) (reeve.Tool, error) { return s.Agents().GetTool(ctx, ws, "full") })
		if got.Version != 8 || got.Description != "other" || !got.CreatedAt.Equal(v.CreatedAt) {
			t.Fatalf("replaced: %+v", got)
		}
		update(t, db, func(tx *store.Tx) error {
			for _, v := range []reeve.Tool{newTool("", "echo"), newTool("", "shared"), newTool("ws_two", "theirs"),
				newTool(ws, "shared")} {
				if err := tx.Agents().PutTool(ctx, v); err != nil {
					return err
				}
			}
			return nil
		})
		id := func(v reeve.Tool) string { return v.WorkspaceID + "/" + v.ID }
		equal(t, joinIDs(view(t, db, func(s *store.Snap) ([]reeve.Tool, error) {
			return s.Agents().ListTools(ctx, ws, "")
		}), id), "/echo /shared ws_one/shared ws_one/full", "tools")
		equal(t, joinIDs(view(t, db, func(s *store.Snap) ([]reeve.Tool, error) {
			return s.Agents().ListTools(ctx, ws, "web")
		}), id), "ws_one/full", "tools of a category")
		equal(t, id(view(t, db, func(s *store.Snap) (reeve.Tool, error) {
			return s.Agents().GetTool(ctx, ws, "shared")
		})), "/shared", "a global tool takes precedence")
		shadowed := view(t, db, func(s *store.Snap) ([]reeve.Tool, error) { return s.Agents().ShadowedTools(ctx) })
		equal(t, joinIDs(shadowed, id), "ws_one/shared", "tools hidden by a global tool")
		equal(t, id(view(t, db, func(s *store.Snap) (reeve.Tool, error) {
			return s.Agents().GetTool(ctx, "ws_two", "shared")
		})), "/shared", "global tool")

		before := getRevision(t, db, ws)
		update(t, db, func(tx *store.Tx) error { return tx.Agents().Attach(ctx, a, got, []byte(`{"k": "v"}`)) })
		equal(t, getRevision(t, db, ws), before+1, "after Attach")
		list := view(t, db, func(s *store.Snap) ([]store.Attachment, error) {
			return s.Agents().ListAttachments(ctx, a.ID)
		})
		if len(list) != 1 || list[0].Tool.ID != "full" || string(list[0].Config) != `{"k": "v"}` {
			t.Fatalf("attachments: %+v", list)
		}
		wantCode(t, db.Update(ctx, func(tx *store.Tx) error { return tx.Agents().Attach(ctx, a, got, nil) }),
			reeve.AlreadyExists)
		wantCode(t, db.Update(ctx, func(tx *store.Tx) error {
			return tx.Agents().Attach(ctx, a, newTool("", "none"), nil)
		}), reeve.NotFound)
		gone := a
		gone.ID, gone.Name, gone.Lifecycle = "agt_gone", "gone", reeve.AgentDestroyed
		wantCode(t, db.Update(ctx, func(tx *store.Tx) error {
			must(t, tx.Agents().InsertAgent(ctx, gone))
			return tx.Agents().Attach(ctx, gone, got, nil)
		}), reeve.Conflict)
		equal(t, getRevision(t, db, ws), before+1, "after failed attachments")
		update(t, db, func(tx *store.Tx) error { return tx.Agents().Detach(ctx, a, "full") })
		wantCode(t, db.Update(ctx, func(tx *store.Tx) error { return tx.Agents().Detach(ctx, a, "full") }),
			reeve.NotFound)
		equal(t, getRevision(t, db, ws), before+2, "after Detach")

		countAttachments := func(agent string) int {
			return len(view(t, db, func(s *store.Snap) ([]store.Attachment, error) {
				return s.Agents().ListAttachments(ctx, agent)
			}))
		}
		update(t, db, func(tx *store.Tx) error {
			if err := tx.Agents().Attach(ctx, a, got, nil); err != nil {
				return err
			}
			return tx.Agents().Attach(ctx, a, newTool("", "echo"), nil)
		})
		update(t, db, func(tx *store.Tx) error { return tx.Agents().DeleteTool(ctx, ws, "full") })
		equal(t, countAttachments(a.ID), 1, "attachments after DeleteTool")
		wantCode(t, db.Update(ctx, func(tx *store.Tx) error { return tx.Agents().DeleteTool(ctx, ws, "full") }),
			reeve.NotFound)
		wantCode(t, db.Update(ctx, func(tx *store.Tx) error { return tx.Agents().DeleteTool(ctx, ws, "echo") }),
			reeve.NotFound)
		update(t, db, func(tx *store.Tx) error { return tx.Agents().DeleteAgent(ctx, ws, a.ID) })
		equal(t, countAttachments(a.ID), 0, "attachments after DeleteAgent")
	},

	"concurrent attachments": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		a := setUp(t, db)
		update(t, db, func(tx *store.Tx) error { return tx.Agents().PutTool(ctx, newTool("", "echo")) })
		before := getRevision(t, db, ws)
		errs := runConcurrently(16, func(int) error {
			return db.Update(ctx, func(tx *store.Tx) error {
				return tx.Agents().Attach(ctx, a, newTool("", "echo"), nil)
			})
		})
		wantOneSuccess(t, errs, reeve.AlreadyExists)
		equal(t, getRevision(t, db, ws), before+1, "revision")
	},

	"revision per change": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		a := setUp(t, db)
		for what, change := range map[string]func(*store.Tx) error{
			"an agent": func(tx *store.Tx) error {
				return firstError([]error{tx.BeginRevision(ctx, ws), tx.Agents().ChangeAgent(ctx, a)})
			},
			"a tool": func(tx *store.Tx) error {
				return firstError([]error{tx.IncrementRevision(ctx, ws), tx.Agents().PutTool(ctx, newTool(ws, "mine"))})
			},
			"a secret": func(tx *store.Tx) error { return tx.Agents().PutSecret(ctx, ws, "key", "value") },
			"a subscription": func(tx *store.Tx) error {
				return tx.Queue().InsertSubscription(ctx, reeve.Subscription{ID: "sub", WorkspaceID: ws, AgentID: a.ID})
			},
			"both workspaces": func(tx *store.Tx) error {
				return firstError([]error{tx.IncrementRevision(ctx, ws), tx.IncrementRevision(ctx, "ws_two"),
					tx.IncrementRevision(ctx, ws)})
			},
		} {
			before, other := getRevision(t, db, ws), getRevision(t, db, "ws_two")
			update(t, db, change)
			equal(t, getRevision(t, db, ws), before+1, "revision after %s", what)
			if what == "both workspaces" {
				other++
			}
			equal(t, getRevision(t, db, "ws_two"), other, "revision of the other workspace after %s", what)
		}
		before := getRevision(t, db, ws)
		update(t, db, func(tx *store.Tx) error { return tx.Agents().DeleteSecret(ctx, ws, "key") })
		equal(t, getRevision(t, db, ws), before+1, "revision after DeleteSecret")
	},
}

func getRevision(t testing.TB, db *store.DB, workspace string) int64 {
	t.Helper()
	return view(t, db, func(s *store.Snap) (reeve.Workspace, error) {
		return s.Agents().GetWorkspace(t.Context(), workspace)
	}).Revision
}
