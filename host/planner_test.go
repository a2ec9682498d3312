package host_test

import (
	"context"
	"strings"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/model"
	"reeve/reevetest"
)

// goodScript is what the planner of these tests writes; badScript is what it tries first.
const (
	goodScript = `for (const id of await Mail.list({})) await Items.withItem('mail:' + id, 'Letter ' + id, async (ctx) => { if (ctx.item.isDone) return; await Mail.send({ to: id }) }); 'all answered'`
	badScript  = `for (const id of await Mail.list({})) await Mail.send({ to: id })`
)

// plannerScript is a model that looks, tries, is corrected, asks, saves, schedules and tells.
const plannerScript = `
answers:
  - when: {said: "/The user answered: every morning/", system: You are the planner}
    calls: [{name: scripts_eval, args: {source: "` + badScript + `"}}]
  - when: {said: answer my letters, system: You are the planner}
    calls: [{name: scripts_eval, args: {source: "await getDocs('Mail') + await getDocs('Scripts')"}}]
  - when: {tool: scripts_eval, result: "outside Items.withItem"}
    calls: [{name: scripts_eval, args: {source: "` + goodScript + `"}}]
  - when: {tool: scripts_eval, result: "/Mutation: call it inside.*Scripts.history/"}
    calls: [{name: scripts_ask, args: {question: "How often?"}}]
  - when: {tool: scripts_eval, result: "/mail:a.*mail_send/"}
    calls: [{name: scripts_save, args: {source: "` + goodScript + `", comment: "Answers every letter once."}}, {name: scripts_schedule, args: {cadence_type: cron, cadence_value: "0 7 * * *", timezone: Europe/Vienna}}]
  - {when: {tool: scripts_schedule}, text: "Every morning at seven, each letter gets an answer."}
  - {when: {tool: scripts_ask}, text: "I wait for your answer."}
  - {when: {tool: scripts_save}, text: "Saved."}
`

func planning(t *testing.T, cfg host.Config) (*auto, *deeds) {
	t.Helper()
	d := newDeeds()
	h := reevetest.StartWith(t, cfg, d.tools()...)
	a := &auto{Host: h, t: t, name: "letters"}
	h.Want(201, nil, "POST", "/api/automations", call{"name": a.name, "tools": mailTools})
	return a, d
}

func (a *auto) plan(request string) reeve.ScriptJob {
	a.t.Helper()
	var k reeve.ScriptJob
	a.Want(201, &k, "POST", a.at("/plan"), call{"request": request})
	a.RunUntilIdle(a.t.Context())
	a.Want(200, &k, "GET", "/api/script-jobs/"+k.ID, nil)
	return k
}

// watched makes an agent that watches keys, and tells how often each of them has woken it.
func (a *auto) watched(keys ...string) func() string {
	a.t.Helper()
	a.Want(201, nil, "POST", "/api/agents", call{"name": "aware", "config": plan("seen")})
	for _, k := range keys {
		a.Want(201, nil, "POST", "/api/agents/aware/subscriptions", call{"class": "key", "name": k})
	}
	return func() string {
		a.t.Helper()
		var list api.WakeList
		a.Want(200, &list, "GET", "/api/agents/aware/wakes?limit=100", nil)
		var counts []any
		for _, k := range keys {
			n := 0
			for _, v := range list.Wakes {
				if v.Token.Name == k {
					n++
				}
			}
			counts = append(counts, n)
		}
		return spoken(counts...)
	}
}

