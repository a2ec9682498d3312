package crash_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"reeve"
	"reeve/api"
)

const (
	slowCalls = 24
	slowMS    = 1000 // how long the witness takes, of the tool's 2000
)

// TestG28_SlowWitnessGetsNoDuplicates kills the real server while a witness that takes a second per request works on 24
// verifiable calls. The next server looks them up before they have taken effect and must not send them again. On
// PostgreSQL the next server runs other than the first expected.
func TestG28_SlowWitnessGetsNoDuplicates(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, e := range []*engine{sqliteEngine(t), postgresEngine(t)} {
		t.Run(e.name, func(t *testing.T) {
			w, err := r.newWorld(t.Context(), e, func(c caller) error { return r.createTools(t.Context(), c) })
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			if err := r.killSlowCalls(ctx, w); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// killSlowCalls makes the calls, has the witness kill their server with the last of them, and counts the effects.
func (r *rig) killSlowCalls(ctx context.Context, w world) error {
	first, err := r.serve(w)
	if err != nil {
		return err
	}
	defer first.kill()
	if err := first.waitUntilReady(ctx); err != nil {
		return err
	}
	var next *process
	if w.database != "" { // on PostgreSQL the next server already runs when the first is killed
		beside, err := w.newDirectory()
		if err != nil {
			return err
		}
		if next, err = r.serve(beside); err != nil {
			return err
		}
		defer next.kill()
		if err := next.waitUntilReady(ctx); err != nil {
			return err
		}
	}
	lane := func(i int) string { return fmt.Sprintf("slow-%s-%d", w.engine.name, i) }
	call := func(p *process, i int) (res reeve.Result, err error) {
		c, err := w.owner(p, unlimited)
		if err != nil {
			return res, err
		}
		err = c.do(ctx, "POST", "/api/agents/free/calls",
			object{"tool": "far_verifiable", "args": object{"lane": lane(i)}}, &res,
			"Idempotency-Key", lane(i))
		return res, err
	}
	for i := range slowCalls {
		how := witnessPlan{SlowMS: slowMS}
		switch {
		case i == slowCalls-1:
			how.Do, how.When, how.PID = "kill", "before", first.cmd.Process.Pid
		case i%6 == 0:
			how.Do, how.When = "drop", "before"
		}
		if err := r.witness.do(ctx, "PUT", "/plans/"+lane(i), []witnessPlan{how}, nil); err != nil {
			return err
		}
	}
	var calls sync.WaitGroup
	defer calls.Wait()
	for i := range slowCalls - 1 {
		calls.Go(func() { _, _ = call(first, i) }) // which is cut off
	}
	c, err := w.owner(first, unlimited)
	if err != nil {
		return err
	}
	err = poll(ctx, "the calls to be sent", func() (bool, error) {
		var list api.OperationList
		err := c.do(ctx, "GET", "/api/operations?limit=100", nil, &list)
		return len(list.Operations) == slowCalls-1, err
	})
	if err != nil {
		return err
	}
	if _, err := call(first, slowCalls-1); !errors.Is(err, errGone) {
		return fmt.Errorf("the server was not killed: %v", err)
	}
	<-first.gone
	if next == nil {
		if next, err = r.serve(w); err != nil {
			return err
		}
		defer next.kill()
		if err := next.waitUntilReady(ctx); err != nil {
			return err
		}
	} else {
		if err := w.forgetOlderServers(ctx); err != nil {
			return err
		}
		c, err := w.owner(next, unlimited)
		if err != nil {
			return err
		}
		if err := c.do(ctx, "POST", "/api/resume", object{}, nil); err != nil { // has it look for work at once
			return err
		}
	}
	var wrong []error
	for i := range slowCalls {
		var res reeve.Result
		err := poll(ctx, lane(i)+" to be committed", func() (bool, error) {
			res, err = call(next, i)
			return res.State == reeve.Committed, err
		})
		if err != nil {
			return fmt.Errorf("%w\nserver's log: %s", err, &next.log)
		}
		if n, err := r.countEffects(ctx, res.OperationID); err != nil || n != 1 {
			wrong = append(wrong, fmt.Errorf("%s: %d effects, %v", lane(i), n, err))
		}
	}
	return errors.Join(wrong...)
}

// newDirectory creates a data directory for another server on the same database.
func (w world) newDirectory() (world, error) {
	dir, err := os.MkdirTemp(w.engine.base, "beside")
	if err != nil {
		return w, err
	}
	err = copyFiles(dir, w.dir, "owner.token", "secret.key")
	w.dir = dir
	return w, err
}

// forgetOlderServers makes all servers except the newest known as dead; see forgetDeadServers.
func (w world) forgetOlderServers(ctx context.Context) error {
	db, err := w.open()
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, `DELETE FROM processes WHERE started_at < (SELECT max(started_at) FROM processes)`)
	return errors.Join(err, db.Close())
}
