package crash_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"reeve"
	"reeve/api"
)

// newRehearsal creates an agent with a rehearsal and its tools.
func newRehearsal(ctx context.Context, c caller, name string, steps ...object) error {
	if err := c.do(ctx, "POST", "/api/agents",
		object{"name": name, "config": object{"rehearsal": object{"steps": steps, "output": name + " is done"}}},
		nil); err != nil {
		return err
	}
	return attachTools(ctx, c, name, "write_file", "read_file", "far_keyed")
}

func writeStep(path, content string) object {
	return object{"tool": "write_file", "args": object{"path": path, "content": content}}
}

// wrongWakes are queries that count rows that must not exist when every run has ended.
var wrongWakes = []rowCount{
	{"runs that have no end", `SELECT count(*) FROM runs WHERE state IN ('running', 'parked')`},
	{"runs that did not complete", `SELECT count(*) FROM runs WHERE state <> 'completed'`},
	{"wakes that still wait", `SELECT count(*) FROM wakes WHERE state <> 'taken'`},
	{"wakes without their run",
		`SELECT count(*) FROM wakes w WHERE NOT EXISTS (SELECT 1 FROM runs r WHERE r.id = w.run_id AND r.agent_id = w.agent_id)`},
	{"instants with several runs",
		`SELECT count(*) FROM (SELECT reason_id, scheduled_at FROM runs WHERE scheduled_at > 0 GROUP BY reason_id, scheduled_at HAVING count(*) > 1) x`},
	{"scheduled runs not told exactly once", `SELECT count(*) FROM (SELECT r.id FROM runs r LEFT JOIN notifications n ON n.run_id = r.id
		WHERE r.scheduled_at > 0 GROUP BY r.id HAVING count(n.id) <> 1) x`},
	{"agents that are not free", `SELECT count(*) FROM open_runs`},
	{"timers that did not advance", `SELECT count(*) FROM timers WHERE state <> 'completed' OR next_at <> 0`},
	{"plans that were thought twice",
		`SELECT count(*) FROM (SELECT thread_id FROM messages WHERE kind = 'thought' GROUP BY thread_id HAVING count(*) <> 1) x`},
}

// checkRuns checks the ledger in the database, when no server runs on it.
func (w world) checkRuns(ctx context.Context) error {
	db, err := w.open()
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	var wrong []error
	if w.database == "" {
		wrong = append(wrong, checkIntegrity(ctx, db))
	}
	for _, n := range slices.Concat(forbiddenRows, wrongWakes) {
		var rows int
		if err := db.QueryRowContext(ctx, n.query).Scan(&rows); err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", n.what, err))
		} else if rows != 0 {
			wrong = append(wrong, fmt.Errorf("%d %s", rows, n.what))
		}
	}
	return errors.Join(wrong...)
}

// TestO16_L08_KillAtEveryCommitOfAFiring kills the real server before and after every commit from the moment a schedule
// is due to the end of its run. Beside it runs an agent that a client wakes by hand, again with the same key after
// every crash. Afterwards every run is terminal, every operation was applied once, there is one run for the due time,
// and its person was notified once.
func TestO16_L08_KillAtEveryCommitOfAFiring(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, e := range []*engine{sqliteEngine(t), postgresEngine(t)} {
		var due time.Time
		// until the server that makes the schedule is gone before it is due
		for ahead := 5 * time.Second; ; ahead *= 2 {
			var err error
			e.template, err = r.newWorld(t.Context(), e, func(c caller) error {
				ctx := t.Context()
				if err := c.do(ctx, "POST", "/api/tools", r.newWitnessTool("far_keyed", "keyed", "side_effecting"),
					nil); err != nil {
					return err
				}
				if err := newRehearsal(ctx, c, "nightly", writeStep("/a", "1"),
					object{"tool": "far_keyed", "args": object{"lane": "wake-" + e.name}},
					object{"tool": "read_file", "args": object{"path": "/a"}}, writeStep("/b", "2")); err != nil {
					return err
				}
				if err := newRehearsal(ctx, c, "hand", writeStep("/c", "3")); err != nil {
					return err
				}
				due = time.Now().Add(ahead)
				return c.do(ctx, "POST", "/api/schedules", object{"agent": "nightly", "goal": "go",
					"cadence_type": "once", "cadence_value": due.UTC().Format(time.RFC3339), "notification": "always"},
					nil)
			})
			if err != nil {
				t.Fatal(err)
			}
			if time.Now().Before(due.Add(-time.Second)) {
				break
			}
		}
		if err := poll(t.Context(), "the schedule to be due", func() (bool, error) {
			return time.Now().After(due.Add(time.Second)), nil
		}); err != nil {
			t.Fatal(err)
		}
		r.killAtEveryCommit(e, 20, r.driveWakes, r.checkWakes)
	}
}