// TestK27_PlannerWritesAScript takes a plain request to an automation that a person activates: the planner looks, asks,
// is corrected by a trial, saves and schedules; nothing runs, and nothing is changed, before the person has seen what
// it would do and said so.
func TestK27_PlannerWritesAScript(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, cfg host.Config) {
		cfg.Model = script(t, plannerScript)
		a, d := planning(t, cfg)
		watched := a.watched("SCHEDULE", "NOTIFICATION")
		k := a.plan("answer my letters")
		equal(t, spoken(k.State, k.Question), "asking How often?", "a question is a row")
		told := a.told()
		if len(told) != 1 || !strings.Contains(told[0].Title, "asks about letters") ||
			!strings.Contains(told[0].Body, "How often?") {
			t.Errorf("the person was told %+v", told)
		}
		equal(t, watched(), "0 1", "who watches was told of the question")
		a.Want(409, nil, "POST", a.at("/plan"), call{"request": "something else"})
		a.Want(200, nil, "POST", "/api/script-jobs/"+k.ID+"/answer", call{"answer": "every morning"})
		a.Want(409, nil, "POST", "/api/script-jobs/"+k.ID+"/answer", call{"answer": "twice"})
		a.RunUntilIdle(t.Context())
		a.Want(200, &k, "GET", "/api/script-jobs/"+k.ID, nil)
		equal(t, spoken(k.State, k.Result, k.Message), "done 1.0 Every morning at seven, each letter gets an answer.",
			"the script job")
		m := a.get()
		equal(t, spoken(m.Status, m.Version, d), "draft  map[]", "nothing is active, and nothing was done")
		if told := a.told(); len(told) != 2 || !strings.Contains(told[0].Title, "wrote version 1.0 of letters") {
			t.Errorf("the person was told %+v", told)
		}
		equal(t, watched(), "1 2", "who watches was told of the schedule, and of the version")
		var v reeve.ScriptVersion
		a.Want(200, &v, "GET", a.at("/versions/1.0"), nil)
		equal(t, spoken(v.Source == goodScript, v.CreatedBy, v.ScriptJobID == k.ID, v.Comment),
			"true planner true Answers every letter once.", "the version")
		var s api.Schedule
		a.Want(200, &s, "GET", "/api/schedules/"+k.TimerID, nil)
		equal(t, spoken(s.State, s.NextAt == nil, s.Zone, s.AgentID == m.AgentID, s.UserID),
			"paused true Europe/Vienna true owner", "the schedule waits")

		a.Want(409, nil, "POST", a.at("/runs"), call{})
		a.Want(409, nil, "POST", a.at("/activate"), call{"version": "1.0"}) // nobody has seen what it would do
		dry := a.start(call{"type": "dry", "version": "1.0"})
		equal(t, spoken(dry.Run.State, dry.Script.Progress.Planned, d), "completed 3 map[]", "the dry run")
		a.Want(200, &m, "POST", a.at("/activate"), call{"version": "1.0"})
		a.Want(200, &s, "GET", "/api/schedules/"+k.TimerID, nil)
		equal(t, spoken(m.Status, m.Version, s.State, s.NextAt != nil), "active 1.0 active true",
			"activated by the person")
		equal(t, watched(), "2 2", "who watches was told that the schedule begins")
		a.completes()
		equal(t, d.String(), "map[a:1 b:1 c:1]", "what was done")
	})
}

// TestK27_MaintainerMends lets a script fail in the middle: the maintainer reads, tries, mends, and the run carries on
// where it failed. What was done stays done.
func TestK27_MaintainerMends(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, cfg host.Config) {
		broken := strings.Replace(goodScript, "await Mail.send", "if (id === 'b') ctx.nothing.there(); await Mail.send",
			1)
		cfg.Model = script(t, `
answers:
  - {when: {said: "/Version 1.0 of automation \"letters\" failed/", system: You are the maintainer}, calls: [{name: scripts_get, args: {}}, {name: scripts_history, args: {}}, {name: scripts_runs, args: {}}]}
  - {when: {tool: scripts_runs, result: "/of undefined.*1.0/"}, calls: [{name: scripts_eval, args: {source: "`+goodScript+`"}}]}
  - {when: {tool: scripts_eval, result: "/mail:b.*mail_send/"}, calls: [{name: scripts_fix, args: {source: "`+goodScript+`", comment: "nothing.there is not there"}}]}
  - {when: {tool: scripts_fix, result: '"applied":true'}, text: "Mended."}`)
		a, d := planning(t, cfg)
		a.save(broken, false)
		a.fails(reeve.LogicFailure, "'there' of undefined")
		equal(t, spoken(d, a.get().Status, a.get().Failure.Repairs), "map[a:1] repairing 1", "one repair is under way")
		a.RunUntilIdle(t.Context())
		m := a.get()
		equal(t, spoken(m.Status, m.Version, m.Failure == nil, d), "active 1.1 true map[a:1 b:1 c:1]",
			"mended, it carried on")
		list := a.jobs()
		equal(t, spoken(len(list), list[0].Kind, list[0].State, list[0].Version, list[0].Result, len(a.told())),
			"1 repair done 1.0 1.1 0", "nobody was bothered")
		runs := listRuns(a)
		equal(t, spoken(runs[0].Run.Reason, runs[0].Run.ReasonID == runs[1].Run.ID, runs[0].Script.Version),
			"retry true 1.1", "the run that carried on")
	})
}

