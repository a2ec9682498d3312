package automation_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"reeve"
	"reeve/host"
	"reeve/reevetest"
	"reeve/test/kit"
)

// failingTool is a tool that fails with a code while one is set.
type failingTool struct {
	deeds *effectLog
	code  reeve.Code
}

// tools returns the tools of the test scripts: mail_list is a read, mail_send is keyed with the identity to, mail_note
// is local.
func (f *failingTool) tools() []reeve.Tool {
	act := func(context.Context, *reeve.Invocation) (any, error) {
		f.deeds.mu.Lock()
		code := f.code
		f.deeds.mu.Unlock()
		if code != "" {
			return nil, reeve.Errorf(code, "timeout, unauthorized, syntax error: words say nothing")
		}
		return "tried", f.deeds.record("tried")
	}
	change, look := kit.Tool("mail_try", reeve.Keyed, act), kit.Tool("mail_look", reeve.Read, act)
	change.Pack, look.Pack = "mail", "mail"
	return []reeve.Tool{change, look}
}

// setCode sets the code with which calls fail. An empty code lets them pass.
func (f *failingTool) setCode(code reeve.Code) {
	f.deeds.mu.Lock()
	defer f.deeds.mu.Unlock()
	f.code = code
}

// catchAll is a script that does everything possible to hide a failure.
const catchAll = `
try { await Items.withItem('a', 'A', async (ctx) => { if (ctx.item.isDone) return; try { await Mail.try({}) } catch (e) {} finally { Console.log('went on') } }) } catch (e) {}
'all is well'`

// startWithFailingTool starts an automation whose script calls a failingTool.
func startWithFailingTool(t *testing.T, cfg host.Config, source string) (*kit.Automation, *failingTool) {
	t.Helper()
	d := newEffectLog()
	f := &failingTool{deeds: d}
	h := reevetest.StartWith(t, cfg, append(d.tools(), f.tools()...)...)
	a := &kit.Automation{Host: h, T: t, Name: "mailer"}
	h.Want(201, nil, "POST", "/api/automations", kit.Call{"name": a.Name, "source": source,
		"tools": append([]string{"mail_try", "mail_look"}, mailTools...)})
	return a, f
}

func TestK18_FailureStopsAndNotifies(t *testing.T) {
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
			a, f := startWithFailingTool(t, kit.FastConfig(t), c.source)
			f.setCode(c.code)
			r := a.MustFail(c.class)
			kit.Equal(t, kit.JoinValues(r.Script.Log, f.deeds, a.ItemState("a")), "map[] failed",
				"nothing was swallowed")
			m := a.Get()
			kit.Equal(t, kit.JoinValues(m.Status, m.Failure.Class, m.Failure.Code, m.Failure.RunID == r.Run.ID,
				m.Failure.StoppedAt != nil), kit.JoinValues("stopped", c.class, c.code, true, true), "the automation")
			told := a.ListNotifications()
			if len(told) != 1 || !strings.Contains(told[0].Title, "mailer is stopped") ||
				!strings.Contains(told[0].Title, c.says) || told[0].RunID != r.Run.ID {
				t.Errorf("the person was told %+v", told)
			}
			kit.Equal(t, kit.JoinValues(len(a.ListScriptJobs()), len(a.ListRetries(reeve.WakeQueued))), "0 0",
				"neither repaired nor tried again")

			f.setCode("")
			a.ScheduleSoon("never")
			kit.Eventually(t, "the schedule's run to end", func() bool {
				a.RunUntilIdle(t.Context())
				runs := kit.ListRuns(a.Host, "agent="+m.AgentID)
				return runs[0].Reason == reeve.ReasonTimer && runs[0].State == reeve.RunPaused
			})
			kit.Equal(t, kit.JoinValues(f.deeds, len(a.ListNotifications())), "map[] 1",
				"while it is stopped, nothing but a person runs it")
			a.Want(200, nil, "POST", a.Path("/resume"), nil)
			a.RunUntilIdle(t.Context())
			kit.Equal(t, kit.JoinValues(f.deeds, a.ItemState("a"), a.Get().Status, a.Get().Failure == nil),
				"map[tried:1] done active true", "resumed, it carries on")
		})
	}
}