// killAtEveryCommit kills a server before and after every commit of what a client drives it to, starts another that
// finishes, and checks the outcome. The short form kills before every second and after every seventh commit on SQLite,
// and before every seventh and after every thirteenth on PostgreSQL. A kill after a commit leaves the same database as
// a kill before the next one. The short form leaves out the commits of a start; see firstCommit. The sweep fails if it
// kills fewer than least times; the short form expects a quarter of them on SQLite, and a sixteenth on PostgreSQL.
func (r *rig) killAtEveryCommit(e *engine, least int, drive func(context.Context, world, *process) error,
	check func(context.Context, world) error) {
	steps := map[string]int{"before": 1, "after": 1}
	if !*crashFull {
		steps["before"], steps["after"], least = 2, 7, least/4
	}
	if !*crashFull && e.server != nil {
		steps["before"], steps["after"], least = 7, 13, max(1, least/4)
	}
	first := r.firstCommit(e)
	var kills atomic.Int64
	var jobs []func()
	for when, step := range steps {
		over := make(chan struct{})
		var once sync.Once
		for n := first; n <= maxCommits; n += step {
			jobs = append(jobs, func() {
				select {
				case <-over: // an earlier one found that there are no more commits
					return
				default:
				}
				fired, err := r.killAndFinish(e, fault{commit: n, when: when}, drive, check)
				if err != nil {
					r.t.Errorf("%s, kill %s commit %d: %v", e.name, when, n, err)
				}
				if fired {
					kills.Add(1)
				} else {
					once.Do(func() { close(over) })
				}
			})
		}
	}
	runJobs(pointSlots, jobs)
	r.t.Logf("%s: %d kills", e.name, kills.Load())
	if kills.Load() < int64(least) {
		r.t.Errorf("%s: only %d kills; the sweep did not reach the end", e.name, kills.Load())
	}
}

// killAndFinish lets one server die at its fault and another finish, and checks everything.
func (r *rig) killAndFinish(e *engine, f fault, drive func(context.Context, world, *process) error,
	check func(context.Context, world) error) (fired bool, err error) {
	ctx, cancel := context.WithTimeout(r.t.Context(), limit)
	defer cancel()
	w, err := e.newPreparedWorld()
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, w.remove()) }()
	for life, f := range []fault{f, {}} {
		p, err := r.serve(w, f.env()...)
		if err != nil {
			return fired, err
		}
		err = p.waitUntilReady(ctx)
		if err == nil {
			err = drive(ctx, w, p)
		}
		if err == nil {
			err = p.stop() // it may yet die while it stops
		}
		if errors.Is(err, errGone) {
			select {
			case <-p.gone:
				err = nil
			case <-ctx.Done():
				err = errors.New("the server gave no answer, but lives")
			}
		}
		log := p.log.String()
		p.kill()
		if err != nil {
			return fired, fmt.Errorf("%w\nserver's log: %s", err, log)
		}
		if life == 0 {
			if fired = p.killed; !fired {
				break
			}
			if err := w.forgetDeadServers(ctx); err != nil {
				return fired, err
			}
		}
	}
	return fired, check(ctx, w)
}

// driveWakes plays the client: it wakes the agent with its key and waits until everything has ended.
func (r *rig) driveWakes(ctx context.Context, w world, p *process) error {
	c, err := w.owner(p, unlimited)
	if err != nil {
		return err
	}
	if err := c.do(ctx, "POST", "/api/agents/hand/wake", object{"input": "go"}, nil, "Idempotency-Key",
		"the-one"); err != nil {
		return err
	}
	return poll(ctx, "two runs to end", func() (bool, error) {
		var list api.RunList
		err := c.do(ctx, "GET", "/api/runs", nil, &list)
		ended := 0
		for _, v := range list.Runs {
			if v.State.IsFinal() {
				ended++
			}
		}
		return ended == 2 && len(list.Runs) == 2, err
	})
}

// checkWakes compares the ledger with the witness.
func (r *rig) checkWakes(ctx context.Context, w world) error {
	if err := w.checkRuns(ctx); err != nil {
		return err
	}
	db, err := w.open()
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	var runs, ops, files int
	var far string
	for query, into := range map[string]any{
		`SELECT count(*) FROM runs`: &runs,
		`SELECT count(*) FROM calls WHERE operation_id IS NOT NULL AND state = 'committed'`:    &ops,
		`SELECT count(*) FROM session_files`:                                                   &files,
		`SELECT operation_id FROM calls WHERE tool = 'far_keyed' AND operation_id IS NOT NULL`: &far,
	} {
		if err := db.QueryRowContext(ctx, query).Scan(into); err != nil {
			return err
		}
	}
	if runs != 2 || ops != 4 || files != 3 {
		return fmt.Errorf("%d runs, %d operations, %d files; want 2, 4 and 3", runs, ops, files)
	}
	n, err := r.countEffects(ctx, far)
	if err == nil && n != 1 {
		err = fmt.Errorf("the witness saw %d effects", n)
	}
	return err
}

// TestL11_ThreeServersShareTheQueue runs three real servers on one PostgreSQL database, wakes agents through each of
// them, and kills two during their runs. The third continues their work, and every wake is served once.
func TestL11_ThreeServersShareTheQueue(t *testing.T) {
	t.Parallel()
	threeServersShareTheQueue(t, postgresEngine(t))
}