// TestK27_AFixThatChangesIdentityIsRefused compares what two versions do, whatever a fix says of itself.
func TestK27_AFixThatChangesIdentityIsRefused(t *testing.T) {
	t.Parallel()
	const walk = `for (const id of await Mail.list({})) await Items.withItem(ID, 'Letter ' + id, async (ctx) => { if (ctx.item.isDone) return; await Mail.send({ to: id }) })`
	named := func(id string) string { return strings.Replace(walk, "ID", id, 1) }
	good := named(`'mail:' + id`)
	for name, c := range map[string]struct{ before, broken, fix, says string }{
		"another prefix": {"", strings.Replace(good, "await Mail.send", "oops(); await Mail.send", 1),
			named(`'msg:' + id`), `item "mail:a" is missing`},
		"a counter": {"", strings.Replace(good, "await Mail.send", "oops(); await Mail.send", 1),
			"let n = 0; " + named(`'mail:' + n++`), `item "mail:a" is missing`},
		"it fails before any item": {good, "oops(); " + good, named(`id`), `item "mail:c" is missing`},
		"an item more than it had": {"", strings.Replace(good, "await Mail.send({ to: id })",
			"if (await Mail.send({ to: id })) throw new Error('no')", 1),
			good + "; await Items.withItem('more', 'More', () => 1)", `does not process item "more"`},
		"the fix gets less far": {"", strings.Replace(good, "await Mail.send",
			"if (id === 'b') oops(); await Mail.send", 1), "oops(); " + good, `is not reached`},
		"what was read then is compared": {good, "oops(); " + good, strings.Replace(good, "await Mail.list({})",
			"['x']", 1), `is missing`},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := quick(t)
			cfg.Model = script(t, `
answers:
  - {when: {said: failed}, calls: [{name: scripts_fix, args: {source: "`+c.fix+`", comment: "It is the same, I promise."}}]}
  - {when: {tool: scripts_fix}, text: "{{results}}"}`)
			a, d := planning(t, cfg)
			if c.before != "" {
				a.save(c.before, false)
				a.completes()
			}
			version := a.save(c.broken, false)
			a.fails(reeve.LogicFailure)
			done := d.String()
			a.RunUntilIdle(t.Context())
			m := a.get()
			equal(t, spoken(m.Status, m.Version, d), spoken("stopped", version, done), "nothing changed")
			k := a.jobs()[0]
			if k.State != reeve.ScriptJobFailed || !strings.Contains(k.Message, "would change item identity") ||
				!strings.Contains(k.Message, c.says) {
				t.Errorf("the script job is %s: %s; want it to say %q", k.State, k.Message, c.says)
			}
			if told := a.told(); len(told) != 1 ||
				!strings.Contains(told[0].Title, "the maintainer did not repair it") ||
				!strings.Contains(told[0].Body, "identity") {
				t.Errorf("the person was told %+v", told)
			}
		})
	}
}

