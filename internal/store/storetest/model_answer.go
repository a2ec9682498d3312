package storetest

import (
	"testing"

	"reeve/internal/store"
)

// modelAnswers tests the answers of models that tools asked within a run.
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
}
