package host_test

import (
	"context"
	"database/sql"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/reevetest"
)

// twoLetters sends a letter for each of two items, and hides what goes wrong if it can.
const twoLetters = `
for (const id of ['a', 'b']) await Items.withItem(id, 'Letter ' + id, async (ctx) => {
  if (ctx.item.isDone) return;
  try { await General.send({ to: id }) } catch (e) { Console.log(e.code) }
})`

// midScript runs twoLetters until the first request has had its effect but not its answer, and gives the world as a
// crash would leave it then.
func midScript(t *testing.T, w *witness, effect reeve.Effect, spec map[string]any) *auto {
	t.Helper()
	h := reevetest.StartWith(t, quick(t))
	s := map[string]any{"method": "POST", "url": w.URL + "/send"}
	for k, v := range spec {
		s[k] = v
	}
	limit := 60_000
	if effect == reeve.Verifiable {
		limit = 3_000 // for so long nothing is sent again
	}
	define(h, "send", effect, s, map[string]any{"timeout_ms": limit})
	a := &auto{Host: h, t: t, name: "letters"}
	h.Want(201, nil, "POST", "/api/automations", call{"name": a.name, "source": twoLetters, "tools": []string{"send"}})
	h.Want(201, nil, "POST", a.at("/runs"), call{})
	release := make(chan struct{})
	w.after = func(n int, _ http.ResponseWriter, r *http.Request) bool {
		if n == 1 {
			select {
			case <-release:
			case <-r.Context().Done():
			}
		}
		return false
	}
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = h.Step(ctx) })
	t.Cleanup(func() { close(release); wg.Wait() })
	<-w.reached
	next := &auto{Host: crashed(h), t: t, name: a.name}
	stop() // the crashed host starts nothing more, even once its request has timed out
	equal(t, spoken(len(operations(next.Host)), operations(next.Host)[0].State, next.state("a")),
		"1 dispatched processing", "what the crash left")
	return next
}

// ends lets everything go on until the run has ended, or waits.
func (a *auto) ends(want reeve.RunState) {
	a.t.Helper()
	eventually(a.t, "the run to be "+string(want), func() bool {
		if _, err := a.Step(a.t.Context()); err != nil {
			a.t.Fatal(err)
		}
		runs := listRuns(a)
		return len(runs) > 0 && runs[0].Run.State == want
	})
}

func TestG09_KeyedInAScript(t *testing.T) {
	t.Parallel()
	w := newWitness(t)
	a := midScript(t, w, reeve.Keyed, nil)
	a.ends(reeve.RunCompleted)
	effects, requests := w.total()
	equal(t, spoken(effects, requests, w.seen[0] == w.seen[1], a.state("a"), a.state("b")), "2 3 true done done",
		"sent again with the same key")
}

func TestG10_VerifiableInAScript(t *testing.T) {
	t.Parallel()
	t.Run("applied", func(t *testing.T) {
		w := newWitness(t)
		a := midScript(t, w, reeve.Verifiable, verifySpec(w, nil))
		a.ends(reeve.RunCompleted)
		effects, requests := w.total()
		equal(t, spoken(effects, requests, a.state("a"), a.state("b")), "2 2 done done", "the look-up decides")
	})
	t.Run("not applied", func(t *testing.T) {
		w := newWitness(t)
		a := midScript(t, w, reeve.Verifiable, verifySpec(w, nil))
		w.mu.Lock()
		clear(w.effects) // the far side lost it
		first := w.seen[0]
		w.mu.Unlock()
		a.ends(reeve.RunCompleted)
		effects, _ := w.total()
		equal(t, spoken(effects, w.seenWith(first), a.state("a"), a.state("b")), "2 2 done done", "it is sent again")
	})
	t.Run("cannot tell", func(t *testing.T) {
		w := newWitness(t)
		a := midScript(t, w, reeve.Verifiable,
			verifySpec(w, map[string]any{"applied": []int{204}, "not_applied": []int{410}}))
		eventually(t, "the operation is unknown", func() bool {
			if _, err := a.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
			return len(inbox(a.Host).Unknown) == 1
		})
		a.ends(reeve.RunParked)
		_, requests := w.total()
		equal(t, spoken(requests, a.state("a"), a.items("").Total), "1 processing 1",
			"nothing is sent again, and the run waits for a person")
		a.Want(200, nil, "POST", "/api/operations/"+inbox(a.Host).Unknown[0].ID+"/resolve",
			call{"resolution": "happened"})
		a.ends(reeve.RunCompleted)
		_, requests = w.total()
		equal(t, spoken(requests, a.state("a"), a.state("b")), "2 done done", "then it goes on")
	})
}

func TestG11_UnsafeInAScript(t *testing.T) {
	t.Parallel()
	for choice, want := range map[string]string{"happened": "2 done done", "retry": "3 done done",
		"skip": "2 done done"} {
		t.Run(choice, func(t *testing.T) {
			w := newWitness(t)
			a := midScript(t, w, reeve.Unsafe, nil)
			a.ends(reeve.RunParked)
			_, requests := w.total()
			equal(t, spoken(requests, len(inbox(a.Host).Unknown), a.state("a")), "1 1 processing",
				"nothing is sent again, and the run waits for a person")
			a.Want(200, nil, "POST", "/api/operations/"+inbox(a.Host).Unknown[0].ID+"/resolve",
				call{"resolution": choice})
			a.ends(reeve.RunCompleted)
			_, requests = w.total()
			equal(t, spoken(requests, a.state("a"), a.state("b")), want, "as the person said")
		})
	}
}