// TestK27_ARepairThatNobodyDoes: the maintainer is stopped when a script fails. The repair has failed then, and the
// automation waits for its person, who can resume it.
func TestK27_ARepairThatNobodyDoes(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, cfg host.Config) {
		a, d := planning(t, cfg)
		a.Want(201, nil, "POST", "/api/agents", call{"name": "mender", "kind": "maintainer"})
		a.save(strings.Replace(goodScript, "await Mail.send", "if (!input) oops(); await Mail.send", 1), false)
		a.Want(204, nil, "POST", "/api/stop", call{"agent": "mender", "reason": "not now"})
		a.fails(reeve.LogicFailure)
		a.RunUntilIdle(t.Context())
		a.Want(204, nil, "POST", "/api/resume", call{"agent": "mender"})
		k := a.jobs()[0]
		equal(t, spoken(k.State, k.Message, a.get().Status), "failed its run skipped: the agent is stopped stopped",
			"the repair")
		if told := a.told(); len(told) != 1 || !strings.Contains(told[0].Title, "the maintainer did not repair it") ||
			!strings.Contains(told[0].Body, "the agent is stopped") {
			t.Errorf("the person was told %+v", told)
		}
		a.Want(200, nil, "POST", a.at("/resume"), nil)
		equal(t, len(a.retries(reeve.WakeQueued)), 1, "runs that carry on")
		a.start(call{"input": "well"})
		equal(t, spoken(d, a.get().Failure == nil), "map[a:1 b:1 c:1] true", "after a run that succeeded")
	})
}

// TestK27_AMendedRunThatIsNotMade: the automation is stopped just when its script was mended. Its person is told, and
// has the run made when they resume it.
func TestK27_AMendedRunThatIsNotMade(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, cfg host.Config) {
		var a *auto
		cfg.Model = interposed{script(t, `
answers:
  - {when: {said: "/Version 1.0/", system: You are the maintainer}, calls: [{name: scripts_fix, args: {source: "`+goodScript+`", comment: "oops is not there"}}]}
  - {when: {tool: scripts_fix, result: '"applied":true'}, text: "Mended."}`), func(r model.Request) {
			if last := r.Messages[len(r.Messages)-1]; last.Parts[0].Type == model.Result {
				a.Want(204, nil, "POST", "/api/stop", call{"agent": "letters"})
			}
		}}
		var d *deeds
		a, d = planning(t, cfg)
		a.save(strings.Replace(goodScript, "await Mail.send", "oops(); await Mail.send", 1), false)
		a.fails(reeve.LogicFailure)
		a.RunUntilIdle(t.Context())
		a.Want(204, nil, "POST", "/api/resume", call{"agent": "letters"})
		m := a.get()
		equal(t, spoken(m.Version, m.Status, d), "1.1 stopped map[]", "the automation")
		if told := a.told(); len(told) != 1 ||
			!strings.Contains(told[0].Title, "its retry was skipped because the agent is stopped") {
			t.Errorf("the person was told %+v", told)
		}
		a.Want(200, nil, "POST", a.at("/resume"), nil)
		a.RunUntilIdle(t.Context())
		equal(t, spoken(d, a.get().Status), "map[a:1 b:1 c:1] active", "resumed")
	})
}

// TestK27_APlanThatNobodyMakes: whatever becomes of the planner, its script job ends, its person is told, and another
// can be asked for.
func TestK27_APlanThatNobodyMakes(t *testing.T) {
	t.Parallel()
	gone := func(a *auto) { a.Want(204, nil, "DELETE", "/api/agents/planner", nil) }
	for name, c := range map[string]struct {
		before, during, after func(*auto)
		want                  string
	}{
		"all is stopped": {func(a *auto) { a.Want(204, nil, "POST", "/api/stop", call{}) }, nil,
			func(a *auto) { a.Want(204, nil, "POST", "/api/resume", call{}) },
			"skipped: everything in the workspace is stopped"},
		"it is removed":         {gone, nil, nil, "skipped: the agent is gone"},
		"it is removed at work": {nil, gone, nil, "cancelled: the agent was removed"},
		"it is destroyed at work": {nil,
			func(a *auto) { a.Want(200, nil, "PATCH", "/api/agents/planner", call{"lifecycle": "destroyed"}) }, nil,
			"cancelled: the agent was destroyed"},
	} {
		t.Run(name, func(t *testing.T) {
			everywhere(t, func(t *testing.T, cfg host.Config) {
				var a *auto
				cfg.Model = interposed{script(t, plannerScript), func(model.Request) {
					if during := c.during; during != nil {
						c.during = nil
						during(a)
					}
				}}
				defer func(f func(*auto)) { c.during = f }(c.during)
				a, _ = planning(t, cfg)
				var k reeve.ScriptJob
				a.Want(201, &k, "POST", a.at("/plan"), call{"request": "answer my letters"})
				if c.before != nil {
					c.before(a)
				}
				a.RunUntilIdle(t.Context())
				if c.after != nil {
					c.after(a)
				}
				a.Want(200, &k, "GET", "/api/script-jobs/"+k.ID, nil)
				equal(t, spoken(k.State, k.Message), "failed its run "+c.want, "the script job")
				if told := a.told(); len(told) != 1 ||
					!strings.Contains(told[0].Title, "wrote no script for letters") ||
					!strings.Contains(told[0].Body, c.want) {
					t.Errorf("the person was told %+v", told)
				}
				equal(t, a.plan("answer my letters").State, reeve.ScriptJobAsking, "another script job")
			})
		})
	}
}

