package storetest

import (
	"strings"
	"testing"
	"time"

	"reeve"
	"reeve/internal/store"
)

// credentials tests secrets and access tokens.
var credentials = map[string]func(*testing.T, *store.DB){
	"secret": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		update(t, db, func(tx *store.Tx) error {
			if err := tx.Agents().PutSecret(ctx, ws, "key", "first"); err != nil {
				return err
			}
			return tx.Agents().PutSecret(ctx, ws, "empty", "")
		})
		update(t, db, func(tx *store.Tx) error { return tx.Agents().PutSecret(ctx, ws, "key", "s3cret\x00ü") })
		equal(t, view(t, db, func(s *store.Snap) (string, error) { return s.Agents().GetSecret(ctx, ws, "key") }),
			"s3cret\x00ü", "secret")
		equal(t, view(t, db, func(s *store.Snap) (string, error) { return s.Agents().GetSecret(ctx, ws, "empty") }), "",
			"empty secret")
		list := view(t, db, func(s *store.Snap) ([]reeve.SecretName, error) { return s.Agents().ListSecrets(ctx, ws) })
		equal(t, joinIDs(list, func(n reeve.SecretName) string { return n.Name }), "empty key", "names")
		wantCode(t, db.View(ctx, func(s *store.Snap) error {
			_, err := s.Agents().GetSecret(ctx, "ws_two", "key")
			return err
		}), reeve.NotFound)
		update(t, db, func(tx *store.Tx) error { return tx.Agents().DeleteSecret(ctx, ws, "key") })
		wantCode(t, db.Update(ctx, func(tx *store.Tx) error { return tx.Agents().DeleteSecret(ctx, ws, "key") }),
			reeve.NotFound)
		wantCode(t, db.Update(ctx, func(tx *store.Tx) error { return tx.Agents().PutSecret(ctx, "none", "key", "v") }),
			reeve.NotFound)
	},

	"tokens": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		expires := reeve.Now().Add(time.Hour)
		c := store.Credential{AccessToken: reeve.AccessToken{ID: "tok_1", Name: "laptop", User: "ann",
			Role: reeve.Member, Workspaces: []string{ws, "ws_two", ws}, CreatedAt: reeve.Now(), ExpiresAt: &expires},
			Hash: "h"}
		update(t, db, func(tx *store.Tx) error { return tx.Agents().InsertCredential(ctx, c) })
		read := func(id string) (store.Credential, bool) {
			var ok bool
			c := view(t, db, func(s *store.Snap) (c store.Credential, err error) {
				c, ok, err = s.Agents().GetCredential(ctx, id)
				return c, err
			})
			return c, ok
		}
		got, ok := read("tok_1")
		if !ok || got.Name != "laptop" || got.User != "ann" || got.Role != reeve.Member || got.Hash != "h" ||
			!got.ExpiresAt.Equal(expires) || got.RevokedAt != nil ||
			strings.Join(got.Workspaces, " ") != "ws_one ws_two" {
			t.Fatalf("token: %+v", got)
		}
		if _, ok := read("tok_none"); ok {
			t.Fatal("found a token that does not exist")
		}
		c.ID, c.Workspaces = "tok_2", []string{"none"}
		wantCode(t, db.Update(ctx, func(tx *store.Tx) error { return tx.Agents().InsertCredential(ctx, c) }),
			reeve.NotFound)
		if _, ok := read("tok_2"); ok {
			t.Fatal("a refused token was inserted")
		}
		at := reeve.Now()
		update(t, db, func(tx *store.Tx) error { return tx.Agents().RevokeCredential(ctx, "tok_1", at) })
		update(t, db, func(tx *store.Tx) error { return tx.Agents().RevokeCredential(ctx, "tok_1", at.Add(time.Hour)) })
		if got, _ = read("tok_1"); got.RevokedAt == nil || !got.RevokedAt.Equal(at) {
			t.Fatalf("revoked: %v", got.RevokedAt)
		}
		list := view(t, db, func(s *store.Snap) ([]store.Credential, error) {
			return s.Agents().ListCredentials(ctx, "ws_two")
		})
		if len(list) != 1 || len(list[0].Workspaces) != 2 {
			t.Fatalf("tokens: %+v", list)
		}
		update(t, db, func(tx *store.Tx) error { return tx.Agents().MarkServerCredential(ctx, "tok_1") })
		c.ID, c.Workspaces, c.Server = "tok_3", nil, true
		update(t, db, func(tx *store.Tx) error { return tx.Agents().InsertCredential(ctx, c) })
		for _, id := range []string{"tok_1", "tok_3"} { // a server token is valid in every workspace
			if got, _ = read(id); !got.Server || strings.Join(got.Workspaces, " ") != "ws_one ws_two" {
				t.Fatalf("server token: %+v", got)
			}
		}
		list = view(t, db, func(s *store.Snap) ([]store.Credential, error) {
			return s.Agents().ListCredentials(ctx, "ws_two")
		})
		equal(t, joinIDs(list, func(c store.Credential) string { return c.ID }), "tok_1 tok_3", "tokens of a workspace")
		for user, known := range map[string]bool{"ann": true, "bob": false} {
			equal(t, view(t, db, func(s *store.Snap) (bool, error) { return s.Agents().HasUser(ctx, "ws_two", user) }),
				known, "user %s", user)
		}
	},
}