// The default delays are 10 s, 20 s and 40 s up to five attempts. Then a person is notified.
func TestK18_NetworkBacksOff(t *testing.T) {
	t.Parallel()
	a, f := startWithFailingTool(t, host.Config{Dir: t.TempDir()}, catchAll)
	f.setCode(reeve.Unavailable)
	for n, want := range []time.Duration{10, 20, 40, 80, 160} {
		r := a.MustFail(reeve.NetworkFailure)
		m := a.Get()
		kit.Equal(t, kit.JoinValues(m.Status, m.Failure.NetworkFailures, m.Failure.RetryAt.Sub(*r.Run.FinishedAt)),
			kit.JoinValues("retrying", n+1, want*time.Second), "after a failure")
		kit.Equal(t, len(a.ListRetries(reeve.WakeQueued)), n+1, "retries that wait: one for each run that failed")
		kit.Equal(t, kit.JoinValues(len(a.ListNotifications()), r.Script.Log), "0",
			"nobody is told, and the script knows nothing")
	}
	a.MustFail(reeve.NetworkFailure)
	kit.Equal(t, kit.JoinValues(a.Get().Status, len(a.ListRetries(reeve.WakeQueued)), len(a.ListNotifications()),
		len(a.ListScriptJobs())), "stopped 0 1 0",
		"the sixth")
	f.setCode("")
	a.MustComplete()
	kit.Equal(t, kit.JoinValues(a.Get().Status, a.Get().Failure == nil), "active true",
		"a person's run that succeeds resets the counters")
	f.setCode(reeve.Timeout)
	a.SaveVersion(strings.ReplaceAll(catchAll, "Mail.try", "Mail.look"), false)
	a.Want(200, nil, "POST", a.Path("/items/reprocess"), kit.Call{"item": "a"})
	a.MustFail(reeve.NetworkFailure)
	kit.Equal(t, a.Get().Failure.NetworkFailures, 1, "it counts anew")
}

// The network fails twice. Retries happen by themselves, on behalf of the schedule, and its person is notified once.
func TestK18_NetworkFailuresAreRetried(t *testing.T) {
	t.Parallel()
	cfg := kit.FastConfig(t)
	cfg.RetryMax = host.Duration(time.Minute)
	d := newEffectLog()
	f := &failingTool{deeds: d, code: reeve.RateLimited}
	h := reevetest.Run(t, cfg, append(d.tools(), f.tools()...)...)
	a := &kit.Automation{Host: h, T: t, Name: "mailer"}
	h.Want(201, nil, "POST", "/api/automations", kit.Call{"name": a.Name, "source": catchAll,
		"tools": []string{"mail_try"}})
	a.ScheduleSoon("always")
	kit.Eventually(t, "it fails twice", func() bool {
		m := a.Get()
		return m.Failure != nil && m.Failure.NetworkFailures >= 2
	})
	f.setCode("")
	kit.Eventually(t, "it succeeds", func() bool {
		return a.Get().Failure == nil && a.ListItems("status=done").Total == 1
	})
	kit.Eventually(t, "its person is told", func() bool { return len(a.ListNotifications()) == 1 })
	kit.Equal(t, kit.JoinValues(d, a.ListNotifications()[0].Body), "map[tried:1] all is well",
		"what was done, and told")
	var first string
	for _, r := range kit.ListAutomationRuns(a) {
		first = r.Run.ID
	}
	for _, r := range kit.ListAutomationRuns(a) {
		if r.Run.ID != first && (r.Run.Reason != reeve.ReasonRetry || r.Run.ReasonID != first) {
			t.Errorf("run %s is a %s of %s, want a retry of %s", r.Run.ID, r.Run.Reason, r.Run.ReasonID, first)
		}
	}
}

// A retry that is due while the kill switch is on is skipped and its person notified. The person can repeat it after
// the switch is off.
func TestK18_RetryDuringAStopIsSkipped(t *testing.T) {
	t.Parallel()
	kit.OnBothDatabases(t, func(t *testing.T, cfg host.Config) {
		a, f := startWithFailingTool(t, cfg, catchAll)
		f.setCode(reeve.Unavailable)
		a.MustFail(reeve.NetworkFailure)
		a.Want(204, nil, "POST", "/api/stop", kit.Call{"reason": "a drill"})
		kit.Equal(t, len(a.ListRetries(reeve.WakeQueued)), 1, "retries that wait")
		kit.Eventually(t, "the retry is due",
			func() bool { a.RunUntilIdle(t.Context()); return len(a.ListRetries(reeve.WakeSkipped)) == 1 })
		a.Want(423, nil, "POST", a.Path("/resume"), nil) // what would be skipped is not begun
		a.Want(204, nil, "POST", "/api/resume", kit.Call{})
		m := a.Get()
		kit.Equal(t, kit.JoinValues(m.Status, m.Failure.Class, m.Failure.RetryAt == nil), "stopped network true",
			"the automation")
		if told := a.ListNotifications(); len(told) != 1 ||
			!strings.Contains(told[0].Title, "its retry was skipped because everything in the workspace is stopped") {
			t.Errorf("the person was told %+v", told)
		}
		f.setCode("")
		a.Want(200, nil, "POST", a.Path("/resume"), nil)
		a.RunUntilIdle(t.Context())
		kit.Equal(t, kit.JoinValues(f.deeds, a.ItemState("a"), a.Get().Status), "map[tried:1] done active",
			"resumed, it carries on")
	})
}

