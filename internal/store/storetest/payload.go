package storetest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"reeve"
	"reeve/internal/store"
)

// payloads tests payloads, session files and backups.
var payloads = map[string]func(*testing.T, *store.DB){
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
				_, err = tx.Ledger().PutPayload(ctx, ws, store.OutputPayload, body) // the second put has no effect
				return err
			})
			equal(t, hash, reeve.Hash(body), "hash of %s", name)
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
		// The caller may reuse its buffer as soon as PutPayload returns.
		buffer := []byte("old!")
		update(t, db, func(tx *store.Tx) error {
			_, err := tx.Ledger().PutPayload(ctx, ws, store.OutputPayload, buffer)
			copy(buffer, "new!")
			return err
		})
		got := view(t, db, func(s *store.Snap) (store.PayloadSlice, error) {
			return s.Ledger().GetPayload(ctx, ws, store.OutputPayload, reeve.Hash([]byte("old!")), 0, -1)
		})
		equal(t, string(got.Body), "old!", "stored payload")
	},

	// A payload can be read only for the uses for which it was stored.
	"payload uses": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		all := []store.PayloadUse{store.OutputPayload, store.UndoPayload, store.ConversationPayload}
		for i, stored := range [][]store.PayloadUse{{store.UndoPayload}, {store.ConversationPayload},
			{store.UndoPayload, store.ConversationPayload, store.UndoPayload},
			{store.UndoPayload, store.OutputPayload}, {store.OutputPayload, store.UndoPayload}, all} {
			body := fmt.Appendf(nil, "body %d", i)
			for _, use := range stored {
				update(t, db, func(tx *store.Tx) error {
					_, err := tx.Ledger().PutPayload(ctx, ws, use, body)
					return err
				})
			}
			for _, use := range all {
				err := db.View(ctx, func(s *store.Snap) error {
					_, err := s.Ledger().GetPayload(ctx, ws, use, reeve.Hash(body), 0, -1)
					return err
				})
				if slices.Contains(stored, use) {
					must(t, err)
				} else {
					wantCode(t, err, reeve.NotFound)
				}
			}
		}
		// The uses of a payload are recorded per workspace.
		update(t, db, func(tx *store.Tx) error {
			_, err := tx.Ledger().PutPayload(ctx, "ws_two", store.OutputPayload, []byte("body 0"))
			return err
		})
		wantCode(t, db.View(ctx, func(s *store.Snap) error {
			_, err := s.Ledger().GetPayload(ctx, ws, store.OutputPayload, reeve.Hash([]byte("body 0")), 0, -1)
			return err
		}), reeve.NotFound)
	},

	// Old payloads of outputs and of undo data are deleted in batches. A payload of a conversation is never deleted,
	// even if it also has another use.
	"expired payloads": func(t *testing.T, db *store.DB) {
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
		put("message", store.ConversationPayload)
		last := put("message and output", store.OutputPayload, store.ConversationPayload)
		var now time.Time
		for reeve.Millis(now) <= reeve.Millis(last) {
			now = put("tick", store.ConversationPayload)
		}
		put("recent", store.OutputPayload)
		listRemaining := func() (got []string) {
			for _, body := range []string{"output", "old file", "both", "message", "message and output", "recent"} {
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
				want > 0, "has expired payloads")
			update(t, db, func(tx *store.Tx) error {
				n, err := tx.Ledger().DeleteExpiredPayloads(ctx, now, 2)
				equal(t, n, want, "deleted")
				return err
			})
		}
		equal(t, fmt.Sprint(listRemaining()), "[message message and output recent]", "remaining payloads")
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
			return joinIDs(view(t, db, func(s *store.Snap) ([]reeve.SessionFile, error) {
				return s.Chat().ListSessionFiles(ctx, ws, "s1", prefix, limit)
			}),
				func(f reeve.SessionFile) string { return f.Path })
		}
		equal(t, list("", 100), "/%_ /A /a% /a.txt /a/b /ä /ä/ö 🦉.txt", "all, in byte order")
		equal(t, list("/a", 100), "/a% /a.txt /a/b", "by prefix")
		equal(t, list("/ä", 100), "/ä /ä/ö 🦉.txt", "by a non-ASCII prefix")
		equal(t, list("/%", 100), "/%_", "by a prefix with a LIKE wildcard")
		equal(t, list("/a", 2), "/a% /a.txt", "limit")
		old := view(t, db, func(s *store.Snap) ([]reeve.SessionFile, error) {
			return s.Chat().ListSessionFiles(ctx, ws, "s1", "/a.txt", 1)
		})[0]
		time.Sleep(2 * time.Millisecond)
		update(t, db, func(tx *store.Tx) error {
			return tx.Chat().PutSessionFile(ctx, ws, "s1", "/a.txt", []byte("longer"))
		})
		now := view(t, db, func(s *store.Snap) ([]reeve.SessionFile, error) {
			return s.Chat().ListSessionFiles(ctx, ws, "s1", "/a.txt", 1)
		})[0]
		if !now.CreatedAt.Equal(old.CreatedAt) || !now.UpdatedAt.After(old.UpdatedAt) || now.Size != 6 {
			t.Fatalf("replaced: %+v, was %+v", now, old)
		}
		for _, bad := range []string{"/nul\x00", "/bad\xff"} {
			wantCode(t, db.Update(ctx, func(tx *store.Tx) error {
				return tx.Chat().PutSessionFile(ctx, ws, "s1", bad, nil)
			}), reeve.Validation)
			wantCode(t, db.View(ctx, func(s *store.Snap) error {
				_, _, err := s.Chat().GetSessionFile(ctx, ws, "s1", bad)
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
