package storetest

import (
	"testing"

	"reeve"
	"reeve/internal/store"
)

// branches tests projects, branches and stored shell states.
var branches = map[string]func(*testing.T, *store.DB){
	"project": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		a := setUp(t, db)
		p := reeve.Project{ID: "prj_1", WorkspaceID: ws, Name: "site", Path: "/srv/site", DefaultBranch: "main",
			CreatedBy: "ann"}
		update(t, db, func(tx *store.Tx) error { return tx.Agents().InsertProject(ctx, p) })
		again := p
		again.ID = "prj_2"
		wantCode(t, db.Update(ctx, func(tx *store.Tx) error { return tx.Agents().InsertProject(ctx, again) }),
			reeve.AlreadyExists)
		for _, id := range []string{"prj_1", "site"} {
			got := view(t, db, func(s *store.Snap) (reeve.Project, error) { return s.Agents().GetProject(ctx, ws, id) })
			p.CreatedAt = got.CreatedAt
			equal(t, got, p, "round trip")
			wantCode(t, db.View(ctx, func(s *store.Snap) error {
				_, err := s.Agents().GetProject(ctx, "ws_two", id)
				return err
			}), reeve.NotFound)
		}
		equal(t, len(view(t, db, func(s *store.Snap) ([]reeve.Project, error) {
			return s.Agents().ListProjects(ctx, ws)
		})), 1, "projects")

		open := func(id string, kind reeve.BranchKind, subject string) (b reeve.Branch) {
			update(t, db, func(tx *store.Tx) (err error) {
				b, err = tx.Agents().GetOrInsertBranch(ctx, reeve.Branch{ID: id, WorkspaceID: ws, ProjectID: p.ID,
					Kind:    kind,
					Subject: subject, Name: "reeve/" + id})
				return err
			})
			return b
		}
		mine := open("br_1", reeve.ConversationBranch, "conv_1")
		equal(t, mine.State, reeve.BranchCreating, "state of a new branch")
		equal(t, open("br_9", reeve.ConversationBranch, "conv_1"), mine, "branch opened again for the same subject")
		open("br_2", reeve.AutomationBranch, "agt_1")
		now := reeve.FromMillis(reeve.Millis(reeve.Now()))
		mine.Base, mine.Head, mine.State, mine.Merged, mine.MergedHead, mine.MergedBy, mine.MergedAt = "aa", "bb",
			reeve.BranchReady, "cc", "bb", "ann", &now
		update(t, db, func(tx *store.Tx) error { return tx.Agents().UpdateBranch(ctx, mine) })
		for _, id := range []string{"br_1", "conv_1"} {
			got := view(t, db, func(s *store.Snap) (reeve.Branch, error) {
				return s.Agents().GetBranch(ctx, ws, "", id)
			})
			equal(t, got.MergedAt.Equal(now), true, "merge time is stored")
			mine.UpdatedAt, mine.MergedAt = got.UpdatedAt, got.MergedAt
			equal(t, got, mine, "round trip")
			wantCode(t, db.View(ctx, func(s *store.Snap) error {
				_, err := s.Agents().GetBranch(ctx, ws, "bob", id)
				return err
			}), reeve.NotFound)
			wantCode(t, db.View(ctx, func(s *store.Snap) error {
				_, err := s.Agents().GetBranch(ctx, "ws_two", "", id)
				return err
			}), reeve.NotFound)
		}
		list := func(f store.BranchFilter) string {
			f.Limit = 10
			return joinIDs(view(t, db, func(s *store.Snap) ([]reeve.Branch, error) {
				return s.Agents().ListBranches(ctx, ws, f)
			}), func(b reeve.Branch) string { return b.ID })
		}
		equal(t, list(store.BranchFilter{}), "br_2 br_1", "all, newest first")
		equal(t, list(store.BranchFilter{Before: "br_2"}), "br_1", "second page")
		equal(t, list(store.BranchFilter{User: "bob"}), "br_2", "branches visible to a user outside the conversation")
		equal(t, list(store.BranchFilter{State: string(reeve.BranchReady), Project: p.ID}), "br_1",
			"branches by state and project")
		update(t, db, func(tx *store.Tx) error {
			return tx.Chat().InsertConversation(ctx, reeve.Conversation{ID: "conv_1", WorkspaceID: ws, AgentID: a.ID,
				State:        reeve.ConversationActive,
				Participants: []reeve.Participant{{Kind: reeve.UserParticipant, ID: "bob"}}})
		})
		equal(t, list(store.BranchFilter{User: "bob"}), "br_2 br_1", "branches visible to a participant")

		wantCode(t, db.Update(ctx, func(tx *store.Tx) error { return tx.Agents().DeleteProject(ctx, p) }),
			reeve.Conflict)
		update(t, db, func(tx *store.Tx) error {
			for _, id := range []string{"br_1", "br_2"} {
				if err := tx.Agents().UpdateBranch(ctx,
					reeve.Branch{ID: id, State: reeve.BranchDiscarded}); err != nil {
					return err
				}
			}
			return tx.Agents().DeleteProject(ctx, p)
		})
		equal(t, list(store.BranchFilter{}), "", "branches of a deleted project")
	},
	"shell": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		get := func(workspace, thread string) string {
			return string(view(t, db, func(s *store.Snap) ([]byte, error) {
				return s.Chat().GetShell(ctx, workspace, thread)
			}))
		}
		equal(t, get(ws, "a:session:x"), "", "shell of a new thread")
		for _, state := range []string{"X=1\n", "X=\xff\x00\n"} {
			update(t, db, func(tx *store.Tx) error { return tx.Chat().PutShell(ctx, ws, "a:session:x", []byte(state)) })
			equal(t, get(ws, "a:session:x"), state, "shell")
		}
		equal(t, get("ws_two", "a:session:x"), "", "shell in another workspace")
	},
}