// TestG12_LostInAScript loses the connection after the request has left: that is no failure, whatever the script makes
// of it.
func TestG12_LostInAScript(t *testing.T) {
	t.Parallel()
	for _, effect := range []reeve.Effect{reeve.Keyed, reeve.Unsafe} {
		t.Run(string(effect), func(t *testing.T) {
			w := newWitness(t)
			w.after = func(_ int, out http.ResponseWriter, _ *http.Request) bool { drop(out); return true }
			cfg := quick(t)
			cfg.RetryAttempts = 2
			h := reevetest.StartWith(t, cfg)
			define(h, "send", effect, map[string]any{"method": "POST", "url": w.URL + "/send"}, nil)
			a := &auto{Host: h, t: t, name: "letters"}
			h.Want(201, nil, "POST", "/api/automations", call{"name": a.name, "source": twoLetters,
				"tools": []string{"send"}})
			h.Want(201, nil, "POST", a.at("/runs"), call{})
			eventually(t, "the operation is unknown", func() bool {
				if _, err := h.Step(t.Context()); err != nil {
					t.Fatal(err)
				}
				return len(inbox(h).Unknown) == 1
			})
			a.ends(reeve.RunParked)
			effects, _ := w.total()
			equal(t, spoken(effects, a.state("a"), a.items("").Total, listRuns(a)[0].Script.Log, a.get().
				Failure == nil), "1 processing 1  true", "it may have happened")
		})
	}
	t.Run("what never left is failed", func(t *testing.T) {
		h := reevetest.StartWith(t, quick(t))
		define(h, "send", reeve.Unsafe, map[string]any{"method": "POST", "url": closedPort + "/"}, nil)
		a := &auto{Host: h, t: t, name: "letters"}
		h.Want(201, nil, "POST", "/api/automations", call{"name": a.name, "source": twoLetters,
			"tools": []string{"send"}})
		a.fails(reeve.NetworkFailure)
		equal(t, spoken(a.state("a"), len(inbox(h).Unknown)), "failed 0", "and is tried again by itself")
	})
}

// TestG13_TheSameInAScript makes a call again, in a later run, by a script that writes its arguments in another order
// and its numbers in another way: the stored result is given. With other arguments the same thing is a conflict, and
// nothing is done.
func TestG13_TheSameInAScript(t *testing.T) {
	t.Parallel()
	w := newWitness(t)
	h := reevetest.StartWith(t, quick(t))
	define(h, "send", reeve.Keyed, map[string]any{"method": "POST", "url": w.URL + "/send"},
		map[string]any{"identity": []string{"to"}})
	a := &auto{Host: h, t: t, name: "letters"}
	item := func(args string) string {
		return `await Items.withItem('a', 'A', async () => { const r = await General.send(` + args +
			`); Console.log(r); if (input !== 'well') throw new Error('later') })`
	}
	h.Want(201, nil, "POST", "/api/automations",
		call{"name": a.name, "source": item(`{ to: 'x', at: { n: 1, m: [2] } }`), "tools": []string{"send"}})
	a.fails(reeve.LogicFailure, "later")
	ops := len(operations(h))
	a.save(item(`{ at: { m: [2.0], n: 1.0 }, to: 'x' }`), true)
	a.fails(reeve.LogicFailure, "later")
	effects, requests := w.total()
	equal(t, spoken(effects, requests, len(operations(h))-ops, listRuns(a)[0].Script.Log), "1 1 0 done",
		"the stored result")
	a.save(item(`{ to: 'x', at: 'another' }`), true)
	r := a.run()
	effects, requests = w.total()
	equal(t, spoken(r.Run.State, r.Run.Code, effects, requests, a.state("a")), "failed CONFLICT 1 1 needs_attention",
		"the same thing with other content")
}

// TestK26_AMissedScheduleIsOneCatchUp lets the server be away for three days of an hourly schedule: the automation runs
// once for all of them, and its run says so. The days are passed at once, in the row that knows when it fires next.
func TestK26_AMissedScheduleIsOneCatchUp(t *testing.T) {
	t.Parallel()
	d := newDeeds()
	cfg := host.Config{Dir: t.TempDir()}
	h := reevetest.StartWith(t, cfg, d.tools()...)
	a := newAuto(t, h, "mailer",
		`await Items.withItem('for ' + input, 'I', async (ctx) => { if (!ctx.item.isDone) await Mail.send({ to: 'you' }) })`)
	var s api.Schedule
	h.Want(201, &s, "POST", "/api/schedules", call{"agent": "mailer", "name": "hourly", "goal": "hour",
		"cadence_type": "cron", "cadence_value": "0 * * * *"})
	h.Stop()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(cfg.Dir, "reeve.db"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), `UPDATE timers SET next_at = next_at - $1 WHERE id = $2`, (72 * time.Hour).
		Milliseconds(), s.ID); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	a.Host = reevetest.StartWith(t, cfg, d.tools()...)
	a.RunUntilIdle(t.Context())
	runs := listRuns(a)
	equal(t, spoken(len(runs), runs[0].Run.Reason, runs[0].Run.State, d), "1 recovery_catchup completed map[you:1]",
		"one run for all that was missed")
	a.Want(200, &s, "GET", "/api/schedules/"+s.ID, nil)
	equal(t, spoken(s.Missed >= 70, s.State, s.NextAt.After(reeve.Now())), "true active true", "the schedule")
	a.RunUntilIdle(t.Context())
	equal(t, len(listRuns(a)), 1, "runs")
}
