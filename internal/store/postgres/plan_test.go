package postgres_test

import (
	"database/sql"
	"testing"
	"time"

	"reeve"
	"reeve/internal/store"
	"reeve/internal/store/postgres"
	"reeve/internal/store/storetest"
)

// Calls are found by an index, both with plans that were made while the table was empty and before it was analyzed.
func TestCallsAreFoundAmongMany(t *testing.T) {
	t.Parallel()
	ctx, url := t.Context(), storetest.EmptyPostgresURL(t)
	early := storetest.Open(t, postgres.Config{URL: url, Conns: 1}, storetest.Key)
	e, err := postgres.Open(ctx, postgres.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = e.Close() }()
	h, _, err := e.Migrator(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = h.Close() }()
	do := func(text string) {
		t.Helper()
		if _, err := h.ExecContext(ctx, text); err != nil {
			t.Fatal(err)
		}
	}
	read := func(h *sql.DB) (n int) {
		t.Helper()
		if err := h.QueryRowContext(ctx,
			"SELECT idx_blks_read + idx_blks_hit FROM pg_statio_user_tables WHERE relname = 'calls'").
			Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	var ids reeve.IDs
	id := ids.New(reeve.PrefixMessage, time.UnixMilli(1_790_000_000_123))
	ways := map[string]func(s *store.Snap) error{
		"GetCall": func(s *store.Snap) error {
			if _, err := s.Ledger().GetCall(ctx, "ws", id); reeve.CodeOf(err) != reeve.NotFound {
				return err
			}
			return nil
		},
		"FindOperation": func(s *store.Snap) error {
			_, _, err := s.Ledger().FindOperation(ctx, "ws", "op_none")
			return err
		},
		"ListMessages": func(s *store.Snap) error {
			_, err := s.Ledger().ListMessages(ctx, "ws", "th7", "", 10)
			return err
		},
		"RunMessages": func(s *store.Snap) error {
			_, err := s.Ledger().RunMessages(ctx, "ws", "run7", "", 10)
			return err
		},
		"TurnMessages": func(s *store.Snap) error {
			_, err := s.Ledger().TurnMessages(ctx, "ws", []string{"run7"}, 10)
			return err
		},
	}
	const times = 10 // PostgreSQL keeps a plan from the sixth on
	ask := func(db *store.DB, way func(s *store.Snap) error) {
		t.Helper()
		for range times {
			if err := db.View(ctx, way); err != nil {
				t.Fatal(err)
			}
		}
	}
	do("ALTER TABLE calls SET (autovacuum_enabled = off)")
	for _, way := range ways {
		ask(early, way)
	}
	do(`INSERT INTO calls (operation_id, workspace_id, agent_id, id, result_id, thread_id, run_id, tool, tool_version,
		policy, effect, state, args_hash, base, code, message, tries, next_attempt_at, owner, resolution,
			resolved_by, undo, spent, created_at, updated_at, deferred, timeout_at, in_flight_until, args, request,
			result, result_info)
		SELECT 'op_' || i, 'ws', 'agt', 'msg_' || lpad((i * 2)::text, 26, '0'), 'msg_' || lpad((i * 2 + 1)::text, 26,
		'0'), 'th' || i % 5000, 'run' || i % 5000, 'echo', '', '', 'local', 'committed', '', '', '', '', 1, 0, '', '',
			'', '', '', i, i, 0, 0, 0, '{}', '{}', '', '{}' FROM generate_series(1, 40000) i`)
	late := storetest.Open(t, postgres.Config{URL: url, Conns: 1}, storetest.Key)
	for when, db := range map[string]*store.DB{"early": early, "late": late} {
		for name, way := range ways {
			settled := func() int { // counts are told when a second has passed
				time.Sleep(1100 * time.Millisecond)
				if err := db.View(ctx, func(s *store.Snap) error {
					_, err := s.Ledger().GetOperation(ctx, "ws", "op_1")
					return err
				}); err != nil {
					t.Fatal(err)
				}
				return read(h)
			}
			before := settled()
			ask(db, way)
			if n := (settled() - before) / times; n > 100 {
				t.Errorf("%s, planned %s: %d pages of indexes are read", name, when, n)
			}
		}
	}
}
