package crash_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"reeve/api"
)

// concurrentScript makes five parallel calls in one item, and one after them.
const concurrentScript = `
await Items.withItem('one', 'One', async (ctx) => {
  if (ctx.item.isDone) return;
  const all = await Promise.all(['a', 'b', 'c', 'd', 'e'].map((x) => General.farKeyed({ lane: input + '-' + x })));
  await Session.writeFile({ path: '/all', content: String(all.length) });
});
'over'`

var wrongConcurrentCalls = []rowCount{
	{"runs other than the one expected", `SELECT count(*) - 1 FROM runs`},
	{"runs that did not complete", `SELECT count(*) FROM runs WHERE state <> 'completed'`},
	{"items that are not done at their first attempt",
		`SELECT count(*) FROM items WHERE state <> 'done' OR attempt <> 1`},
	{"calls other than the five expected", `SELECT count(*) - 5 FROM calls WHERE operation_id IS NOT NULL AND tool = 'far_keyed'`},
	{"calls that are not committed",
		`SELECT count(*) FROM calls WHERE operation_id IS NOT NULL AND state <> 'committed'`},
	{"files other than the one expected", `SELECT count(*) - 1 FROM session_files`},
}

// TestK15_KillAtEveryCommitOfConcurrentCalls kills the real server before and after every commit of an item whose
// handler makes five parallel calls. The script starts over and makes each of them once.
func TestK15_KillAtEveryCommitOfConcurrentCalls(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, e := range []*engine{sqliteEngine(t), postgresEngine(t)} {
		var err error
		e.template, err = r.newWorld(t.Context(), e, func(c caller) error {
			if err := c.do(t.Context(), "POST", "/api/tools", r.newWitnessTool("far_keyed", "keyed", "side_effecting"),
				nil); err != nil {
				return err
			}
			return c.do(t.Context(), "POST", "/api/automations", object{"name": "gatherer", "source": concurrentScript,
				"tools": []string{"far_keyed", "write_file"}}, nil)
		})
		if err != nil {
			t.Fatal(err)
		}
		r.killAtEveryCommit(e, 12, func(ctx context.Context, w world, p *process) error {
			return r.driveAutomation(ctx, w, p, "gatherer", worldLane(w))
		}, r.checkConcurrentCalls)
	}
}

// worldLane returns a name that distinguishes worlds at the witness.
func worldLane(w world) string { return w.engine.name + "-" + filepath.Base(w.dir) }

// checkConcurrentCalls checks the database, and that each lane of this world had one effect at the witness.
func (r *rig) checkConcurrentCalls(ctx context.Context, w world) error {
	db, err := w.open()
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	wrong := checkRows(ctx, db, wrongConcurrentCalls)
	var seen []struct {
		Lane    string
		Effects int
	}
	if err := r.witness.do(ctx, "GET", "/effects", nil, &seen); err != nil {
		return err
	}
	effects := map[string]int{}
	for _, c := range seen {
		if strings.HasPrefix(c.Lane, worldLane(w)+"-") {
			effects[c.Lane] += c.Effects
		}
	}
	for _, x := range []string{"a", "b", "c", "d", "e"} {
		if n := effects[worldLane(w)+"-"+x]; n != 1 {
			wrong = append(wrong, fmt.Errorf("%s had %d effects", x, n))
		}
	}
	return errors.Join(wrong...)
}

// driveAutomation wakes an automation with a key and waits until its run has ended.
func (r *rig) driveAutomation(ctx context.Context, w world, p *process, name, input string) error {
	c, err := w.owner(p, unlimited)
	if err != nil {
		return err
	}
	if err := c.do(ctx, "POST", "/api/agents/"+name+"/wake", object{"input": input}, nil, "Idempotency-Key", "the-one"); err != nil {
		return err
	}
	return poll(ctx, "the run to end", func() (bool, error) {
		var list api.AutomationRunList
		err := c.do(ctx, "GET", "/api/automations/"+name+"/runs?limit=1", nil, &list)
		return err == nil && len(list.Runs) == 1 && list.Runs[0].Run.ID != "" && list.Runs[0].Run.State.IsFinal(), err
	})
}
