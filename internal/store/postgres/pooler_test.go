package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"reeve"
	"reeve/internal/store"
	"reeve/internal/store/postgres"
	"reeve/internal/store/storetest"
)

// smallPool gives each database so few server connections that clients must share them.
const smallPool = "pool_mode = transaction\ndefault_pool_size = 3"

func TestConformance_PgBouncer(t *testing.T) {
	t.Parallel()
	through := storetest.PgBouncer(t, smallPool)
	storetest.Conformance(t, func(t *testing.T) *store.DB {
		own := storetest.PostgresURL(t)
		return storetest.Open(t, postgres.Config{URL: through(own), Direct: own}, storetest.Key)
	})
}

// Servers that start at the same time on an empty database behind PgBouncer all find it migrated and leave no lock.
func TestPgBouncer_ConcurrentStart(t *testing.T) {
	t.Parallel()
	own := storetest.EmptyPostgresURL(t)
	url := storetest.PgBouncer(t, "pool_mode = transaction\ndefault_pool_size = 8")(own)
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			e, err := postgres.Open(t.Context(), postgres.Config{URL: url})
			if err != nil {
				t.Error(err)
				return
			}
			db, err := store.Open(t.Context(), e, storetest.Key)
			if err != nil {
				t.Error(errors.Join(err, e.Close()))
				return
			}
			if !e.Pooler() {
				t.Error("the engine did not detect the pooler")
			}
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	const locks = `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'
		AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`
	if n := queryNumber(t, own, locks); n != 0 {
		t.Errorf("%d advisory locks are left", n)
	}
}

// Clients that share connections leave no session state on them, and each transaction has the engine's settings.
func TestPgBouncer_LeavesNoSessionState(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	own := storetest.EmptyPostgresURL(t)
	url := storetest.PgBouncer(t, smallPool)(own)
	e, err := postgres.Open(ctx, postgres.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	insert := func(ctx context.Context, id string) error {
		return e.Update(ctx, func(c store.Conn) error { return insertThing(ctx, c, id) })
	}
	if err := e.Update(ctx, func(c store.Conn) error {
		return c.Exec(ctx, nil, "CREATE TABLE things (id TEXT PRIMARY KEY, n BIGINT NOT NULL)")
	}); err != nil {
		t.Fatal(err)
	}
	setting := func() (v string, err error) {
		err = e.View(ctx, func(c store.Conn) error {
			rows, err := c.Query(ctx, "SELECT current_setting('enable_seqscan')")
			if err != nil {
				return err
			}
			rows.Next()
			return errors.Join(rows.Scan(&v), rows.Close())
		})
		return v, err
	}
	var all sync.WaitGroup
	for i := range 12 {
		all.Go(func() {
			for n := range 20 {
				if err := insert(ctx, fmt.Sprintf("%d-%d", i, n)); err != nil {
					t.Error(err)
				}
				if v, err := setting(); v != "off" || err != nil {
					t.Errorf("enable_seqscan is %q, %v", v, err)
				}
			}
		})
	}
	all.Wait()
	if n := queryNumber(t, url, "SELECT count(*) FROM things"); n != 12*20 {
		t.Errorf("%d things", n)
	}
	for range 10 { // another client on the same connections
		if n := queryNumber(t, url, "SELECT count(*) FROM pg_prepared_statements"); n != 0 {
			t.Errorf("%d prepared statements are left", n)
		}
		if n := queryNumber(t, url, "SELECT count(*) FROM pg_settings WHERE name = 'enable_seqscan' AND setting = 'on'"); n != 1 {
			t.Error("another client has the settings of the engine")
		}
	}
}

// queryNumber returns the number that a query returns on a new connection.
func queryNumber(t *testing.T, url, query string) (n int) {
	t.Helper()
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	cfg.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	c, err := pgx.ConnectConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	if err := c.QueryRow(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// Open refuses a pooler that does not support transactions, with a hint about the setting.
func TestPgBouncer_StatementModeIsRefused(t *testing.T) {
	t.Parallel()
	url := storetest.PgBouncer(t, "pool_mode = statement")(storetest.EmptyPostgresURL(t))
	_, err := postgres.Open(t.Context(), postgres.Config{URL: url})
	e := reeve.AsError(err)
	if e.Code != reeve.Unsupported || !strings.Contains(e.Hint, "pool_mode = transaction") {
		t.Fatal(err)
	}
}

// The engine also works with a pooler in session mode.
func TestPgBouncer_SessionMode(t *testing.T) {
	t.Parallel()
	url := storetest.PgBouncer(t, "pool_mode = session")(storetest.EmptyPostgresURL(t))
	db := storetest.Open(t, postgres.Config{URL: url}, storetest.Key)
	if err := db.Update(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Agents().InsertWorkspace(t.Context(), "ws", "ws")
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// A backup needs a direct connection, because pg_dump would leave its settings to other clients of a pooler.
func TestPgBouncer_Backup(t *testing.T) {
	t.Parallel()
	own := storetest.EmptyPostgresURL(t)
	url := storetest.PgBouncer(t, smallPool)(own)
	backup := func(direct string) error {
		e, err := postgres.Open(t.Context(), postgres.Config{URL: url, Direct: direct})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		return e.Backup(t.Context(), filepath.Join(t.TempDir(), "copy"))
	}
	e := reeve.AsError(backup(""))
	if e == nil || e.Code != reeve.Unsupported || !strings.Contains(e.Hint, "database_direct") {
		t.Errorf("backup through the pooler: %v", e)
	}
	if err := backup(own); err != nil {
		t.Error(err)
	}
}
