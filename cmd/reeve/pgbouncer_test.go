package main_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"reeve"
)

// TestPgBouncer_CallsAndTurnsOfThreeServers runs calls and turns on three servers behind PgBouncer in transaction mode.
// One server is killed, and its clients continue with the others. Every effect happens once, and reeve doctor reports
// how the server connects to the database.
func TestPgBouncer_CallsAndTurnsOfThreeServers(t *testing.T) {
	t.Parallel()
	const clients, each = 6, 20
	r, e := newRig(t), pgbouncerEngine(t)
	r.follow(turnScript)
	ctx, cancel := context.WithTimeout(t.Context(), 2*limit)
	defer cancel()
	w, err := r.furnish(ctx, e, func(c caller) error {
		if err := c.do(ctx, "POST", "/api/tools", r.farTool("far_keyed", "keyed", "side_effecting"), nil); err != nil {
			return err
		}
		if err := c.do(ctx, "POST", "/api/agents", thing{"name": "bot"}, nil); err != nil {
			return err
		}
		return attach(ctx, c, "bot", "write_file", "read_file", "far_keyed")
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.remove() }()
	servers := make([]*process, 3)
	callers := make([]caller, 3)
	for i := range servers {
		mine := w
		if i > 0 {
			if mine.dir, err = os.MkdirTemp(e.base, "server"); err != nil {
				t.Fatal(err)
			}
			if err := copyFiles(mine.dir, w.dir, "owner.token", "secret.key"); err != nil {
				t.Fatal(err)
			}
		}
		if servers[i], err = r.serve(mine); err != nil {
			t.Fatal(err)
		}
		if err := servers[i].await(ctx); err != nil {
			t.Fatal(err)
		}
		if callers[i], err = w.owner(servers[i], unlimited); err != nil {
			t.Fatal(err)
		}
	}

	// insist sends a request to one server after the other until it succeeds. A request is refused while another server
	// still processes its key.
	insist := func(at int, method, path string, in, out any, headers ...string) error {
		return poll(ctx, path, func() (bool, error) {
			err := callers[at%3].do(ctx, method, path, in, out, headers...)
			if errors.Is(err, errGone) {
				at++
				return false, nil
			}
			if refusedWith(err, 409) {
				return false, nil
			}
			return err == nil, err
		})
	}
	var started, all sync.WaitGroup
	started.Add(clients)
	for i := range clients {
		all.Go(func() {
			begin := sync.OnceFunc(started.Done)
			defer begin()
			var talk reeve.Conversation
			var turn reeve.Turn
			name := fmt.Sprint("client-", i)
			err := insist(i, "POST", "/api/conversations", thing{"agent": "bot"}, &talk, "Idempotency-Key",
				name+"-talk")
			if err == nil {
				path := "/api/conversations/" + talk.ID + "/turns"
				err = insist(i, "POST", path, thing{"content": "go"}, &turn, "Idempotency-Key", name+"-turn")
			}
			for k := 0; k < each && err == nil; k++ {
				key := fmt.Sprint(name, "-", k)
				body := thing{"tool": "far_keyed", "args": thing{"lane": key}}
				err = insist(i+k, "POST", "/api/agents/bot/calls", body, nil, "Idempotency-Key", key)
				if k == 2 {
					begin()
				}
			}
			if err == nil {
				err = poll(ctx, "the turn of "+name, func() (bool, error) {
					err := insist(i, "GET", "/api/turns/"+turn.ID, nil, &turn)
					return turn.State.IsFinal(), err
				})
			}
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	started.Wait()
	servers[1].kill()
	all.Wait()

	doctor := exec.CommandContext(ctx, r.program, "doctor")
	doctor.Env = append([]string{"PATH=" + os.Getenv("PATH")}, r.environment(w)...)
	out, err := doctor.CombinedOutput()
	if !strings.Contains(string(out), "uses a pooler, so reeve backup requires database_direct") {
		t.Errorf("reeve doctor: %v\n%s", err, out)
	}
	db, err := w.open()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if err := poll(ctx, "the calls to end", func() (bool, error) {
		var n int
		err := db.QueryRowContext(ctx,
			`SELECT count(*) FROM calls WHERE operation_id IS NOT NULL AND state IN ('prepared', 'dispatched')`).
			Scan(&n)
		return n == 0, err
	}); err != nil {
		t.Error(err)
	}
	for _, i := range []int{0, 2} {
		if err := servers[i].stop(); err != nil {
			t.Error(err)
		}
		if log := servers[i].log.String(); strings.Contains(log, "prepared statement") {
			t.Errorf("server %d: %s", i, log)
		}
	}
	const operations = clients * (each + 2) // each call, and the two of each turn that change something
	wrong := counted(ctx, db, []count{
		{"turns too few or too many", fmt.Sprintf(`SELECT abs(count(*) - %d) FROM runs
			WHERE state = 'completed' AND output = 'All is done.'`, clients)},
		{"runs too few or too many", fmt.Sprintf(`SELECT abs(count(*) - %d) FROM runs`, clients)},
		{"operations too few or too many",
			fmt.Sprintf(`SELECT abs(count(*) - %d) FROM calls WHERE operation_id IS NOT NULL`, operations)},
		{"operations that failed",
			`SELECT count(*) FROM calls WHERE operation_id IS NOT NULL AND state <> 'committed'`},
		{"locks that are left", `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'
			AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`},
	})
	for _, err := range wrong {
		t.Error(err)
	}
	rows, err := db.QueryContext(ctx,
		`SELECT operation_id FROM calls WHERE tool = 'far_keyed' AND operation_id IS NOT NULL`)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			t.Fatal(err)
		}
		if n, err := r.effects(ctx, id); err != nil || n != 1 {
			t.Errorf("operation %s had %d effects, %v", id, n, err)
		}
	}
	if t.Failed() {
		t.Logf("logs:\n%s\n%s", &servers[0].log, &servers[2].log)
	}
}