// TestK27_APlanOfAnAutomationThatIsGone: it is removed when the planner has saved a version of it. The script job ends
// all the same, whether the planner is woken for it or not, and holds nobody up.
func TestK27_APlanOfAnAutomationThatIsGone(t *testing.T) {
	t.Parallel()
	for _, stopped := range []bool{true, false} {
		everywhere(t, func(t *testing.T, cfg host.Config) {
			cfg.Model = script(t, `
answers:
  - {when: {said: "/The user answered/", system: You are the planner}, text: "It is saved."}
  - {when: {said: answer my letters, system: You are the planner}, calls: [{name: scripts_save, args: {source: "'hello'", comment: "Says hello."}}, {name: scripts_ask, args: {question: "How often?"}}]}
  - {when: {tool: scripts_ask}, text: "I wait for your answer."}`)
			a, _ := planning(t, cfg)
			k := a.plan("answer my letters")
			equal(t, spoken(k.State, k.Result), "asking 1.0", "before it is removed")
			a.Want(200, nil, "POST", "/api/script-jobs/"+k.ID+"/answer", call{"answer": "every morning"})
			a.Want(204, nil, "DELETE", "/api/agents/letters", nil)
			if stopped {
				a.Want(204, nil, "POST", "/api/stop", call{"agent": "planner"})
			}
			a.RunUntilIdle(t.Context())
			a.Want(200, &k, "GET", "/api/script-jobs/"+k.ID, nil)
			equal(t, k.State, reeve.ScriptJobDone, "the script job")
		})
	}
}

// TestK27_AnAnswerToAPlannerThatIsGone reaches the one that is there now.
func TestK27_AnAnswerToAPlannerThatIsGone(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, cfg host.Config) {
		cfg.Model = script(t, plannerScript)
		a, _ := planning(t, cfg)
		k := a.plan("answer my letters")
		was := k.WorkerID
		a.Want(204, nil, "DELETE", "/api/agents/planner", nil)
		a.Want(200, nil, "POST", "/api/script-jobs/"+k.ID+"/answer", call{"answer": "every morning"})
		a.RunUntilIdle(t.Context())
		a.Want(200, &k, "GET", "/api/script-jobs/"+k.ID, nil)
		equal(t, spoken(k.State, k.Result, k.WorkerID != was), "done 1.0 true", "the script job")
	})
}

