package storetest

import (
	"encoding/json"
	"testing"
	"time"

	"reeve"
	"reeve/internal/store"
)

// modelAnswers tests the answers of models that tools asked within a run, and the requests of the run itself.
var modelAnswers = map[string]func(*testing.T, *store.DB){
	"first answer stays": func(t *testing.T, db *store.DB) {
		setUp(t, db)
		for _, answer := range []string{"one", "two"} {
			update(t, db, func(tx *store.Tx) error {
				return tx.Runs().InsertModelAnswer(t.Context(), ws, "run_1", "hash", answer)
			})
		}
		for _, c := range []struct {
			workspace, run, hash, want string
		}{{ws, "run_1", "hash", "one"}, {ws, "run_2", "hash", ""}, {ws, "run_1", "other", ""},
			{"ws_other", "run_1", "hash", ""}} {
			got := view(t, db, func(s *store.Snap) (string, error) {
				text, found, err := s.Runs().FindModelAnswer(t.Context(), c.workspace, c.run, c.hash)
				if found != (c.want != "") {
					t.Errorf("%+v: found %t", c, found)
				}
				return text, err
			})
			if got != c.want {
				t.Errorf("%+v: %q", c, got)
			}
		}
	},
	"expired requests lose their text": func(t *testing.T, db *store.DB) {
		setUp(t, db)
		clearOld := func(age time.Duration) (n int64) {
			t.Helper()
			var expired bool
			update(t, db, func(tx *store.Tx) (err error) {
				before := tx.Now().Add(-age)
				if expired, err = tx.Runs().HasExpiredModelRequests(t.Context(), before); err == nil {
					n, err = tx.Runs().ClearExpiredModelRequests(t.Context(), before, 10)
				}
				return err
			})
			if expired != (n > 0) {
				t.Errorf("expired %t, but %d were cleared", expired, n)
			}
			return n
		}
		update(t, db, func(tx *store.Tx) error {
			return tx.Runs().PutModelRequest(t.Context(), ws, "run_1", reeve.AskedRequest{Number: 1,
				Request: json.RawMessage(`{"system": "text"}`)}, true)
		})
		equal(t, clearOld(time.Hour), 0, "cleared before their time")
		equal(t, clearOld(-time.Hour), 1, "cleared")
		equal(t, clearOld(-time.Hour), 0, "cleared again")
		list := view(t, db, func(s *store.Snap) ([]reeve.AskedRequest, error) {
			return s.Runs().ListModelRequests(t.Context(), ws, "run_1")
		})
		equal(t, len(list), 0, "requests")
		equal(t, view(t, db, func(s *store.Snap) (bool, error) {
			return s.Ledger().HasOutsideText(t.Context(), ws, "run_1")
		}), true, "the run was shown untrusted notes")
	},
}