// A maintainer whose fixes do not help repairs a script three times. Then a person is asked.
func TestK18_ThreeFixesThenAPerson(t *testing.T) {
	t.Parallel()
	source := `await Items.withItem('a', 'A', () => { undefinedFunction() })`
	cfg := kit.FastConfig(t)
	cfg.Model = kit.ScriptedModel(t, `
answers:
  - {when: {said: "/Version 1\\.\\d of automation .*failed/"}, calls: [{name: scripts_fix, args: {source: "await Items.withItem('a', 'A', () => { stillUndefined() })", comment: tried}}]}
  - {when: {tool: scripts_fix}, text: "I tried."}`)
	a, _ := startWithFailingTool(t, cfg, source)
	a.MustFail(reeve.LogicFailure, "undefinedFunction")
	a.RunUntilIdle(t.Context())
	m := a.Get()
	kit.Equal(t, kit.JoinValues(m.Status, m.Version, m.Failure.Repairs, m.Failure.Class), "stopped 1.3 3 logic",
		"three fixes, then a person")
	list := a.ListScriptJobs()
	for i, version := range []string{"1.2", "1.1", "1.0"} {
		kit.Equal(t, kit.JoinValues(list[i].Kind, list[i].Version, list[i].State), "repair "+version+" done",
			"the repairs")
	}
	kit.Equal(t, len(list), 3, "repairs")
	told := a.ListNotifications()
	if len(told) != 1 || !strings.Contains(told[0].Title, "3 repairs did not help") {
		t.Errorf("the person was told %+v", told)
	}
	// Saving a version by hand resets the failure count.
	a.SaveVersion(`await Items.withItem('a', 'A', () => 1)`, false)
	kit.Equal(t, kit.JoinValues(a.Get().Status, a.Get().Failure == nil), "active true", "after a person's version")
	a.MustComplete()
}

// An item that only a person can decide goes to that person, not to the maintainer.
func TestK18_AttentionGoesToAPerson(t *testing.T) {
	t.Parallel()
	a, f := startWithFailingTool(t, kit.FastConfig(t),
		`await Items.withItem('5', 'Item 5', async () => { await Mail.send({ to: '5', text: 'one' }); await Mail.send({ to: 'x' }) })`)
	f.deeds.refuse("x", true)
	a.MustFail(reeve.LogicFailure, "x was refused")
	a.SaveVersion(`await Items.withItem('5', 'Item 5', async () => { await Mail.send({ to: '5', text: 'two' }) })`,
		true)
	before := len(a.ListScriptJobs())
	a.MustFail(reeve.LogicFailure)
	told := a.ListNotifications()
	kit.Equal(t, kit.JoinValues(len(a.ListScriptJobs())-before, a.ItemState("5"), a.Get().Status),
		"0 needs_attention active",
		"an item is set aside")
	if len(told) == 0 || !strings.Contains(told[0].Title, "an item needs your attention") {
		t.Errorf("the person was told %+v", told)
	}
	a.MustComplete()
}

// A script may fail with what it has read. So only those who see the run read its message.
func TestK18_MessagesOfOthersRunsAreHidden(t *testing.T) {
	t.Parallel()
	kit.OnBothDatabases(t, func(t *testing.T, cfg host.Config) {
		a, _ := startWithFailingTool(t, cfg,
			`await Items.withItem('a', 'A', async () => { throw new Error('the PIN is 4711') })`)
		ann, ben := kit.NewTokenFor(a.Host, "ann", "member"), kit.NewTokenFor(a.Host, "ben", "member")
		a.Want(201, nil, "POST", a.Path("/runs"), kit.Object{}, ann...)
		a.RunUntilIdle(t.Context())
		for _, path := range []string{a.Path(""), "/api/automations", a.Path("/items"), a.Path("/items/a"), "/api/inbox"} {
			if r := a.Want(200, nil, "GET", path, nil, ben...); strings.Contains(string(r.Body), "4711") {
				t.Errorf("%s shows %s", path, r.Body)
			}
		}
		for _, path := range []string{a.Path(""), a.Path("/items/a")} {
			if r := a.Want(200, nil, "GET", path, nil, ann...); !strings.Contains(string(r.Body), "4711") {
				t.Errorf("%s does not say why: %s", path, r.Body)
			}
		}
	})
}
