package httpapi_test

import (
	"bytes"
	"encoding/binary"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/reevetest"
)

// If the database file is moved, replaced or truncated while the server runs, reads may still work, but a later start
// would not find new changes. The server refuses changes, and readiness and doctor report the reason. Once the file is
// back, changes work again.
func TestDatabaseFile_MovedReplacedOrTruncated(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(t *testing.T, file string) (repair func()){
		"moved": func(t *testing.T, file string) func() {
			must(t, os.Rename(file, file+".moved"))
			return func() { must(t, os.Rename(file+".moved", file)) }
		},
		"replaced": func(t *testing.T, file string) func() {
			b, err := os.ReadFile(file)
			must(t, err)
			must(t, os.Rename(file, file+".moved"))
			must(t, os.WriteFile(file, b, 0o600))
			return func() { must(t, os.Rename(file+".moved", file)) }
		},
		"WAL moved": func(t *testing.T, file string) func() {
			must(t, os.Rename(file+"-wal", file+".moved"))
			return func() { must(t, os.Rename(file+".moved", file+"-wal")) }
		},
		"truncated": func(t *testing.T, file string) func() {
			b, err := os.ReadFile(file)
			must(t, err)
			must(t, os.Truncate(file, int64(len(b)/2)))
			return func() { must(t, os.Truncate(file, int64(len(b)))) } // the data stays lost
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// The first server copies its WAL into the database file when it stops.
			env := newTestEnv(t)
			first := env.start(t)
			first.Agent("clerk")
			first.Stop()
			h := env.start(t)
			call := func(status int, out any) {
				t.Helper()
				h.Want(status, out, "POST", "/api/agents/clerk/calls",
					api.CallRequest{Tool: "write_file", Args: []byte(`{"path":"a","content":"b"}`)})
			}
			call(http.StatusOK, nil)
			// After these requests, every reader of the pool has the file open.
			for range 2 * max(4, runtime.NumCPU()) {
				h.Want(http.StatusOK, nil, "GET", "/api/agents", nil)
			}
			repair := damage(t, filepath.Join(h.Dir(), "reeve.db"))
			var p api.Problem
			call(http.StatusServiceUnavailable, &p)
			if p.Code != reeve.Unavailable || !strings.Contains(p.Detail, "reeve.db") ||
				!strings.Contains(p.Hint, "put the file back") {
				t.Errorf("%+v", p)
			}
			h.Want(http.StatusServiceUnavailable, &p, "GET", "/readyz", nil)
			if !strings.Contains(p.Detail, "reeve.db") {
				t.Errorf("readyz: %+v", p)
			}
			if name != "truncated" { // a truncated database cannot be read
				var up api.DoctorReport
				h.Want(http.StatusOK, &up, "GET", "/api/doctor", nil)
				for _, c := range up.Checks {
					if c.Name == "database" && (c.OK || !strings.Contains(c.Detail, "reeve.db")) {
						t.Errorf("doctor: %+v", c)
					}
				}
			}
			if repair(); name == "truncated" {
				return
			}
			call(http.StatusOK, nil)
			h.Want(http.StatusOK, nil, "GET", "/readyz", nil)
		})
	}
}

// A WAL without its database, or next to another database, has changes that are stored nowhere else. SQLite would
// delete the WAL or apply it to the other database. The server does not start until the database is back.
func TestDatabaseFile_WALWithoutDatabase(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(h *reevetest.Host, file string) error{
		"missing":  func(*reevetest.Host, string) error { return nil },
		"empty":    func(_ *reevetest.Host, file string) error { return os.WriteFile(file, nil, 0o600) },
		"a backup": func(h *reevetest.Host, file string) error { return h.Backup(t.Context(), file) },
		"not a database": func(h *reevetest.Host, file string) error {
			return os.WriteFile(file, bytes.Repeat([]byte{0xa5}, 64<<10), 0o600)
		},
		"truncated": func(h *reevetest.Host, file string) error { // by one page that is not in the WAL
			b, err := os.ReadFile(file + ".moved")
			if err != nil {
				return err
			}
			return os.WriteFile(file, b[:len(b)-4096], 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// The first server copies its WAL into the database file when it stops.
			env := newTestEnv(t)
			first := env.start(t)
			first.Agent("writer")
			first.Stop()
			live := env.start(t)
			live.Agent("clerk")
			from, file := filepath.Join(live.Dir(), "reeve.db"), filepath.Join(t.TempDir(), "reeve.db")
			for _, ending := range []string{"", "-wal"} { // copied as a crash leaves them
				b, err := os.ReadFile(from + ending)
				must(t, err)
				must(t, os.WriteFile(file+ending, b, 0o600))
			}
			must(t, os.Rename(file, file+".moved"))
			must(t, damage(live, file))
			log, err := os.ReadFile(file + "-wal")
			must(t, err)
			_, err = host.New(t.Context(), host.Config{Dir: filepath.Dir(file)})
			problem := reeve.AsError(err)
			if problem.Code != reeve.Unavailable || !strings.Contains(problem.Message, "reeve.db-wal") ||
				!strings.Contains(problem.Hint, "put the database file back") {
				t.Fatalf("%v; %s", err, problem.Hint)
			}
			if now, err := os.ReadFile(file + "-wal"); err != nil || !bytes.Equal(now, log) {
				t.Fatalf("WAL has %d bytes, want %d unchanged: %v", len(now), len(log), err)
			}
			must(t, os.Rename(file+".moved", file))
			h := reevetest.StartWith(t, host.Config{Dir: filepath.Dir(file)})
			var list api.AgentList
			h.Want(http.StatusOK, &list, "GET", "/api/agents", nil)
			if len(list.Agents) != 2 {
				t.Errorf("%+v", list.Agents)
			}
		})
	}
}

// A crash during a checkpoint leaves a database file that is shorter than its first page says. The WAL has the other
// pages, so the server starts.
func TestDatabaseFile_CrashDuringCheckpoint(t *testing.T) {
	t.Parallel()
	live := startServer(t)
	live.Agent("clerk", "write_file", "read_file")
	content := strings.Repeat("x", 60<<10)
	for _, path := range []string{"/a", "/b", "/c", "/d"} {
		live.Call("clerk", "write_file", object{"path": path, "content": content})
	}
	from, dir := filepath.Join(live.Dir(), "reeve.db"), t.TempDir()
	db, err := os.ReadFile(from)
	must(t, err)
	log, err := os.ReadFile(from + "-wal")
	must(t, err)
	// A checkpoint copies the newest version of page 1 from the WAL. That page has the new size of the database.
	const page, frame = 4096, 24 + 4096
	for at := 32; at+frame <= len(log); at += frame {
		if binary.BigEndian.Uint32(log[at:]) == 1 && bytes.Equal(log[at+8:at+16], log[16:24]) {
			copy(db[:page], log[at+24:at+frame])
		}
	}
	if pages := binary.BigEndian.Uint32(db[28:]); int(pages)*page <= len(db) {
		t.Fatalf("page 1 says %d pages, and the file has %d bytes: want a file that is too short", pages, len(db))
	}
	must(t, os.WriteFile(filepath.Join(dir, "reeve.db"), db, 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "reeve.db-wal"), log, 0o600))
	h := reevetest.StartWith(t, host.Config{Dir: dir})
	if res := h.Call("clerk", "read_file", object{"path": "/d"}); res.IsError || res.Size < len(content) {
		t.Errorf("%s: %d bytes", res.Message, res.Size)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
