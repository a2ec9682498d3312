package storetest

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// PgBouncer starts a PgBouncer in front of the test server, with the given lines added to its settings, such as
// "pool_mode = transaction". It returns a function that turns the URL of a database into one that connects through
// PgBouncer. PgBouncer stops when the test ends.
func PgBouncer(t testing.TB, settings ...string) func(database string) string {
	t.Helper()
	command := strings.Fields(os.Getenv("REEVE_TEST_PGBOUNCER"))
	server, err := url.Parse(os.Getenv("REEVE_TEST_POSTGRES"))
	if len(command) == 0 || server.String() == "" || err != nil {
		t.Fatal("no PgBouncer: run make test (scripts/postgres run go test ./...)")
	}
	dir, err := os.MkdirTemp("", "pgb") // a socket path is limited to about 100 bytes, which t.TempDir may exceed
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	must(t, os.Chmod(dir, 0o777)) // PgBouncer may run as another user
	users, config := filepath.Join(dir, "users"), filepath.Join(dir, "pgbouncer.ini")
	must(t, os.WriteFile(users, []byte("\"reeve\" \"\"\n"), 0o644))
	text := fmt.Sprintf("[databases]\n* = host=%s\n[pgbouncer]\nlisten_addr =\nunix_socket_dir = %s\n"+
		"auth_type = trust\nauth_file = %s\nmax_client_conn = 500\n%s\n",
		server.Query().Get("host"), dir, users, strings.Join(settings, "\n"))
	must(t, os.WriteFile(config, []byte(text), 0o644))
	log := &bytes.Buffer{}
	cmd := exec.Command(command[0], append(command[1:], "-q", config)...)
	cmd.Stdout, cmd.Stderr = log, log
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("PgBouncer output:\n%s", log)
		}
	})
	through := func(database string) string {
		u, err := url.Parse(database)
		must(t, err)
		u.RawQuery = url.Values{"host": {dir}, "port": {"6432"}}.Encode()
		return u.String()
	}
	ping := func() error {
		c, err := pgx.Connect(t.Context(), through(server.String()))
		if err != nil {
			return err
		}
		return c.Close(context.Background())
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if err = ping(); err == nil {
			return through
		}
		if time.Now().After(end) {
			t.Fatalf("PgBouncer does not start: %v", err)
		}
	}
}
