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

// PostgresURL creates a database with Reeve's tables for the test and drops it afterwards. Without a server the test
// fails, because a suite that skips in silence proves nothing.
func PostgresURL(t testing.TB) string {
	t.Helper()
	server := postgresServer(t)
	template, err := postgresTemplate()
	if err != nil {
		t.Fatalf("the template database cannot be made: %v", err)
	}
	return createPostgres(t, server, " TEMPLATE "+template)
}

// EmptyPostgresURL creates a database without any tables for the test and drops it afterwards.
func EmptyPostgresURL(t testing.TB) string {
	t.Helper()
	return createPostgres(t, postgresServer(t), "")
}

// postgresServer gives the URL of the server that tests use.
func postgresServer(t testing.TB) string {
	t.Helper()
	server := os.Getenv("REEVE_TEST_POSTGRES")
	if server == "" {
		t.Fatal("no PostgreSQL: run make test (scripts/postgres run go test ./...)")
	}
	return server
}

// createPostgres creates a database with a name of its own and drops it when the test ends.
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
	u, err := onServer(server, name)
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

// onServer gives the URL of another database of a server.
func onServer(server, database string) (string, error) {
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

// postgresTemplate makes a database with Reeve's tables, once for each process, and gives its name. Nobody connects to
// it again, so that any number of databases can be copied from it at once. It goes with the throwaway server.
var postgresTemplate = sync.OnceValues(func() (name string, err error) {
	server := os.Getenv("REEVE_TEST_POSTGRES")
	name = randomName("reeve_template_")
	at, err := onServer(server, name)
	if err == nil {
		err = execPostgres(server, "CREATE DATABASE "+name)
	}
	if err == nil {
		err = migrateFresh("pgx", at, "postgres")
	}
	return name, err
})

// migrateFresh makes Reeve's tables in an empty database.
func migrateFresh(driver, at, engine string) (err error) {
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

// sqliteTemplate is the content of a SQLite file with Reeve's tables, made once for each process.
var sqliteTemplate = sync.OnceValues(func() (body []byte, err error) {
	dir, err := os.MkdirTemp("", "reeve-template")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	file := filepath.Join(dir, "reeve.db")
	if err := migrateFresh("sqlite", "file:"+file, "sqlite"); err != nil {
		return nil, err
	}
	return os.ReadFile(file)
})

// SQLiteFile writes a SQLite database with Reeve's tables to a file. A file that exists is left as it is.
func SQLiteFile(t testing.TB, file string) {
	t.Helper()
	body, err := sqliteTemplate()
	if err != nil {
		t.Fatalf("the template database cannot be made: %v", err)
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