// TestK27_InAConversation lets a person talk with the planner instead: it names the automation itself, and asks in
// words.
func TestK27_InAConversation(t *testing.T) {
	t.Parallel()
	a, _ := planning(t, quick(t)) // the rehearsal model calls what it is told to
	a.plan("hello")
	c := a.StartConversation("planner")
	talk := func(said string) reeve.Turn {
		t.Helper()
		var turn reeve.Turn
		a.Want(201, &turn, "POST", "/api/conversations/"+c.ID+"/turns", call{"content": said})
		a.RunUntilIdle(t.Context())
		a.Want(200, &turn, "GET", "/api/turns/"+turn.ID, nil)
		return turn
	}
	for said, answer := range map[string]string{
		`scripts_save {"source": "1", "comment": "which?"}`:                                                     "/automation is missing",
		`scripts_save {"automation": "letters", "source": "let x = ;", "comment": "x"}`:                         "script.js:1",
		`scripts_schedule {"automation": "letters", "cadence_type": "cron", "cadence_value": "0 7 * * *"}`:      "saved no version to schedule",
		`scripts_ask {"question": "how?"}`:                                                                      "ask the question in your answer",
		`scripts_eval {"automation": "nobody", "source": "1"}`:                                                  "not found",
		`scripts_eval {"automation": "letters", "source": "throw new Error('no')"}`:                             `\"class\":\"logic\"`,
		`scripts_eval {"automation": "letters", "source": "(await Mail.list({})).join() + typeof Scripts.get"}`: "a,b,cfunction",
	} {
		if out := talk(said).Output; !strings.Contains(strings.ReplaceAll(out, `"`, `\"`), answer) &&
			!strings.Contains(out, answer) {
			t.Errorf("%s: %s; want it to say %s", said, out, answer)
		}
	}
	if out := talk(`scripts_save {"automation": "letters", "source": "'hello'", "comment": "Says hello."}`).
		Output; !strings.Contains(out, `"version":"1.0"`) {
		t.Errorf("saving: %s", out)
	}
	if out := talk(`scripts_schedule {"automation": "letters", "cadence_type": "cron", "cadence_value": "0 7 * * *"}`).
		Output; !strings.Contains(out, "sch_") {
		t.Errorf("scheduling: %s", out)
	}
	equal(t, a.get().Status, reeve.AutomationDraft, "it is not active")
	a.Want(409, nil, "POST", a.at("/activate"), call{"version": "1.0"})
	a.start(call{"type": "test", "version": "1.0"})
	a.Want(200, nil, "POST", a.at("/activate"), call{"version": "1.0"})
	equal(t, a.completes().Run.Output, "hello", "what it does")
	var l api.ScheduleList
	a.Want(200, &l, "GET", "/api/schedules", nil)
	equal(t, spoken(l.Total, l.Schedules[0].State), "1 active", "its schedule")
}

// interposed is a model before whose answer something happens.
type interposed struct {
	model.Model
	before func(model.Request)
}

func (m interposed) Answer(ctx context.Context, r model.Request, watch func(model.Delta)) (model.Answer, error) {
	m.before(r)
	return m.Model.Answer(ctx, r, watch)
}

// TestK19_AStaleFixIsDiscarded lets somebody save 2.0 between the moment the maintainer has read 1.0 and the moment it
// saves its fix.
func TestK19_AStaleFixIsDiscarded(t *testing.T) {
	t.Parallel()
	broken := strings.Replace(goodScript, "await Mail.send", "oops(); await Mail.send", 1)
	second := strings.ReplaceAll(goodScript, "all answered", "second")
	mind := script(t, `
answers:
  - {when: {said: failed, system: You are the maintainer}, calls: [{name: scripts_get, args: {}}]}
  - {when: {tool: scripts_get}, calls: [{name: scripts_fix, args: {source: "`+goodScript+`", comment: fixed}}]}
  - {when: {tool: scripts_fix}, text: "{{results}}"}
  - {when: {said: write another, system: You are the planner}, calls: [{name: scripts_save, args: {source: "`+second+`", comment: second}}]}
  - {when: {tool: scripts_save}, text: "Saved."}
`)
	for name, c := range map[string]struct {
		meanwhile func(a *auto)
		want      string
	}{
		"the planner": {func(a *auto) {
			var k reeve.ScriptJob
			a.Want(201, &k, "POST", a.at("/plan"), call{"request": "write another"})
			eventually(a.t, "the planner has saved", func() bool {
				a.Want(200, &k, "GET", "/api/script-jobs/"+k.ID, nil)
				return k.State == reeve.ScriptJobDone
			})
		}, "stale 1.0 stopped 2.0"},
		"a person":              {func(a *auto) { a.save(second, false) }, "stale 2.0 active 2.0"},
		"a person's own repair": {func(a *auto) { a.save(second, true) }, "stale 1.1 active 1.1"},
		"a run that succeeds": {func(a *auto) {
			a.Want(200, nil, "POST", a.at("/items/skip"), call{"item": "mail:a"})
			a.Want(201, nil, "POST", a.at("/runs"), call{"input": "well"})
			eventually(a.t, "it is well", func() bool { return a.get().Failure == nil })
		}, "stale 1.0 active 1.0"},
	} {
		t.Run(name, func(t *testing.T) {
			var a *auto
			cfg := quick(t)
			cfg.Model = interposed{mind, func(r model.Request) {
				for _, p := range r.Messages[len(r.Messages)-1].Parts {
					if p.Type == model.Result && p.Name == "scripts_get" {
						c.meanwhile(a)
					}
				}
			}}
			d := newDeeds()
			h := reevetest.Run(t, cfg, d.tools()...)
			a = &auto{Host: h, t: t, name: "letters"}
			h.Want(201, nil, "POST", "/api/automations", call{"name": a.name, "tools": mailTools,
				"source": strings.Replace(broken, "oops()", "if (input !== 'well') oops()", 1)})
			h.Want(201, nil, "POST", a.at("/runs"), call{})
			var repair reeve.ScriptJob
			eventually(t, "the maintainer has come to its end", func() bool {
				list := a.jobs()
				if len(list) == 0 {
					return false
				}
				repair = list[len(list)-1]
				var runs api.RunList
				h.Want(200, &runs, "GET", "/api/runs?agent="+repair.WorkerID, nil)
				return len(runs.Runs) == 1 && runs.Runs[0].State == reeve.RunCompleted &&
					strings.Contains(runs.Runs[0].Output, "Discarded")
			})
			list := a.jobs()
			repair = list[len(list)-1] // as it is when its run has ended
			m := a.get()
			var l api.ScriptVersionList
			h.Want(200, &l, "GET", a.at("/versions"), nil)
			equal(t, spoken(repair.State, m.Version, m.Status, l.Versions[0].Version()), c.want, "the fix is discarded")
			equal(t, repair.Result, "", "no version came of it")
		})
	}
}

