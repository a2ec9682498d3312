package host_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/reevetest"
)

// flaky is a tool that fails with a code until it is told not to: typed where it arises, whatever its words.
type flaky struct {
	deeds *deeds
	code  reeve.Code
}

func (f *flaky) tools() []reeve.Tool {
	act := func(context.Context, *reeve.Invocation) (any, error) {
		f.deeds.mu.Lock()
		code := f.code
		f.deeds.mu.Unlock()
		if code != "" {
			return nil, reeve.Errorf(code, "timeout, unauthorized, syntax error: words say nothing")
		}
		return "tried", f.deeds.do("tried")
	}
	change, look := tool("mail_try", reeve.Keyed, act), tool("mail_look", reeve.Read, act)
	change.Pack, look.Pack = "mail", "mail"
	return []reeve.Tool{change, look}
}

func (f *flaky) fail(code reeve.Code) {
	f.deeds.mu.Lock()
	defer f.deeds.mu.Unlock()
	f.code = code
}

// catchAll does whatever a script can to hide a failure.
const catchAll = `
try { await Items.withItem('a', 'A', async (ctx) => { if (ctx.item.isDone) return; try { await Mail.try({}) } catch (e) {} finally { Console.log('went on') } }) } catch (e) {}
'all is well'`

func routed(t *testing.T, cfg host.Config, source string) (*auto, *flaky) {
	t.Helper()
	d := newDeeds()
	f := &flaky{deeds: d}
	h := reevetest.StartWith(t, cfg, append(d.tools(), f.tools()...)...)
	a := &auto{Host: h, t: t, name: "mailer"}
	h.Want(201, nil, "POST", "/api/automations", call{"name": a.name, "source": source,
		"tools": append([]string{"mail_try", "mail_look"}, mailTools...)})
	return a, f
}

func (a *auto) get() (m reeve.Automation) {
	a.t.Helper()
	a.Want(200, &m, "GET", a.at(""), nil)
	return m
}

func (a *auto) jobs() []reeve.ScriptJob {
	a.t.Helper()
	var l api.ScriptJobList
	a.Want(200, &l, "GET", a.at("/script-jobs"), nil)
	return l.ScriptJobs
}

func (a *auto) told() []reeve.Notification {
	a.t.Helper()
	var l api.NotificationList
	a.Want(200, &l, "GET", "/api/notifications?limit=500", nil)
	return l.Notifications
}

// soon makes a schedule that fires in a moment; on a busy machine that may be over before it is asked for.
func (a *auto) soon(notify string) {
	a.t.Helper()
	for wait := 50 * time.Millisecond; ; wait *= 4 {
		r := a.Do("POST", "/api/schedules", call{"agent": a.name, "name": "soon", "cadence_type": "once",
			"cadence_value": reeve.Now().Add(wait).Format(time.RFC3339Nano), "notification": notify})
		if r.Status == 201 {
			return
		}
		if r.Status != 400 || wait > time.Minute {
			a.t.Fatalf("a schedule was refused: %s", r.Body)
		}
	}
}

// retries are the wakes that make a failed run again.
func (a *auto) retries(state reeve.WakeState) (out []reeve.Wake) {
	a.t.Helper()
	for _, w := range wakesOf(a.Host, a.get().AgentID) {
		if w.Reason == reeve.ReasonRetry && w.State == state {
			out = append(out, w)
		}
	}
	return out
}

