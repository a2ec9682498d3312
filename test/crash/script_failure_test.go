package crash_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reeve"
	"reeve/api"
)

// repairScript is a model script of a maintainer that repairs breakScript.
const repairScript = `answers:
  - {when: {said: "/Version 1.0 .*failed/"}, calls: [{name: scripts_fix, args: {source: "await Items.withItem('a', 'A', async (ctx) => { if (!ctx.item.isDone) await General.farKeyed({ lane: 'mended' }) })", comment: "the call that was not there is gone"}}]}
  - {when: {tool: scripts_fix}, text: "It is mended."}
`

const (
	breakScript = `await Items.withItem('a', 'A', async (ctx) => { if (!ctx.item.isDone) await General.farKeyed({ lane: 'mended' }); undefinedFunction() })`
	waitScript  = `try { await Items.withItem('a', 'A', async () => { try { await General.nobody({ lane: 'x' }) } catch (e) {} }) } catch (e) {}`
)

// wrongFailures are queries that count rows that must not exist when both automations have reached the end of their
// failures.
var wrongFailures = []struct{ what, query string }{
	{"repairs other than the one expected", `SELECT count(*) - 1 FROM script_jobs WHERE kind = 'repair' AND state = 'done'`},
	{"script jobs other than the repair expected", `SELECT count(*) - 1 FROM script_jobs`},
	{"versions beside 1.0, 1.1 and the other's", `SELECT count(*) - 3 FROM scripts`},
	{"maintainers other than the one expected", `SELECT count(*) - 1 FROM agents WHERE kind = 'maintainer'`},
	{"runs that carry on after the fix other than the one expected",
		`SELECT count(*) - 1 FROM wakes w JOIN agents a ON a.id = w.agent_id WHERE w.reason = 'retry' AND a.name = 'mender'`},
	{"retries other than the one expected",
		`SELECT count(*) - 1 FROM wakes w JOIN agents a ON a.id = w.agent_id WHERE w.reason = 'retry' AND a.name = 'waiter' AND w.state = 'taken'`},
	{"failed runs beside two",
		`SELECT count(*) - 2 FROM runs r JOIN agents a ON a.id = r.agent_id WHERE r.state = 'failed' AND a.name = 'waiter'`},
	{"failed runs of the one that was mended, other than the first expected",
		`SELECT count(*) - 1 FROM runs r JOIN agents a ON a.id = r.agent_id WHERE r.state = 'failed' AND a.name = 'mender'`},
	{"notifications beside that of the one that is stopped", `SELECT count(*) - 1 FROM notifications`},
	{"troubles beside its own", `SELECT count(*) - 1 FROM automation_failures WHERE stopped_at > 0 AND tries = 2`},
	{"wakes that still wait", `SELECT count(*) FROM wakes WHERE state = 'queued'`},
	{"runs that have no end", `SELECT count(*) FROM runs WHERE state IN ('running', 'parked')`},
	{"items beside one that is done and one that failed",
		`SELECT count(*) - 2 FROM items WHERE state IN ('done', 'failed')`},
}

// TestK18_KillAtEveryCommitOfAFailure kills the real server before and after every commit while one automation fails,
// is repaired and continues, and another fails by the network until a person is asked. There is one repair, one fix,
// one continued run, one retry for each failure and one notification, and the effect happened once.
func TestK18_KillAtEveryCommitOfAFailure(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	file := filepath.Join(t.TempDir(), "script.yaml")
	if err := os.WriteFile(file, []byte(repairScript), 0o600); err != nil {
		t.Fatal(err)
	}
	const nobody = "127.0.0.1:1" // a port on which no server listens during the test
	r.env = []string{"REEVE_MODEL=rehearsal", "REEVE_MODEL_SCRIPT=" + file, "REEVE_RETRY_ATTEMPTS=1",
		"REEVE_RUN_ATTEMPTS=50",
		"REEVE_HTTP_ALLOW=" + strings.TrimPrefix(r.witness.url, "http://") + "," + nobody}
	for _, e := range []*engine{sqliteEngine(t), postgresEngine(t)} {
		var err error
		e.template, err = r.newWorld(t.Context(), e, func(c caller) error {
			ctx := t.Context()
			lost := r.newWitnessTool("nobody", "read", "read_only")
			lost["spec"] = object{"method": "GET", "url": "http://" + nobody + "/{lane}"}
			for _, tool := range []object{r.newWitnessTool("far_keyed", "keyed", "side_effecting"), lost} {
				if err := c.do(ctx, "POST", "/api/tools", tool, nil); err != nil {
					return err
				}
			}
			if err := c.do(ctx, "POST", "/api/automations", object{"name": "mender", "source": breakScript,
				"tools": []string{"far_keyed"}}, nil); err != nil {
				return err
			}
			return c.do(ctx, "POST", "/api/automations", object{"name": "waiter", "source": waitScript,
				"tools": []string{"nobody"}}, nil)
		})
		if err != nil {
			t.Fatal(err)
		}
		r.killAtEveryCommit(e, 30, r.driveFailures, r.checkFailures)
	}
}

// driveFailures wakes each automation once, and waits until one is repaired and the other stopped.
func (r *rig) driveFailures(ctx context.Context, w world, p *process) error {
	c, err := w.owner(p, unlimited)
	if err != nil {
		return err
	}
	for _, name := range []string{"mender", "waiter"} {
		var woken api.WakeList
		if err := c.do(ctx, "GET", "/api/agents/"+name+"/wakes", nil, &woken); err != nil {
			return err
		}
		if len(woken.Wakes) == 0 {
			if err := c.do(ctx, "POST", "/api/automations/"+name+"/runs", object{}, nil); err != nil {
				return err
			}
		}
	}
	return poll(ctx, "the failures to be dealt with", func() (bool, error) {
		var mender, waiter reeve.Automation
		if err := c.do(ctx, "GET", "/api/automations/mender", nil, &mender); err != nil {
			return false, err
		}
		if err := c.do(ctx, "GET", "/api/automations/waiter", nil, &waiter); err != nil {
			return false, err
		}
		var runs api.RunList
		if err := c.do(ctx, "GET", "/api/runs?state=running", nil, &runs); err != nil {
			return false, err
		}
		return mender.Version == "1.1" && mender.Failure == nil && waiter.Status == reeve.AutomationStopped &&
			len(runs.Runs) == 0, nil
	})
}

// checkFailures compares the rows with what must be, and the witness with the ledger.
func (r *rig) checkFailures(ctx context.Context, w world) error {
	db, err := w.open()
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	var wrong []error
	for _, n := range wrongFailures {
		var rows int
		if err := db.QueryRowContext(ctx, n.query).Scan(&rows); err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", n.what, err))
		} else if rows != 0 {
			wrong = append(wrong, fmt.Errorf("%d %s", rows, n.what))
		}
	}
	var far string
	if err := db.QueryRowContext(ctx,
		`SELECT operation_id FROM calls WHERE tool = 'far_keyed' AND operation_id IS NOT NULL`).Scan(&far); err != nil {
		return errors.Join(append(wrong, err)...)
	}
	n, err := r.countEffects(ctx, far)
	if err == nil && n != 1 {
		err = fmt.Errorf("the witness saw %d effects", n)
	}
	return errors.Join(append(wrong, err)...)
}
