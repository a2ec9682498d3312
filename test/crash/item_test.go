package crash_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"reeve"
	"reeve/api"
)

// itemScript processes 200 items with an effect of each class in turn.
const itemScript = `
const act = [
  (lane) => Session.writeFile({ path: '/' + lane, content: lane }),
  (lane) => General.farKeyed({ lane }),
  (lane) => General.farVerifiable({ lane }),
  (lane) => General.farUnsafe({ lane }),
];
Items.total(200);
for (let i = 0; i < 200; i++) {
  const lane = input + '-' + i;
  await Items.withItem('item-' + i, 'Item ' + i, async (ctx) => { if (!ctx.item.isDone) await act[i % 4](lane); });
}`

const crashItems = 200

// TestCrashItems_K15 kills the real server at random moments while an automation processes items, restarts it, and lets
// the run continue. A person resolves unknown outcomes. When all items are done, the witness has seen one effect for
// each.
func TestCrashItems_K15(t *testing.T) {
	kills := 8
	if *crashFull {
		kills = 1000
	}
	for name, open := range map[string]func(*testing.T) *engine{"sqlite": sqliteEngine, "postgres": postgresEngine} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := newRig(t).killDuringItems(open(t), kills); err != nil {
				t.Error(err)
			}
		})
	}
}

// killDuringItems runs automations, one after the other, until the server has been killed often enough.
func (r *rig) killDuringItems(e *engine, kills int) (err error) {
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute+time.Duration(kills)*5*time.Second)
	defer cancel()
	w, err := r.newWorld(ctx, e, func(c caller) error { return r.createTools(ctx, c) })
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.remove()) }()
	done, killed, serving, surfaced := 0, 0, 0, 0
	for ; killed < kills; done++ {
		name := fmt.Sprintf("auto-%s-%d", e.name, done)
		for over := false; !over; {
			p, err := r.serve(w)
			if err != nil {
				return err
			}
			last := killed >= kills
			if !last {
				go killAtRandom(ctx, p)
			}
			n, err := r.driveItems(ctx, w, p, name)
			surfaced += n
			over = err == nil
			if err == nil && last {
				err = p.stop()
			}
			p.kill()
			if err != nil && !errors.Is(err, errGone) {
				return fmt.Errorf("%s after %d kills: %w\nserver's log: %s", name, killed, err, &p.log)
			}
			if over {
				break
			}
			if killed++; p.hasAnswered() {
				serving++
			}
			if err := w.forgetDeadServers(ctx); err != nil {
				return err
			}
		}
		if err := r.checkItems(ctx, w, name); err != nil {
			return fmt.Errorf("%s after %d kills: %w", name, killed, err)
		}
	}
	r.t.Logf("%s: %d automations of %d items, %d kills, %d of them while it served; %d unknown outcomes surfaced; "+
		"none lost, none doubled", e.name, done, crashItems, killed, serving, surfaced)
	return nil
}

// killAtRandom kills a server at a random moment: one in eight during its start, the others after it answers.
func killAtRandom(ctx context.Context, p *process) {
	if rand.N(8) > 0 {
		_ = p.waitUntilReady(ctx) // one that has ended needs no killing
	}
	select {
	case <-time.After(rand.N(900 * time.Millisecond)):
	case <-p.gone:
	case <-ctx.Done():
	}
	p.kill()
}

// driveItems plays client and person: it starts a run if there is none, resolves unknown outcomes, and waits until
// every item is done.
func (r *rig) driveItems(ctx context.Context, w world, p *process, name string) (surfaced int, err error) {
	if err := p.waitUntilReady(ctx); err != nil {
		return 0, err
	}
	c, err := w.owner(p, unlimited)
	if err != nil {
		return 0, err
	}
	at := "/api/automations/" + name
	err = c.do(ctx, "POST", "/api/automations", object{"name": name, "source": itemScript,
		"tools": []string{"write_file", "far_keyed", "far_verifiable", "far_unsafe"}}, nil)
	if err != nil && !hasStatus(err, http.StatusConflict) {
		return 0, err
	}
	asked := false
	return surfaced, poll(ctx, "all items to be done", func() (bool, error) {
		var inbox api.Inbox
		if err := c.do(ctx, "GET", "/api/inbox", nil, &inbox); err != nil {
			return false, err
		}
		for _, op := range inbox.Unknown {
			if op.Effect != reeve.Unsafe {
				return false, fmt.Errorf("a %s operation became unknown: %s", op.Effect, op.Message)
			}
			n, err := r.countEffects(ctx, op.ID)
			if err != nil {
				return false, err
			}
			word := "retry"
			if n > 0 {
				word = "happened"
			}
			if err := c.do(ctx, "POST", "/api/operations/"+op.ID+"/resolve", object{"resolution": word}, nil); err != nil && !hasStatus(err, http.StatusConflict) {
				return false, err
			}
			surfaced++
		}
		var runs api.AutomationRunList
		if err := c.do(ctx, "GET", at+"/runs?limit=1", nil, &runs); err != nil {
			return false, err
		}
		if len(runs.Runs) == 0 || runs.Runs[0].Run.State.IsFinal() {
			var items reeve.ItemList
			if err := c.do(ctx, "GET", at+"/items?status=done&limit=1", nil, &items); err != nil ||
				items.Total == crashItems {
				return err == nil, err
			}
			if !asked {
				asked = true
				return false, c.do(ctx, "POST", at+"/runs", object{"input": name}, nil)
			}
			if len(runs.Runs) > 0 && runs.Runs[0].Run.State == reeve.RunFailed &&
				runs.Runs[0].Run.Code != reeve.Crashed {
				return false, fmt.Errorf("a run failed: %s", runs.Runs[0].Run.Message)
			}
			asked = len(runs.Runs) == 0 // it was given up after too many crashes: ask for another
		}
		return false, nil
	})
}

// checkItems compares the ledger with the witness, when no server runs.
func (r *rig) checkItems(ctx context.Context, w world, name string) error {
	if err := w.checkFile(ctx); err != nil {
		return err
	}
	var seen []struct {
		Class, Lane string
		Effects     int
	}
	if err := r.witness.do(ctx, "GET", "/effects", nil, &seen); err != nil {
		return err
	}
	effects := map[string]int{}
	for _, c := range seen {
		if strings.HasPrefix(c.Lane, name+"-") {
			effects[c.Lane] += c.Effects
		}
	}
	db, err := w.open()
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	var wrong []error
	for i := range crashItems {
		lane := fmt.Sprintf("%s-%d", name, i)
		n := effects[lane]
		if i%4 == 0 {
			if err := db.QueryRowContext(ctx, `SELECT count(*) FROM calls o
				WHERE o.tool = 'write_file' AND o.state = 'committed' AND o.args LIKE '%"`+lane+`"%'`).Scan(&n); err != nil {
				return err
			}
		}
		if n != 1 {
			wrong = append(wrong, fmt.Errorf("%s had %d effects", lane, n))
		}
	}
	var attempts int
	if err := db.QueryRowContext(ctx,
		`SELECT count(*) FROM items t JOIN agents a ON a.id = t.agent_id WHERE a.name = '`+name+
			`' AND t.state = 'done' AND t.attempt = 1`).Scan(&attempts); err != nil {
		return err
	}
	if attempts != crashItems {
		wrong = append(wrong, fmt.Errorf("%d items are done by their attempts", attempts))
	}
	return errors.Join(wrong...)
}
