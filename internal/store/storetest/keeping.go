package storetest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"reeve"
	"reeve/internal/store"
)

// keeping tests payloads, secrets, tokens and session files.
var keeping = map[string]func(*testing.T, *store.DB){
	"payload": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		big := make([]byte, 5<<20)
		for i := range big {
			big[i] = byte(rand.Uint32())
		}
		for name, body := range map[string][]byte{"nil": nil, "empty": {}, "binary": {0, 1, 255, 0, 254, '\'', 0},
			"text": []byte("ünïcode"), "big": big} {
			var hash string
			update(t, db, func(tx *store.Tx) (err error) {
				if hash, err = tx.Ledger().PutPayload(ctx, ws, store.OutputPayload, body); err != nil {
					return err
				}
				_, err = tx.Ledger().PutPayload(ctx, ws, store.OutputPayload, body) // once is enough
				return err
			})
			equal(t, hash, reeve.Hash(body), "address of %s", name)
			for _, cut := range [][2]int{{0, -1}, {0, 0}, {0, 1}, {1, 3}, {2, 1 << 40}, {len(body) - 1, 1},
				{len(body), 10}, {1 << 40, 1}, {4 << 20, 100}} {
				offset, n := cut[0], cut[1]
				if offset < 0 {
					continue
				}
				from := min(offset, len(body))
				to := len(body)
				if n >= 0 && n < to-from {
					to = from + n
				}
				got := view(t, db, func(s *store.Snap) (store.PayloadSlice, error) {
					return s.Ledger().GetPayload(ctx, ws, store.OutputPayload, hash, offset, n)
				})
				if !bytes.Equal(got.Body, body[from:to]) || got.Size != len(body) {
					t.Fatalf("%s from %d, %d bytes: got %d bytes of %d, want %d of %d", name, offset, n, len(got.Body),
						got.Size, to-from, len(body))
				}
			}
			wantCode(t, db.View(ctx, func(s *store.Snap) error {
				_, err := s.Ledger().GetPayload(ctx, "ws_two", store.OutputPayload, hash, 0, 1)
				return err
			}), reeve.NotFound)
			wantCode(t, db.View(ctx, func(s *store.Snap) error {
				_, err := s.Ledger().GetPayload(ctx, ws, store.OutputPayload, hash, -1, 1)
				return err
			}), reeve.Validation)
		}
		// The caller's buffer is the caller's again as soon as the call returns.
		buffer := []byte("kept")
		update(t, db, func(tx *store.Tx) error {
			_, err := tx.Ledger().PutPayload(ctx, ws, store.OutputPayload, buffer)
			copy(buffer, "lost")
			return err
		})
		got := view(t, db, func(s *store.Snap) (store.PayloadSlice, error) {
			return s.Ledger().GetPayload(ctx, ws, store.OutputPayload, reeve.Hash([]byte("kept")), 0, -1)
		})
		equal(t, string(got.Body), "kept", "what was put")
	},

	// Bytes are read as what they were kept for, in whatever order, and as nothing else.
	"payload uses": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		all := []store.PayloadUse{store.OutputPayload, store.UndoPayload, store.ConversationPayload}
		for i, kept := range [][]store.PayloadUse{{store.UndoPayload}, {store.ConversationPayload},
			{store.UndoPayload, store.ConversationPayload, store.UndoPayload},
			{store.UndoPayload, store.OutputPayload}, {store.OutputPayload, store.UndoPayload}, all} {
			body := fmt.Appendf(nil, "body %d", i)
			for _, use := range kept {
				update(t, db, func(tx *store.Tx) error {
					_, err := tx.Ledger().
						PutPayload(ctx, ws, use, body)
					return err
				})
			}
			for _, use := range all {
				err := db.View(ctx, func(s *store.Snap) error {
					_, err := s.Ledger().GetPayload(ctx, ws, use, reeve.Hash(body), 0, -1)
					return err
				})
				if slices.Contains(kept, use) {
					must(t, err)
				} else {
					wantCode(t, err, reeve.NotFound)
				}
			}
		}
		// What it is in one workspace says nothing of another.
		update(t, db, func(tx *store.Tx) error {
			_, err := tx.Ledger().PutPayload(ctx, "ws_two", store.OutputPayload, []byte("body 0"))
			return err
		})
		wantCode(t, db.View(ctx, func(s *store.Snap) error {
			_, err := s.Ledger().GetPayload(ctx, ws, store.OutputPayload, reeve.Hash([]byte("body 0")), 0, -1)
			return err
		}), reeve.NotFound)
	},

	// Outputs and old bytes of files that were kept before a moment are forgotten, some at a time; what a conversation
	// holds is not, whatever else it is.
	"payload forgotten": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		put := func(body string, uses ...store.PayloadUse) (at time.Time) {
			update(t, db, func(tx *store.Tx) (err error) {
				for _, use := range uses {
					_, err = tx.Ledger().PutPayload(ctx, ws, use, []byte(body))
					must(t, err)
				}
				at = tx.Now()
				return nil
			})
			return at
		}
		put("output", store.OutputPayload)
		put("old file", store.UndoPayload)
		put("both", store.OutputPayload, store.UndoPayload)
		put("said", store.ConversationPayload)
		last := put("said and shown", store.OutputPayload, store.ConversationPayload)
		var now time.Time
		for reeve.Millis(now) <= reeve.Millis(last) {
			now = put("tick", store.ConversationPayload)
		}
		put("young", store.OutputPayload)
		left := func() (got []string) {
			for _, body := range []string{"output", "old file", "both", "said", "said and shown", "young"} {
				for _, use := range []store.PayloadUse{store.OutputPayload, store.UndoPayload,
					store.ConversationPayload} {
					if db.View(ctx, func(s *store.Snap) error {
						_, err := s.Ledger().GetPayload(ctx, ws, use, reeve.Hash([]byte(body)), 0, -1)
						return err
					}) == nil {
						got = append(got, body)
						break
					}
				}
			}
			return got
		}
		for _, want := range []int64{2, 1, 0} {
			equal(t, view(t, db, func(s *store.Snap) (bool, error) { return s.Ledger().HasExpiredPayloads(ctx, now) }),
				want > 0, "more to forget")
			update(t, db, func(tx *store.Tx) error {
				n, err := tx.Ledger().DeleteExpiredPayloads(ctx, now, 2)
				equal(t, n, want, "forgotten")
				return err
			})
		}
		equal(t, fmt.Sprint(left()), "[said said and shown young]", "left")
	},

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
		equal(t, ids(list, func(n reeve.SecretName) string { return n.Name }), "empty key", "names")
		wantCode(t, db.View(ctx, func(s *store.Snap) error {
			_, err := s.Agents().
				GetSecret(ctx, "ws_two", "key")
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
			t.Fatal("a token that is not there")
		}
		c.ID, c.Workspaces = "tok_2", []string{"none"}
		wantCode(t, db.Update(ctx, func(tx *store.Tx) error { return tx.Agents().InsertCredential(ctx, c) }),
			reeve.NotFound)
		if _, ok := read("tok_2"); ok {
			t.Fatal("a token was added in part")
		}
		at := reeve.Now()
		update(t, db, func(tx *store.Tx) error { return tx.Agents().RevokeCredential(ctx, "tok_1", at) })
		update(t, db, func(tx *store.Tx) error { return tx.Agents().RevokeCredential(ctx, "tok_1", at.Add(time.Hour)) })
		if got, _ = read("tok_1"); got.RevokedAt == nil || !got.RevokedAt.Equal(at) {
			t.Fatalf("revoked: %v", got.RevokedAt)
		}
		list := view(t, db, func(s *store.Snap) ([]store.Credential, error) {
			return s.Agents().
				ListCredentials(ctx, "ws_two")
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
			return s.Agents().
				ListCredentials(ctx, "ws_two")
		})
		equal(t, ids(list, func(c store.Credential) string { return c.ID }), "tok_1 tok_3", "tokens of a workspace")
		for user, known := range map[string]bool{"ann": true, "bob": false} {
			equal(t, view(t, db, func(s *store.Snap) (bool, error) { return s.Agents().HasUser(ctx, "ws_two", user) }),
				known, "user %s", user)
		}
	},

	"session files": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		bodies := map[string][]byte{"/a.txt": []byte("a"), "/a/b": {0, 1, 0, 255}, "/ä/ö 🦉.txt": []byte("ü"), "/A": nil,
			"/%_": {}, "/a%": []byte("p"), "/ä": []byte("x")}
		put := func(workspace, session string) {
			update(t, db, func(tx *store.Tx) error {
				for path, body := range bodies {
					if err := tx.Chat().PutSessionFile(ctx, workspace, session, path, body); err != nil {
						return err
					}
				}
				return nil
			})
		}
		put(ws, "s1")
		put(ws, "s2")
		put("ws_two", "s1")
		for path, body := range bodies {
			update(t, db, func(tx *store.Tx) error {
				got, ok, err := tx.Chat().GetSessionFile(ctx, ws, "s1", path)
				if !ok || !bytes.Equal(got, body) {
					t.Errorf("%s: got %q %v, want %q", path, got, ok, body)
				}
				return err
			})
		}
		list := func(prefix string, limit int) string {
			return ids(view(t, db, func(s *store.Snap) ([]reeve.SessionFile, error) {
				return s.Chat().ListSessionFiles(ctx, ws, "s1", prefix, limit)
			}),
				func(f reeve.SessionFile) string { return f.Path })
		}
		equal(t, list("", 100), "/%_ /A /a% /a.txt /a/b /ä /ä/ö 🦉.txt", "all, in the order of their bytes")
		equal(t, list("/a", 100), "/a% /a.txt /a/b", "by prefix")
		equal(t, list("/ä", 100), "/ä /ä/ö 🦉.txt", "by a prefix that is not ASCII")
		equal(t, list("/%", 100), "/%_", "a prefix is no pattern")
		equal(t, list("/a", 2), "/a% /a.txt", "limit")
		old := view(t, db, func(s *store.Snap) ([]reeve.SessionFile, error) {
			return s.Chat().ListSessionFiles(ctx, ws, "s1", "/a.txt", 1)
		})[0]
		time.Sleep(2 * time.Millisecond)
		update(t, db, func(tx *store.Tx) error {
			return tx.Chat().
				PutSessionFile(ctx, ws, "s1", "/a.txt", []byte("longer"))
		})
		now := view(t, db, func(s *store.Snap) ([]reeve.SessionFile, error) {
			return s.Chat().ListSessionFiles(ctx, ws, "s1", "/a.txt", 1)
		})[0]
		if !now.CreatedAt.Equal(old.CreatedAt) || !now.UpdatedAt.After(old.UpdatedAt) || now.Size != 6 {
			t.Fatalf("replaced: %+v, was %+v", now, old)
		}
		for _, bad := range []string{"/nul\x00", "/bad\xff"} {
			wantCode(t, db.Update(ctx, func(tx *store.Tx) error {
				return tx.Chat().
					PutSessionFile(ctx, ws, "s1", bad, nil)
			}), reeve.Validation)
			wantCode(t, db.View(ctx, func(s *store.Snap) error {
				_, _, err := s.Chat().
					GetSessionFile(ctx, ws, "s1", bad)
				return err
			}), reeve.Validation)
		}
	},

	"backup": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		file := filepath.Join(t.TempDir(), "copy")
		must(t, db.Backup(ctx, file))
		wantCode(t, db.Backup(ctx, file), reeve.AlreadyExists)
		if left, _ := filepath.Glob(filepath.Join(filepath.Dir(file), "*")); len(left) != 1 {
			t.Fatalf("left behind: %v", left)
		}
		if left, _ := filepath.Glob(filepath.Join(filepath.Dir(file), ".*")); len(left) != 0 {
			t.Fatalf("left behind: %v", left)
		}
		wantCode(t, db.Backup(ctx, filepath.Join(t.TempDir(), "no", "such", "dir")), reeve.Unavailable)
	},
}