func TestK18_StopAndTell(t *testing.T) {
	t.Parallel()
	look := strings.ReplaceAll(catchAll, "Mail.try", "Mail.look")
	for _, c := range []struct {
		code   reeve.Code
		class  reeve.FailureClass
		source string
		says   string
	}{
		{reeve.Unauthenticated, reeve.AuthFailure, catchAll, "credential"},
		{reeve.Unauthenticated, reeve.AuthFailure, look, "credential"},
		{reeve.Forbidden, reeve.PermissionFailure, catchAll, "permission denied"},
		{reeve.Denied, reeve.PermissionFailure, catchAll, "permission denied"},
		{reeve.Internal, reeve.InternalFailure, look, "an internal error of Reeve"},
	} {
		t.Run(string(c.class)+" "+string(c.code), func(t *testing.T) {
			a, f := routed(t, quick(t), c.source)
			f.fail(c.code)
			r := a.fails(c.class)
			equal(t, spoken(r.Script.Log, f.deeds, a.state("a")), "map[] failed", "nothing was swallowed")
			m := a.get()
			equal(t, spoken(m.Status, m.Failure.Class, m.Failure.Code, m.Failure.RunID == r.Run.ID,
				m.Failure.StoppedAt != nil), spoken("stopped", c.class, c.code, true, true), "the automation")
			told := a.told()
			if len(told) != 1 || !strings.Contains(told[0].Title, "mailer is stopped") ||
				!strings.Contains(told[0].Title, c.says) || told[0].RunID != r.Run.ID {
				t.Errorf("the person was told %+v", told)
			}
			equal(t, spoken(len(a.jobs()), len(a.retries(reeve.WakeQueued))), "0 0", "neither repaired nor tried again")

			f.fail("")
			a.soon("never")
			eventually(t, "the schedule's run to end", func() bool {
				a.RunUntilIdle(t.Context())
				runs := runsOf(a.Host, "agent="+m.AgentID)
				return runs[0].Reason == reeve.ReasonTimer && runs[0].State == reeve.RunPaused
			})
			equal(t, spoken(f.deeds, len(a.told())), "map[] 1", "while it is stopped, nothing but a person runs it")
			a.Want(200, nil, "POST", a.at("/resume"), nil)
			a.RunUntilIdle(t.Context())
			equal(t, spoken(f.deeds, a.state("a"), a.get().Status, a.get().Failure == nil),
				"map[tried:1] done active true", "resumed, it carries on")
		})
	}
}

// TestK18_NetworkBacksOff checks the numbers as they are set by default: 10 s, 20 s, 40 s, five times, and then a
// person.
func TestK18_NetworkBacksOff(t *testing.T) {
	t.Parallel()
	a, f := routed(t, host.Config{Dir: t.TempDir()}, catchAll)
	f.fail(reeve.Unavailable)
	for n, want := range []time.Duration{10, 20, 40, 80, 160} {
		r := a.fails(reeve.NetworkFailure)
		m := a.get()
		equal(t, spoken(m.Status, m.Failure.NetworkFailures, m.Failure.RetryAt.Sub(*r.Run.FinishedAt)),
			spoken("retrying", n+1, want*time.Second), "after a failure")
		equal(t, len(a.retries(reeve.WakeQueued)), n+1, "retries that wait: one for each run that failed")
		equal(t, spoken(len(a.told()), r.Script.Log), "0", "nobody is told, and the script knows nothing")
	}
	a.fails(reeve.NetworkFailure)
	equal(t, spoken(a.get().Status, len(a.retries(reeve.WakeQueued)), len(a.told()), len(a.jobs())), "stopped 0 1 0",
		"the sixth")
	f.fail("")
	a.completes()
	equal(t, spoken(a.get().Status, a.get().Failure == nil), "active true",
		"a person's run that succeeds resets the counters")
	f.fail(reeve.Timeout)
	a.save(strings.ReplaceAll(catchAll, "Mail.try", "Mail.look"), false)
	a.Want(200, nil, "POST", a.at("/items/reprocess"), call{"item": "a"})
	a.fails(reeve.NetworkFailure)
	equal(t, a.get().Failure.NetworkFailures, 1, "it counts anew")
}

// TestK18_RetriesByItself lets the network fail twice: the retries come by themselves, on a schedule's behalf, and its
// person is told what came of it once.
func TestK18_RetriesByItself(t *testing.T) {
	t.Parallel()
	cfg := quick(t)
	cfg.RetryMax = host.Duration(time.Minute)
	d := newDeeds()
	f := &flaky{deeds: d, code: reeve.RateLimited}
	h := reevetest.Run(t, cfg, append(d.tools(), f.tools()...)...)
	a := &auto{Host: h, t: t, name: "mailer"}
	h.Want(201, nil, "POST", "/api/automations", call{"name": a.name, "source": catchAll,
		"tools": []string{"mail_try"}})
	a.soon("always")
	eventually(t, "it fails twice", func() bool {
		m := a.get()
		return m.Failure != nil &&
			m.Failure.NetworkFailures >= 2
	})
	f.fail("")
	eventually(t, "it succeeds", func() bool { return a.get().Failure == nil && a.items("status=done").Total == 1 })
	eventually(t, "its person is told", func() bool { return len(a.told()) == 1 })
	equal(t, spoken(d, a.told()[0].Body), "map[tried:1] all is well", "what was done, and told")
	var first string
	for _, r := range listRuns(a) {
		first = r.Run.ID
	}
	for _, r := range listRuns(a) {
		if r.Run.ID != first && (r.Run.Reason != reeve.ReasonRetry || r.Run.ReasonID != first) {
			t.Errorf("run %s is a %s of %s, want a retry of %s", r.Run.ID, r.Run.Reason, r.Run.ReasonID, first)
		}
	}
}

