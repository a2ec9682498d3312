package crash_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"reeve"
	"reeve/api"
)

// TestG27_RestoreRepeatsNothingByItself backs a server up while runs, a schedule, an approved call and a call in flight
// are in progress. All of them have their effects at the witness, then the server is killed and the backup is restored.
// Nothing happens a second time until a person resumes it, and then only what was listed.
func TestG27_RestoreRepeatsNothingByItself(t *testing.T) {
	for name, engine := range map[string]func(*testing.T) *engine{"sqlite": sqliteEngine, "postgres": postgresEngine} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			ctx, cancel := context.WithTimeout(t.Context(), 2*limit)
			defer cancel()
			s := r.makeBackup(ctx, engine(t))
			t.Run("resumed without what was under way", func(t *testing.T) { r.checkRestore(ctx, t, s, "--skip-all") })
			t.Run("resumed with everything", func(t *testing.T) { r.checkRestore(ctx, t, s) })
		})
	}
}

// savedBackup is a backup and what happened after it.
type savedBackup struct {
	world
	file                string
	node                string
	approved, hung      string // operations that were prepared, and dispatched, when the backup was made
	schedule            string
	effects, effectKeys int // at the witness, when the server was killed
}

// runCLI runs the real binary as a command.
func (r *rig) runCLI(ctx context.Context, w world, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, r.program, args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, r.serverEnv(w)...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// listEffects returns all effects of the witness by key.
func (r *rig) listEffects(ctx context.Context) (map[string]int, int, error) {
	var list []struct {
		Key     string
		Effects int
	}
	err := r.witness.do(ctx, "GET", "/effects", nil, &list)
	by, all := map[string]int{}, 0
	for _, c := range list {
		by[c.Key] += c.Effects
		all += c.Effects
	}
	return by, all, err
}

const (
	heldAgents = 16 // agents that are woken while the server is backed up
	heldSteps  = 4  // unsafe calls of each
)

// makeBackup makes a backup under load, lets everything finish, and kills the server.
func (r *rig) makeBackup(ctx context.Context, e *engine) savedBackup {
	r.t.Helper()
	s := savedBackup{file: filepath.Join(r.t.TempDir(), "backup")}
	must := func(err error) {
		r.t.Helper()
		if err != nil {
			r.t.Fatal(err)
		}
	}
	w, err := r.newWorld(ctx, e, func(c caller) error {
		if err := r.createTools(ctx, c); err != nil {
			return err
		}
		for i := range heldAgents + 1 { // the last is woken only when the server goes on
			var steps []object
			for n := range heldSteps {
				steps = append(steps, object{"tool": "far_unsafe",
					"args": object{"lane": fmt.Sprintf("run-%d-%d", i, n)}})
			}
			name := fmt.Sprintf("hand-%d", i)
			if err := c.do(ctx, "POST", "/api/agents",
				object{"name": name, "config": object{"rehearsal": object{"steps": steps, "output": "done"}}},
				nil); err != nil {
				return err
			}
			if err := attachTools(ctx, c, name, "far_unsafe"); err != nil {
				return err
			}
		}
		return nil
	})
	must(err)
	s.world = w
	p, err := r.serve(w)
	must(err)
	must(p.waitUntilReady(ctx))
	c, err := w.owner(p, unlimited)
	must(err)

	// A call that is approved while its agent is stopped: it is prepared, and has not begun.
	var res reeve.Result
	must(c.do(ctx, "POST", "/api/agents/asking/calls", object{"tool": "far_unsafe", "args": object{"lane": "approved"}},
		&res))
	s.approved = res.OperationID
	must(c.do(ctx, "POST", "/api/stop", object{"agent": "asking"}, nil))
	must(approve(ctx, c, s.approved))
	// A schedule that fires after the backup.
	var timer reeve.Timer
	at := time.Now().UTC().Add(4 * time.Second).Format("2006-01-02T15:04:05Z")
	must(c.do(ctx, "POST", "/api/schedules", object{"agent": "hand-0", "name": "later", "cadence_type": "once",
		"cadence_value": at}, &timer))
	s.schedule = timer.ID
	// A call that is at the witness, which does not answer.
	must(r.witness.do(ctx, "PUT", "/plans/hung", []witnessPlan{{Do: "hang", When: "counted"}}, nil))
	hung := make(chan error, 1)
	go func() {
		hung <- c.do(ctx, "POST", "/api/agents/free/calls", object{"tool": "far_unsafe", "args": object{"lane": "hung"}},
			nil, "Idempotency-Key", "hung")
	}()
	must(poll(ctx, "the hung call to arrive", func() (bool, error) {
		var list []struct{ Key, Lane string }
		err := r.witness.do(ctx, "GET", "/effects", nil, &list)
		for _, v := range list {
			if v.Lane == "hung" {
				s.hung = v.Key
			}
		}
		return s.hung != "", err
	}))
	// The witness is slow with the last agent, whose run is under way for as long as a backup may take.
	for n := range heldSteps {
		must(r.witness.do(ctx, "PUT", fmt.Sprintf("/plans/run-%d-%d", heldAgents-1, n),
			[]witnessPlan{{When: "before", SlowMS: 1500}}, nil))
	}
	for i := range heldAgents {
		must(c.do(ctx, "POST", fmt.Sprintf("/api/agents/hand-%d/wake", i), object{"input": "go"}, nil))
	}
	out, err := r.runCLI(ctx, w, "backup", s.file)
	if err != nil {
		r.t.Fatalf("%v: %s", err, out)
	}
	_, early, err := r.listEffects(ctx)
	must(err)
	must(c.do(ctx, "POST", "/api/resume", object{"agent": "asking"}, nil))
	<-hung // whatever it was told
	// the runs', the approved and the hung one, and the schedule's run
	const all = heldAgents*heldSteps + 1 + 1 + heldSteps
	must(poll(ctx, "every effect", func() (bool, error) {
		_, s.effects, err = r.listEffects(ctx)
		return s.effects == all, err
	}))
	var status api.Status
	must(c.do(ctx, "GET", "/api/status", nil, &status))
	s.node = status.Node
	p.kill()
	by, _, err := r.listEffects(ctx)
	must(err)
	s.effectKeys = len(by)
	if s.effectKeys != all || early == all {
		r.t.Fatalf("%d effects under %d keys, %d of them before the backup was whole: nothing could be repeated",
			s.effects, s.effectKeys, early)
	}
	return s
}

// checkRestore restores the backup into another data directory, starts a server there, and checks it.
func (r *rig) checkRestore(ctx context.Context, t *testing.T, s savedBackup, resume ...string) {
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	before, total, err := r.listEffects(ctx)
	must(err)
	w, err := s.engine.newEmptyWorld()
	must(err)
	must(copyFiles(w.dir, s.dir, "owner.token", "secret.key"))
	if w.database == "" {
		out, err := r.runCLI(ctx, w, "restore", s.file, "--yes")
		if err != nil || !strings.Contains(out, "start held") {
			t.Fatalf("%v: %s", err, out)
		}
	} else if out, err := exec.CommandContext(ctx, "pg_restore", "--no-owner", "--exit-on-error",
		"--dbname="+w.database, s.file).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	must(w.forgetDeadServers(ctx)) // so that on PostgreSQL the next server takes over at once
	p, err := r.serve(w)
	must(err)
	defer p.kill()
	must(p.waitUntilReady(ctx))
	c, err := w.owner(p, unlimited)
	must(err)

	var hold api.HoldReport
	must(c.do(ctx, "GET", "/api/hold", nil, &hold))
	listed := map[string]reeve.HeldWork{}
	for _, v := range hold.Work {
		listed[v.ID] = v
	}
	for id, kind := range map[string]reeve.HeldKind{s.approved: reeve.HeldOperation, s.hung: reeve.HeldOperation,
		s.schedule: reeve.HeldSchedule} {
		if v := listed[id]; !hold.Held || v.Kind != kind || !v.Overdue {
			t.Errorf("%s %s is not listed as overdue: %+v", kind, id, v)
		}
	}
	if hold.Counts[reeve.HeldRun]+hold.Counts[reeve.HeldWake] == 0 {
		t.Error("no run or wake is listed, although some were under way")
	}
	var status api.Status
	must(c.do(ctx, "GET", "/api/status", nil, &status))
	if status.Hold == nil || status.Node == "" || status.Node == s.node {
		t.Errorf("status: hold %+v, node %s; it was %s", status.Hold, status.Node, s.node)
	}
	var inbox api.Inbox
	must(c.do(ctx, "GET", "/api/inbox", nil, &inbox))
	if inbox.Hold == nil {
		t.Error("the inbox does not say that the server is held")
	}
	if out, err := r.runCLI(ctx, w, "doctor"); err == nil || !strings.Contains(out, "FAIL  hold") {
		t.Errorf("doctor: %v: %s", err, out)
	}
	for what, body := range map[string]object{
		"/api/agents/free/calls":  {"tool": "far_unsafe", "args": object{"lane": "new"}},
		"/api/agents/hand-0/wake": {"input": "go"},
		"/api/agents":             {"name": "new"},
	} {
		if err := c.do(ctx, "POST", what, body, nil); !hasStatus(err, http.StatusLocked) ||
			!strings.Contains(err.Error(), "reeve resume") {
			t.Errorf("POST %s while held: %v", what, err)
		}
	}
	// reads are answered
	must(c.do(ctx, "POST", "/api/agents/free/calls", object{"tool": "read_file", "args": object{"path": "none"}}, nil))

	// The loops poll at least every two seconds, so three seconds show that nothing is sent.
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); {
		if _, n, err := r.listEffects(ctx); err != nil || n != total {
			t.Fatalf("the witness saw %d effects, and %d before the restore: %v", n, total, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	runs := map[string]bool{} // that may go on
	for id, v := range listed {
		if v.Kind == reeve.HeldRun || v.Kind == reeve.HeldWake || v.Kind == reeve.HeldSchedule {
			runs[id] = true
		}
	}
	if out, err := r.runCLI(ctx, w, append([]string{"resume"}, resume...)...); err != nil ||
		!strings.Contains(out, "resumed the server") {
		t.Fatalf("%v: %s", err, out)
	}
	must(c.do(ctx, "GET", "/api/inbox", nil, &inbox))
	for _, id := range []string{s.approved, s.hung} {
		if !slices.ContainsFunc(inbox.Unknown, func(o reeve.Operation) bool { return o.ID == id }) {
			t.Errorf("operation %s is not unknown in the inbox", id)
		}
	}
	// work that is new is done
	must(c.do(ctx, "POST", fmt.Sprintf("/api/agents/hand-%d/wake", heldAgents), object{"input": "new"}, nil))
	must(poll(ctx, "every run to end or wait", func() (bool, error) {
		var list api.RunList
		err := c.do(ctx, "GET", "/api/runs?limit=200", nil, &list)
		done := 0
		for _, v := range list.Runs {
			if v.Input == "new" && v.State == reeve.RunCompleted {
				done++
			}
		}
		return done == 1 && !slices.ContainsFunc(list.Runs,
			func(v reeve.Run) bool { return v.State == reeve.RunRunning }), err
	}))
	total += heldSteps
	after, n, err := r.listEffects(ctx)
	must(err)
	if len(resume) > 0 && n != total {
		t.Errorf("the witness saw %d effects, and %d before the restore, although everything was skipped", n, total)
	}
	if len(resume) == 0 && n == total {
		t.Error("nothing of what was listed went on")
	}
	for key, n := range after {
		if before[key] == 0 || n == before[key] {
			continue
		}
		var op reeve.Operation
		if err := c.do(ctx, "GET", "/api/operations/"+key, nil, &op); err != nil {
			t.Errorf("effect %s came %d times: %v", key, n, err)
			continue
		}
		var wakes api.WakeList
		must(c.do(ctx, "GET", "/api/runs/"+op.RunID+"/wakes", nil, &wakes))
		known := runs[op.RunID] || slices.ContainsFunc(wakes.Wakes, func(v reeve.Wake) bool {
			return runs[v.RunKey] || runs[v.ReasonID]
		})
		if !known {
			t.Errorf("effect %s of run %s came again, and was not listed", key, op.RunID)
		}
	}
	must(errors.Join(p.stop(), w.remove()))
}

// TestG27_RestoreKilledAtEveryStep kills a restore before each of its steps. The old or the new database is there,
// whole, and never one with the log of the other.
func TestG27_RestoreKilledAtEveryStep(t *testing.T) {
	t.Parallel()
	r, e := newRig(t), sqliteEngine(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*limit)
	defer cancel()
	file := filepath.Join(t.TempDir(), "backup.db")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	w, err := e.newEmptyWorld()
	must(err)
	p, err := r.serve(w)
	must(err)
	must(p.waitUntilReady(ctx))
	c, err := w.owner(p, unlimited)
	must(err)
	must(c.do(ctx, "POST", "/api/agents", object{"name": "before"}, nil))
	if out, err := r.runCLI(ctx, w, "backup", file); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	must(c.do(ctx, "POST", "/api/agents", object{"name": "after"}, nil))
	p.kill() // what is new is in the log
	e.template = w
	for step, killed := 1, true; killed; step++ {
		w, err := e.newPreparedWorld()
		must(err)
		cmd := exec.CommandContext(ctx, r.program, "restore", file, "--yes")
		cmd.Env = append(r.serverEnv(w), "REEVE_FAULT="+fmt.Sprintf("commit:%d:before", step))
		out, err := cmd.CombinedOutput()
		var ended *exec.ExitError
		if killed = errors.As(err, &ended) && !ended.Exited(); err != nil && !killed {
			t.Fatalf("step %d: %v: %s", step, err, out)
		}
		must(w.checkFile(ctx))
		p, err := r.serve(w)
		must(err)
		must(p.waitUntilReady(ctx))
		c, err := w.owner(p, unlimited)
		must(err)
		var list api.AgentList
		must(c.do(ctx, "GET", "/api/agents", nil, &list))
		var status api.Status
		must(c.do(ctx, "GET", "/api/status", nil, &status))
		must(p.stop())
		left, err := filepath.Glob(filepath.Join(w.dir, "reeve.db*"))
		must(err)
		names := strings.ReplaceAll(strings.Join(left, " "), w.dir+"/", "")
		switch {
		case len(list.Agents) == 2 && status.Hold == nil && !strings.Contains(names, "restor"): // the old one
			if step > 1 {
				t.Errorf("step %d: the old database is there, although the restore was decided: %s", step, names)
			}
		// the new one, and the old one beside it
		case len(list.Agents) == 1 && status.Hold != nil && !strings.Contains(names, "restoring"):
			if step == 1 || strings.Count(names, ".before-restore-") < 2 {
				t.Errorf("step %d: %s", step, names)
			}
		default:
			t.Errorf("step %d: %d agents, hold %+v: %s", step, len(list.Agents), status.Hold, names)
		}
		if !killed && step < 7 {
			t.Errorf("the restore took only %d steps", step)
		}
		must(w.remove())
	}
}