// TestK27_ScriptsAreForTasksOnly: what reads and writes scripts is the planner's and the maintainer's, each their own,
// and nobody else's.
func TestK27_ScriptsAreForTasksOnly(t *testing.T) {
	t.Parallel()
	cfg := quick(t)
	cfg.Model = script(t, `
answers:
  - {when: {said: begin}, calls: [{name: scripts_fix, args: {source: "1", comment: "not mine"}}]}
  - {when: {tool: scripts_fix}, text: "{{results}}"}`)
	a, _ := planning(t, cfg)
	k := a.plan("begin")
	if k.State != reeve.ScriptJobFailed || !strings.Contains(k.Message, "not found") {
		t.Errorf("the planner may fix: %s %s", k.State, k.Message)
	}
	h := a.Host
	h.Agent("other")
	h.Want(201, nil, "POST", "/api/agents/other/tools", call{"tool_id": "scripts_save"})
	if _, p, status := do(h, "other", call{"tool": "scripts_save", "args": call{"automation": "letters", "source": "1",
		"comment": "no"}}); status != 403 {
		t.Errorf("an agent of another kind may save: %d %s", status, p.Detail)
	}
}

// TestK13_ScriptsOnlyInTaskMode gives an automation the tools of planning: its script does not see them, and cannot
// call them.
func TestK13_ScriptsOnlyInTaskMode(t *testing.T) {
	t.Parallel()
	a, _ := planning(t, quick(t))
	a.Want(200, nil, "PUT", "/api/profiles/assistant",
		call{"capabilities": []string{"scripts.see", "scripts.plan", "scripts.fix"}})
	for _, id := range []string{"scripts_list", "scripts_eval", "scripts_save"} {
		a.Want(201, nil, "POST", "/api/agents/letters/tools", call{"tool_id": id})
	}
	a.save(`
		const out = [typeof globalThis.Scripts, (await getDocs()).includes('Scripts.')];
		for (const [id, args] of [['scripts_list', {}], ['scripts_eval', { source: '1' }]]) { try { await Tools.call(id, args); out.push('called') } catch (e) { out.push(e.code) } }
		await Items.withItem('a', 'A', async () => { try { await Tools.call('scripts_save', { source: '1', comment: 'no' }); out.push('called') } catch (e) { out.push(e.code) } });
		out.join(' ')`, false)
	equal(t, a.completes().Run.Output, "undefined false NOT_FOUND NOT_FOUND NOT_FOUND", "what a script finds of them")
	equal(t, a.get().Version, "1.0", "nothing was saved")
}