// TestK18_ARetryThatIsDueWhileAllIsStopped is not made, and its person is told: they have it made again when the kill
// switch is off.
func TestK18_ARetryThatIsDueWhileAllIsStopped(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, cfg host.Config) {
		a, f := routed(t, cfg, catchAll)
		f.fail(reeve.Unavailable)
		a.fails(reeve.NetworkFailure)
		a.Want(204, nil, "POST", "/api/stop", call{"reason": "a drill"})
		equal(t, len(a.retries(reeve.WakeQueued)), 1, "retries that wait")
		eventually(t, "the retry is due",
			func() bool { a.RunUntilIdle(t.Context()); return len(a.retries(reeve.WakeSkipped)) == 1 })
		a.Want(423, nil, "POST", a.at("/resume"), nil) // what would be skipped is not begun
		a.Want(204, nil, "POST", "/api/resume", call{})
		m := a.get()
		equal(t, spoken(m.Status, m.Failure.Class, m.Failure.RetryAt == nil), "stopped network true", "the automation")
		if told := a.told(); len(told) != 1 ||
			!strings.Contains(told[0].Title, "its retry was skipped because everything in the workspace is stopped") {
			t.Errorf("the person was told %+v", told)
		}
		f.fail("")
		a.Want(200, nil, "POST", a.at("/resume"), nil)
		a.RunUntilIdle(t.Context())
		equal(t, spoken(f.deeds, a.state("a"), a.get().Status), "map[tried:1] done active", "resumed, it carries on")
	})
}

// TestK18_ThreeFixesThenAPerson lets a maintainer whose fixes do not help mend a script three times.
func TestK18_ThreeFixesThenAPerson(t *testing.T) {
	t.Parallel()
	source := `await Items.withItem('a', 'A', () => { undefinedFunction() })`
	cfg := quick(t)
	cfg.Model = script(t, `
answers:
  - {when: {said: "/Version 1\\.\\d of automation .*failed/"}, calls: [{name: scripts_fix, args: {source: "await Items.withItem('a', 'A', () => { stillUndefined() })", comment: tried}}]}
  - {when: {tool: scripts_fix}, text: "I tried."}`)
	a, _ := routed(t, cfg, source)
	a.fails(reeve.LogicFailure, "undefinedFunction")
	a.RunUntilIdle(t.Context())
	m := a.get()
	equal(t, spoken(m.Status, m.Version, m.Failure.Repairs, m.Failure.Class), "stopped 1.3 3 logic",
		"three fixes, then a person")
	list := a.jobs()
	for i, version := range []string{"1.2", "1.1", "1.0"} {
		equal(t, spoken(list[i].Kind, list[i].Version, list[i].State), "repair "+version+" done", "the repairs")
	}
	equal(t, len(list), 3, "repairs")
	told := a.told()
	if len(told) != 1 || !strings.Contains(told[0].Title, "3 repairs did not help") {
		t.Errorf("the person was told %+v", told)
	}
	// A person's own version counts anew.
	a.save(`await Items.withItem('a', 'A', () => 1)`, false)
	equal(t, spoken(a.get().Status, a.get().Failure == nil), "active true", "after a person's version")
	a.completes()
}

// TestK18_AttentionIsAPersons tells a person of an item that nobody but they can decide on, and sends no maintainer.
func TestK18_AttentionIsAPersons(t *testing.T) {
	t.Parallel()
	a, f := routed(t, quick(t),
		`await Items.withItem('5', 'Item 5', async () => { await Mail.send({ to: '5', text: 'one' }); await Mail.send({ to: 'x' }) })`)
	f.deeds.refuse("x", true)
	a.fails(reeve.LogicFailure, "x was refused")
	a.save(`await Items.withItem('5', 'Item 5', async () => { await Mail.send({ to: '5', text: 'two' }) })`, true)
	before := len(a.jobs())
	a.fails(reeve.LogicFailure)
	told := a.told()
	equal(t, spoken(len(a.jobs())-before, a.state("5"), a.get().Status), "0 needs_attention active",
		"an item is set aside")
	if len(told) == 0 || !strings.Contains(told[0].Title, "an item needs your attention") {
		t.Errorf("the person was told %+v", told)
	}
	a.completes()
}