// TestL11_ThreeServersBehindPgBouncer is TestL11_ThreeServersShareTheQueue behind PgBouncer in transaction mode.
func TestL11_ThreeServersBehindPgBouncer(t *testing.T) {
	t.Parallel()
	threeServersShareTheQueue(t, pgbouncerEngine(t))
}

func threeServersShareTheQueue(t *testing.T, e *engine) {
	const agents = 24
	r, ctx := newRig(t), t.Context()
	w, err := r.newWorld(ctx, e, func(c caller) error {
		if err := c.do(ctx, "POST", "/api/tools", r.newWitnessTool("far_keyed", "keyed", "side_effecting"),
			nil); err != nil {
			return err
		}
		for i := range agents {
			var steps []object
			for k := range 4 {
				steps = append(steps, object{"tool": "far_keyed",
					"args": object{"lane": fmt.Sprintf("three-%d-%d", i, k)}, "delay_ms": 200})
			}
			if err := newRehearsal(ctx, c, fmt.Sprint("a", i), append(steps, writeStep("/x", "x"))...); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.remove() }()
	var servers []*process
	var clients []caller
	for i := range 3 {
		mine := w
		if i > 0 {
			if mine.dir, err = os.MkdirTemp(e.base, "server"); err != nil {
				t.Fatal(err)
			}
			if err := copyFiles(mine.dir, w.dir, "owner.token", "secret.key"); err != nil {
				t.Fatal(err)
			}
		}
		p, err := r.serve(mine, "REEVE_MAX_RUNS=4")
		if err != nil {
			t.Fatal(err)
		}
		defer p.kill()
		if err := p.waitUntilReady(ctx); err != nil {
			t.Fatal(err)
		}
		c, err := w.owner(p, unlimited)
		if err != nil {
			t.Fatal(err)
		}
		servers, clients = append(servers, p), append(clients, c)
	}
	for i := range agents {
		if err := clients[i%3].do(ctx, "POST", fmt.Sprintf("/api/agents/a%d/wake", i), object{}, nil, "Idempotency-Key",
			fmt.Sprint("wake-", i)); err != nil {
			t.Fatal(err)
		}
	}
	owners := func() map[string]int {
		db, err := w.open()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = db.Close() }()
		rows, err := db.QueryContext(ctx, `SELECT owner, count(*) FROM runs WHERE state = 'running' GROUP BY owner`)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = rows.Close() }()
		out := map[string]int{}
		for rows.Next() {
			var owner string
			var n int
			if err := rows.Scan(&owner, &n); err != nil {
				t.Fatal(err)
			}
			out[owner] = n
		}
		return out
	}
	if err := poll(ctx, "all three to be at work", func() (bool, error) {
		return len(owners()) == 3, nil
	}); err != nil {
		t.Fatal(err)
	}
	servers[1].kill()
	servers[2].kill()
	t.Logf("killed two while runs were with %v", owners())
	patient, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err = poll(patient, "every run to end", func() (bool, error) {
		var list api.RunList
		if err := clients[0].do(patient, "GET", "/api/runs?limit=500", nil, &list); err != nil {
			return false, err
		}
		return len(list.Runs) >= agents &&
			!slices.ContainsFunc(list.Runs, func(v reeve.Run) bool { return !v.State.IsFinal() }), nil
	})
	if err != nil {
		t.Fatalf("%v\nserver's log: %s", err, &servers[0].log)
	}
	for i := range agents { // and no key is served again
		if err := clients[0].do(ctx, "POST", fmt.Sprintf("/api/agents/a%d/wake", i), object{}, nil, "Idempotency-Key",
			fmt.Sprint("wake-", i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := servers[0].stop(); err != nil {
		t.Fatal(err)
	}
	if err := w.checkRuns(ctx); err != nil {
		t.Error(err)
	}
	db, err := w.open()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	var runs, wakes, again int
	if err := db.QueryRowContext(ctx,
		`SELECT (SELECT count(*) FROM runs), (SELECT count(*) FROM wakes), (SELECT count(*) FROM runs WHERE attempts > 1)`).Scan(&runs, &wakes, &again); err != nil {
		t.Fatal(err)
	}
	if runs != agents || wakes != agents || again == 0 {
		t.Errorf("%d runs and %d wakes for %d agents; %d runs were taken up again", runs, wakes, agents, again)
	}
	rows, err := db.QueryContext(ctx,
		`SELECT operation_id FROM calls WHERE tool = 'far_keyed' AND operation_id IS NOT NULL`)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	var ops []string
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			t.Fatal(err)
		}
		ops = append(ops, id)
	}
	if len(ops) != 4*agents {
		t.Errorf("%d operations, want %d", len(ops), 4*agents)
	}
	for _, id := range ops {
		if n, err := r.countEffects(ctx, id); err != nil || n != 1 {
			t.Errorf("operation %s had %d effects, %v: %s", id, n, err, strings.TrimSpace(servers[0].log.String()))
		}
	}
}
