package storetest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib" // registers the driver pgx

	"reeve/internal/store"
)

// PostgresURL creates a database with Reeve's tables and returns its URL. The database is dropped when the test ends.
// Without a server the test fails, so that a missing server is never mistaken for a passing suite.
func PostgresURL(t testing.TB) string {
	t.Helper()
	server := postgresServer(t)
	template, err := postgresTemplate()
	if err != nil {
		t.Fatalf("create the template database: %v", err)
	}
	return createPostgres(t, server, " TEMPLATE "+template)
}

// EmptyPostgresURL creates a database without tables and returns its URL. The database is dropped when the test ends.
func EmptyPostgresURL(t testing.TB) string {
	t.Helper()
	return createPostgres(t, postgresServer(t), "")
}

// postgresServer returns the URL of the server that tests use.
func postgresServer(t testing.TB) string {
	t.Helper()
	server := os.Getenv("REEVE_TEST_POSTGRES")
	if server == "" {
		t.Fatal("no PostgreSQL: run make test (scripts/postgres run go test ./...)")
	}
	return server
}

// createPostgres creates a database with a random name, drops it when the test ends, and returns its URL.
func createPostgres(t testing.TB, server, options string) string {
	t.Helper()
	name := randomName("reeve_test_")
	if err := execPostgres(server, "CREATE DATABASE "+name+options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := execPostgres(server, "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	})
	u, err := databaseURL(server, name)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func randomName(prefix string) string {
	b := make([]byte, 8)
	rand.Read(b)
	return prefix + hex.EncodeToString(b)
}

// databaseURL returns the URL of a database on the given server.
func databaseURL(server, database string) (string, error) {
	u, err := url.Parse(server)
	if err != nil {
		return "", fmt.Errorf("REEVE_TEST_POSTGRES is not a URL: %w", err)
	}
	u.Path = "/" + database
	return u.String(), nil
}

func execPostgres(server, query string) error {
	ctx := context.Background()
	c, err := pgx.Connect(ctx, server)
	if err != nil {
		return err
	}
	_, err = c.Exec(ctx, query)
	return errors.Join(err, c.Close(ctx))
}

// postgresTemplate creates a database with Reeve's tables, once per process, and returns its name. No connection to the
// database stays open, because PostgreSQL refuses to copy a database that is in use. The database is never dropped,
// because the test server is temporary.
var postgresTemplate = sync.OnceValues(func() (name string, err error) {
	server := os.Getenv("REEVE_TEST_POSTGRES")
	name = randomName("reeve_template_")
	at, err := databaseURL(server, name)
	if err == nil {
		err = execPostgres(server, "CREATE DATABASE "+name)
	}
	if err == nil {
		err = createSchema("pgx", at, "postgres")
	}
	return name, err
})

// createSchema creates Reeve's tables in an empty database.
func createSchema(driver, at, engine string) (err error) {
	_, newest, err := store.Versions()
	if err != nil {
		return err
	}
	db, err := sql.Open(driver, at)
	if err != nil {
		return err
	}
	return errors.Join(store.Schema(context.Background(), db, engine, newest), db.Close())
}

// sqliteTemplate returns the content of a SQLite file with Reeve's tables. The file is created once per process.
var sqliteTemplate = sync.OnceValues(func() (body []byte, err error) {
	dir, err := os.MkdirTemp("", "reeve-template")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	file := filepath.Join(dir, "reeve.db")
	if err := createSchema("sqlite", "file:"+file, "sqlite"); err != nil {
		return nil, err
	}
	return os.ReadFile(file)
})

// SQLiteFile creates a SQLite database with Reeve's tables. It does nothing if the file exists.
func SQLiteFile(t testing.TB, file string) {
	t.Helper()
	body, err := sqliteTemplate()
	if err != nil {
		t.Fatalf("create the template database: %v", err)
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return
	}
	if err == nil {
		_, err = f.Write(body)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}
