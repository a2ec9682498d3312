package automation_test

import (
	"context"
	"strings"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/model"
	"reeve/reevetest"
	"reeve/test/kit"
)

// A plain request becomes an automation: the planner looks, asks, is corrected by a trial, saves and schedules. Nothing
// runs or changes before a person has seen the plan and activated it.
func TestK27_PlannerWritesAScript(t *testing.T) {
	t.Parallel()
	kit.OnBothDatabases(t, func(t *testing.T, cfg host.Config) {
		cfg.Model = kit.ScriptedModel(t, plannerScript)
		a, d := newPlannedAutomation(t, cfg)
		watched := a.WatchKeys("SCHEDULE", "NOTIFICATION")
		k := a.Plan("answer my letters")
		kit.Equal(t, kit.JoinValues(k.State, k.Question), "asking How often?", "a question is a row")
		told := a.ListNotifications()
		if len(told) != 1 || !strings.Contains(told[0].Title, "asks about letters") ||
			!strings.Contains(told[0].Body, "How often?") {
			t.Errorf("the person was told %+v", told)
		}
		kit.Equal(t, watched(), "0 1", "who watches was told of the question")
		a.Want(409, nil, "POST", a.Path("/plan"), kit.Call{"request": "something else"})
		a.Want(200, nil, "POST", "/api/script-jobs/"+k.ID+"/answer", kit.Call{"answer": "every morning"})
		a.Want(409, nil, "POST", "/api/script-jobs/"+k.ID+"/answer", kit.Call{"answer": "twice"})
		a.RunUntilIdle(t.Context())
		a.Want(200, &k, "GET", "/api/script-jobs/"+k.ID, nil)
		kit.Equal(t, kit.JoinValues(k.State, k.Result, k.Message),
			"done 1.0 Every morning at seven, each letter gets an answer.",
			"the script job")
		m := a.Get()
		kit.Equal(t, kit.JoinValues(m.Status, m.Version, d), "draft  map[]", "nothing is active, and nothing was done")
		if told := a.ListNotifications(); len(told) != 2 ||
			!strings.Contains(told[0].Title, "wrote version 1.0 of letters") {
			t.Errorf("the person was told %+v", told)
		}
		kit.Equal(t, watched(), "1 2", "who watches was told of the schedule, and of the version")
		var v reeve.ScriptVersion
		a.Want(200, &v, "GET", a.Path("/versions/1.0"), nil)
		kit.Equal(t, kit.JoinValues(v.Source == goodScript, v.CreatedBy, v.ScriptJobID == k.ID, v.Comment),
			"true planner true Answers every letter once.", "the version")
		var s api.Schedule
		a.Want(200, &s, "GET", "/api/schedules/"+k.TimerID, nil)
		kit.Equal(t, kit.JoinValues(s.State, s.NextAt == nil, s.Zone, s.AgentID == m.AgentID, s.UserID),
			"paused true Europe/Vienna true owner", "the schedule waits")

		a.Want(409, nil, "POST", a.Path("/runs"), kit.Call{})
		a.Want(409, nil, "POST", a.Path("/activate"), kit.Call{"version": "1.0"}) // nobody has seen what it would do
		dry := a.StartRun(kit.Call{"type": "dry", "version": "1.0"})
		kit.Equal(t, kit.JoinValues(dry.Run.State, dry.Script.Progress.Planned, d), "completed 3 map[]", "the dry run")
		a.Want(200, &m, "POST", a.Path("/activate"), kit.Call{"version": "1.0"})
		a.Want(200, &s, "GET", "/api/schedules/"+k.TimerID, nil)
		kit.Equal(t, kit.JoinValues(m.Status, m.Version, s.State, s.NextAt != nil), "active 1.0 active true",
			"activated by the person")
		kit.Equal(t, watched(), "2 2", "who watches was told that the schedule begins")
		a.MustComplete()
		kit.Equal(t, d.String(), "map[a:1 b:1 c:1]", "what was done")
	})
}

// A script fails in the middle. The maintainer reads, tries and repairs it, and the run continues where it failed.
// Finished items stay finished.
func TestK27_MaintainerRepairs(t *testing.T) {
	t.Parallel()
	kit.OnBothDatabases(t, func(t *testing.T, cfg host.Config) {
		broken := strings.Replace(goodScript, "await Mail.send", "if (id === 'b') ctx.nothing.there(); await Mail.send",
			1)
		cfg.Model = kit.ScriptedModel(t, `
answers:
  - {when: {said: "/Version 1.0 of automation \"letters\" failed/", system: You are the maintainer}, calls: [{name: scripts_get, args: {}}, {name: scripts_history, args: {}}, {name: scripts_runs, args: {}}]}
  - {when: {tool: scripts_runs, result: "/of undefined.*1.0/"}, calls: [{name: scripts_eval, args: {source: "`+goodScript+`"}}]}
  - {when: {tool: scripts_eval, result: "/mail:b.*mail_send/"}, calls: [{name: scripts_fix, args: {source: "`+goodScript+`", comment: "nothing.there is not there"}}]}
  - {when: {tool: scripts_fix, result: '"applied":true'}, text: "Mended."}`)
		a, d := newPlannedAutomation(t, cfg)
		a.SaveVersion(broken, false)
		a.MustFail(reeve.LogicFailure, "'there' of undefined")
		kit.Equal(t, kit.JoinValues(d, a.Get().Status, a.Get().Failure.Repairs), "map[a:1] repairing 1",
			"one repair is under way")
		a.RunUntilIdle(t.Context())
		m := a.Get()
		kit.Equal(t, kit.JoinValues(m.Status, m.Version, m.Failure == nil, d), "active 1.1 true map[a:1 b:1 c:1]",
			"mended, it carried on")
		list := a.ListScriptJobs()
		kit.Equal(t, kit.JoinValues(len(list), list[0].Kind, list[0].State, list[0].Version, list[0].Result,
			len(a.ListNotifications())),
			"1 repair done 1.0 1.1 0", "nobody was bothered")
		runs := kit.ListAutomationRuns(a)
		kit.Equal(t, kit.JoinValues(runs[0].Run.Reason, runs[0].Run.ReasonID == runs[1].Run.ID, runs[0].Script.Version),
			"retry true 1.1", "the run that carried on")
	})
}

// A fix is compared with the version before by what both do, not by what the fix claims.
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
			"const sent = await Mail.send({ to: id }); if (!String(sent).includes('not run')) throw new Error('no')", 1),
			good + "; await Items.withItem('more', 'More', () => 1)", `does not process item "more"`},
		"the fix gets less far": {"", strings.Replace(good, "await Mail.send",
			"if (id === 'b') oops(); await Mail.send", 1), "oops(); " + good, `is not reached`},
		"what was read then is compared": {good, "oops(); " + good, strings.Replace(good, "await Mail.list({})",
			"['x']", 1), `is missing`},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := kit.FastConfig(t)
			cfg.Model = kit.ScriptedModel(t, `
answers:
  - {when: {said: failed}, calls: [{name: scripts_fix, args: {source: "`+c.fix+`", comment: "It is the same, I promise."}}]}
  - {when: {tool: scripts_fix}, text: "{{results}}"}`)
			a, d := newPlannedAutomation(t, cfg)
			if c.before != "" {
				a.SaveVersion(c.before, false)
				a.MustComplete()
			}
			version := a.SaveVersion(c.broken, false)
			a.MustFail(reeve.LogicFailure)
			done := d.String()
			a.RunUntilIdle(t.Context())
			m := a.Get()
			kit.Equal(t, kit.JoinValues(m.Status, m.Version, d), kit.JoinValues("stopped", version, done),
				"nothing changed")
			k := a.ListScriptJobs()[0]
			if k.State != reeve.ScriptJobFailed || !strings.Contains(k.Message, "would change item identity") ||
				!strings.Contains(k.Message, c.says) {
				t.Errorf("the script job is %s: %s; want it to say %q", k.State, k.Message, c.says)
			}
			if told := a.ListNotifications(); len(told) != 1 ||
				!strings.Contains(told[0].Title, "the maintainer did not repair it") ||
				!strings.Contains(told[0].Body, "identity") {
				t.Errorf("the person was told %+v", told)
			}
		})
	}
}

// The maintainer is stopped when a script fails. The repair fails, and the automation waits for its person, who can
// resume it.
func TestK27_RepairFailsWhenTheMaintainerIsStopped(t *testing.T) {
	t.Parallel()
	kit.OnBothDatabases(t, func(t *testing.T, cfg host.Config) {
		a, d := newPlannedAutomation(t, cfg)
		a.Want(201, nil, "POST", "/api/agents", kit.Call{"name": "mender", "kind": "maintainer"})
		a.SaveVersion(strings.Replace(goodScript, "await Mail.send", "if (!input) oops(); await Mail.send", 1), false)
		a.Want(204, nil, "POST", "/api/stop", kit.Call{"agent": "mender", "reason": "not now"})
		a.MustFail(reeve.LogicFailure)
		a.RunUntilIdle(t.Context())
		a.Want(204, nil, "POST", "/api/resume", kit.Call{"agent": "mender"})
		k := a.ListScriptJobs()[0]
		kit.Equal(t, kit.JoinValues(k.State, k.Message, a.Get().Status),
			"failed its run skipped: the agent is stopped stopped",
			"the repair")
		if told := a.ListNotifications(); len(told) != 1 ||
			!strings.Contains(told[0].Title, "the maintainer did not repair it") ||
			!strings.Contains(told[0].Body, "the agent is stopped") {
			t.Errorf("the person was told %+v", told)
		}
		a.Want(200, nil, "POST", a.Path("/resume"), nil)
		kit.Equal(t, len(a.ListRetries(reeve.WakeQueued)), 1, "runs that carry on")
		a.StartRun(kit.Call{"input": "well"})
		kit.Equal(t, kit.JoinValues(d, a.Get().Failure == nil), "map[a:1 b:1 c:1] true", "after a run that succeeded")
	})
}

// The automation is stopped just after its script was repaired. Its person is notified and can make the run by
// resuming.
func TestK27_StopAfterARepair(t *testing.T) {
	t.Parallel()
	kit.OnBothDatabases(t, func(t *testing.T, cfg host.Config) {
		var a *kit.Automation
		cfg.Model = hookedModel{kit.ScriptedModel(t, `
answers:
  - {when: {said: "/Version 1.0/", system: You are the maintainer}, calls: [{name: scripts_fix, args: {source: "`+goodScript+`", comment: "oops is not there"}}]}
  - {when: {tool: scripts_fix, result: '"applied":true'}, text: "Mended."}`), func(r model.Request) {
			if last := r.Messages[len(r.Messages)-1]; last.Parts[0].Type == model.Result {
				a.Want(204, nil, "POST", "/api/stop", kit.Call{"agent": "letters"})
			}
		}}
		var d *effectLog
		a, d = newPlannedAutomation(t, cfg)
		a.SaveVersion(strings.Replace(goodScript, "await Mail.send", "oops(); await Mail.send", 1), false)
		a.MustFail(reeve.LogicFailure)
		a.RunUntilIdle(t.Context())
		a.Want(204, nil, "POST", "/api/resume", kit.Call{"agent": "letters"})
		m := a.Get()
		kit.Equal(t, kit.JoinValues(m.Version, m.Status, d), "1.1 stopped map[]", "the automation")
		if told := a.ListNotifications(); len(told) != 1 ||
			!strings.Contains(told[0].Title, "its retry was skipped because the agent is stopped") {
			t.Errorf("the person was told %+v", told)
		}
		a.Want(200, nil, "POST", a.Path("/resume"), nil)
		a.RunUntilIdle(t.Context())
		kit.Equal(t, kit.JoinValues(d, a.Get().Status), "map[a:1 b:1 c:1] active", "resumed")
	})
}

// The budget of unattended runs does not limit script jobs, unless the server's settings say so.
func TestG17_RunBudgetsLimitScriptJobsOnlyIfConfigured(t *testing.T) {
	t.Parallel()
	for limited, want := range map[bool]reeve.ScriptJobState{
		false: reeve.ScriptJobAsking, true: reeve.ScriptJobFailed} {
		cfg := kit.FastConfig(t)
		cfg.Model, cfg.RunTokens, cfg.RunScriptJobs = kit.ScriptedModel(t, plannerScript), 1, limited
		a, _ := newPlannedAutomation(t, cfg)
		k := a.Plan("answer my letters")
		kit.Equal(t, k.State, want, "the script job: "+k.Message)
	}
}

// If the planner cannot do its work, the script job ends, its person is notified, and another can be requested.
func TestK27_ScriptJobEndsWithoutThePlanner(t *testing.T) {
	t.Parallel()
	gone := func(a *kit.Automation) { a.Want(204, nil, "DELETE", "/api/agents/planner", nil) }
	for name, c := range map[string]struct {
		before, during, after func(*kit.Automation)
		want                  string
	}{
		"all is stopped": {func(a *kit.Automation) { a.Want(204, nil, "POST", "/api/stop", kit.Call{}) }, nil,
			func(a *kit.Automation) { a.Want(204, nil, "POST", "/api/resume", kit.Call{}) },
			"skipped: everything in the workspace is stopped"},
		"it is removed":         {gone, nil, nil, "skipped: the agent is gone"},
		"it is removed at work": {nil, gone, nil, "cancelled: the agent was removed"},
		"it is destroyed at work": {nil,
			func(a *kit.Automation) {
				a.Want(200, nil, "PATCH", "/api/agents/planner", kit.Call{"lifecycle": "destroyed"})
			},
			nil,
			"cancelled: the agent was destroyed"},
	} {
		t.Run(name, func(t *testing.T) {
			kit.OnBothDatabases(t, func(t *testing.T, cfg host.Config) {
				var a *kit.Automation
				cfg.Model = hookedModel{kit.ScriptedModel(t, plannerScript), func(model.Request) {
					if during := c.during; during != nil {
						c.during = nil
						during(a)
					}
				}}
				defer func(f func(*kit.Automation)) { c.during = f }(c.during)
				a, _ = newPlannedAutomation(t, cfg)
				var k reeve.ScriptJob
				a.Want(201, &k, "POST", a.Path("/plan"), kit.Call{"request": "answer my letters"})
				if c.before != nil {
					c.before(a)
				}
				a.RunUntilIdle(t.Context())
				if c.after != nil {
					c.after(a)
				}
				a.Want(200, &k, "GET", "/api/script-jobs/"+k.ID, nil)
				kit.Equal(t, kit.JoinValues(k.State, k.Message), "failed its run "+c.want, "the script job")
				if told := a.ListNotifications(); len(told) != 1 ||
					!strings.Contains(told[0].Title, "wrote no script for letters") ||
					!strings.Contains(told[0].Body, c.want) {
					t.Errorf("the person was told %+v", told)
				}
				kit.Equal(t, a.Plan("answer my letters").State, reeve.ScriptJobAsking, "another script job")
			})
		})
	}
}

// The automation is removed after the planner saved a version. The script job ends, whether or not the planner is woken
// for it.
func TestK27_PlanOfARemovedAutomation(t *testing.T) {
	t.Parallel()
	for _, stopped := range []bool{true, false} {
		kit.OnBothDatabases(t, func(t *testing.T, cfg host.Config) {
			cfg.Model = kit.ScriptedModel(t, `
answers:
  - {when: {said: "/The user answered/", system: You are the planner}, text: "It is saved."}
  - {when: {said: answer my letters, system: You are the planner}, calls: [{name: scripts_save, args: {source: "'hello'", comment: "Says hello."}}, {name: scripts_ask, args: {question: "How often?"}}]}
  - {when: {tool: scripts_ask}, text: "I wait for your answer."}`)
			a, _ := newPlannedAutomation(t, cfg)
			k := a.Plan("answer my letters")
			kit.Equal(t, kit.JoinValues(k.State, k.Result), "asking 1.0", "before it is removed")
			a.Want(200, nil, "POST", "/api/script-jobs/"+k.ID+"/answer", kit.Call{"answer": "every morning"})
			a.Want(204, nil, "DELETE", "/api/agents/letters", nil)
			if stopped {
				a.Want(204, nil, "POST", "/api/stop", kit.Call{"agent": "planner"})
			}
			a.RunUntilIdle(t.Context())
			a.Want(200, &k, "GET", "/api/script-jobs/"+k.ID, nil)
			kit.Equal(t, k.State, reeve.ScriptJobDone, "the script job")
		})
	}
}

// An answer to a removed planner reaches the new one.
func TestK27_AnswerToARemovedPlanner(t *testing.T) {
	t.Parallel()
	kit.OnBothDatabases(t, func(t *testing.T, cfg host.Config) {
		cfg.Model = kit.ScriptedModel(t, plannerScript)
		a, _ := newPlannedAutomation(t, cfg)
		k := a.Plan("answer my letters")
		was := k.WorkerID
		a.Want(204, nil, "DELETE", "/api/agents/planner", nil)
		a.Want(200, nil, "POST", "/api/script-jobs/"+k.ID+"/answer", kit.Call{"answer": "every morning"})
		a.RunUntilIdle(t.Context())
		a.Want(200, &k, "GET", "/api/script-jobs/"+k.ID, nil)
		kit.Equal(t, kit.JoinValues(k.State, k.Result, k.WorkerID != was), "done 1.0 true", "the script job")
	})
}

// Without a model key the planner and the maintainer say so at once. The rehearsal model plays neither of them, in a
// script job or in a conversation.
func TestK27_WithoutAModelNobodyWritesScripts(t *testing.T) {
	t.Parallel()
	h := reevetest.StartWith(t, kit.FastConfig(t))
	a := &kit.Automation{Host: h, T: t, Name: "letters"}
	h.Want(201, nil, "POST", "/api/automations", kit.Call{"name": a.Name, "source": "oops()"})
	k := a.Plan(`scripts_save {"automation": "letters", "source": "1", "comment": "Saved by a rehearsal."}`)
	kit.Equal(t, kit.JoinValues(k.State, k.Message),
		"failed its run failed: no model is configured, and planner needs one", "the plan")
	c := a.StartConversation("planner")
	turn := kit.StartTurn(h, c.ID, `scripts_save {"automation": "letters", "source": "1", "comment": "No."}`)
	a.RunUntilIdle(t.Context())
	if turn = kit.GetTurn(h, turn.ID).Turn; turn.State != reeve.RunFailed || turn.Code != reeve.Unsupported {
		t.Errorf("the conversation: %+v", turn)
	}
	a.MustFail(reeve.LogicFailure)
	a.RunUntilIdle(t.Context())
	kit.Equal(t, kit.JoinValues(a.Get().Status, a.Get().Version), "stopped 1.0", "the automation")
	k = a.ListScriptJobs()[0]
	kit.Equal(t, kit.JoinValues(k.State, k.Message),
		"failed its run failed: no model is configured, and maintainer needs one", "the repair")
}

// A person talks with the planner, which names the automation itself and asks in plain text.
func TestK27_PlannerInAConversation(t *testing.T) {
	t.Parallel()
	a, _ := newPlannedAutomation(t, kit.FastConfig(t))
	a.Plan("hello")
	c := a.StartConversation("planner")
	talk := func(said string) reeve.Turn {
		t.Helper()
		var turn reeve.Turn
		a.Want(201, &turn, "POST", "/api/conversations/"+c.ID+"/turns", kit.Call{"content": said})
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
	if out := talk(`scripts_save {"automation": "letters", "source": "'hello'", "comment": "Says hello."}`).Output; !strings.Contains(out, `"version":"1.0"`) {
		t.Errorf("saving: %s", out)
	}
	if out := talk(`scripts_schedule {"automation": "letters", "cadence_type": "cron", "cadence_value": "0 7 * * *"}`).
		Output; !strings.Contains(out, "sch_") {
		t.Errorf("scheduling: %s", out)
	}
	kit.Equal(t, a.Get().Status, reeve.AutomationDraft, "it is not active")
	a.Want(409, nil, "POST", a.Path("/activate"), kit.Call{"version": "1.0"})
	a.StartRun(kit.Call{"type": "test", "version": "1.0"})
	a.Want(200, nil, "POST", a.Path("/activate"), kit.Call{"version": "1.0"})
	kit.Equal(t, a.MustComplete().Run.Output, "hello", "what it does")
	var l api.ScheduleList
	a.Want(200, &l, "GET", "/api/schedules", nil)
	kit.Equal(t, kit.JoinValues(l.Total, l.Schedules[0].State), "1 active", "its schedule")
}

// hookedModel is a model that calls a function before it answers.
type hookedModel struct {
	model.Model
	before func(model.Request)
}

func (m hookedModel) Answer(ctx context.Context, r model.Request, watch func(model.Delta)) (model.Answer, error) {
	m.before(r)
	return m.Model.Answer(ctx, r, watch)
}

// A person saves 2.0 after the maintainer has read 1.0 and before it saves its fix.
func TestK19_AStaleFixIsDiscarded(t *testing.T) {
	t.Parallel()
	broken := strings.Replace(goodScript, "await Mail.send", "oops(); await Mail.send", 1)
	second := strings.ReplaceAll(goodScript, "all answered", "second")
	mind := kit.ScriptedModel(t, `
answers:
  - {when: {said: failed, system: You are the maintainer}, calls: [{name: scripts_get, args: {}}]}
  - {when: {tool: scripts_get}, calls: [{name: scripts_fix, args: {source: "`+goodScript+`", comment: fixed}}]}
  - {when: {tool: scripts_fix}, text: "{{results}}"}
  - {when: {said: write another, system: You are the planner}, calls: [{name: scripts_save, args: {source: "`+second+`", comment: second}}]}
  - {when: {tool: scripts_save}, text: "Saved."}
`)
	for name, c := range map[string]struct {
		meanwhile func(a *kit.Automation)
		want      string
	}{
		"the planner": {func(a *kit.Automation) {
			var k reeve.ScriptJob
			a.Want(201, &k, "POST", a.Path("/plan"), kit.Call{"request": "write another"})
			kit.Eventually(a.T, "the planner has saved", func() bool {
				a.Want(200, &k, "GET", "/api/script-jobs/"+k.ID, nil)
				return k.State == reeve.ScriptJobDone
			})
		}, "stale 1.0 stopped 2.0"},
		"a person":              {func(a *kit.Automation) { a.SaveVersion(second, false) }, "stale 2.0 active 2.0"},
		"a person's own repair": {func(a *kit.Automation) { a.SaveVersion(second, true) }, "stale 1.1 active 1.1"},
		"a run that succeeds": {func(a *kit.Automation) {
			a.Want(200, nil, "POST", a.Path("/items/skip"), kit.Call{"item": "mail:a"})
			a.Want(201, nil, "POST", a.Path("/runs"), kit.Call{"input": "well"})
			kit.Eventually(a.T, "it is well", func() bool { return a.Get().Failure == nil })
		}, "stale 1.0 active 1.0"},
	} {
		t.Run(name, func(t *testing.T) {
			var a *kit.Automation
			cfg := kit.FastConfig(t)
			cfg.Model = hookedModel{mind, func(r model.Request) {
				for _, p := range r.Messages[len(r.Messages)-1].Parts {
					if p.Type == model.Result && p.Name == "scripts_get" {
						c.meanwhile(a)
					}
				}
			}}
			d := newEffectLog()
			h := reevetest.Run(t, cfg, d.tools()...)
			a = &kit.Automation{Host: h, T: t, Name: "letters"}
			h.Want(201, nil, "POST", "/api/automations", kit.Call{"name": a.Name, "tools": mailTools,
				"source": strings.Replace(broken, "oops()", "if (input !== 'well') oops()", 1)})
			h.Want(201, nil, "POST", a.Path("/runs"), kit.Call{})
			var repair reeve.ScriptJob
			kit.Eventually(t, "the maintainer has come to its end", func() bool {
				list := a.ListScriptJobs()
				if len(list) == 0 {
					return false
				}
				repair = list[len(list)-1]
				var runs api.RunList
				h.Want(200, &runs, "GET", "/api/runs?agent="+repair.WorkerID, nil)
				return len(runs.Runs) == 1 && runs.Runs[0].State == reeve.RunCompleted &&
					strings.Contains(runs.Runs[0].Output, "Discarded")
			})
			list := a.ListScriptJobs()
			repair = list[len(list)-1] // as it is when its run has ended
			m := a.Get()
			var l api.ScriptVersionList
			h.Want(200, &l, "GET", a.Path("/versions"), nil)
			kit.Equal(t, kit.JoinValues(repair.State, m.Version, m.Status, l.Versions[0].Version()), c.want,
				"the fix is discarded")
			kit.Equal(t, repair.Result, "", "no version came of it")
		})
	}
}

// Only the planner and the maintainer have the tools that read and write scripts, each its own.
func TestK27_ScriptToolsAreForPlannerAndMaintainer(t *testing.T) {
	t.Parallel()
	cfg := kit.FastConfig(t)
	cfg.Model = kit.ScriptedModel(t, `
answers:
  - {when: {said: begin}, calls: [{name: scripts_fix, args: {source: "1", comment: "not mine"}}]}
  - {when: {tool: scripts_fix}, text: "{{results}}"}`)
	a, _ := newPlannedAutomation(t, cfg)
	k := a.Plan("begin")
	if k.State != reeve.ScriptJobFailed || !strings.Contains(k.Message, "not found") {
		t.Errorf("the planner may fix: %s %s", k.State, k.Message)
	}
	h := a.Host
	h.Agent("other")
	h.Want(201, nil, "POST", "/api/agents/other/tools", kit.Call{"tool_id": "scripts_save"})
	if _, p, status := kit.TryCall(h, "other",
		kit.Call{"tool": "scripts_save", "args": kit.Call{"automation": "letters", "source": "1", "comment": "no"}}); status != 403 {
		t.Errorf("an agent of another kind may save: %d %s", status, p.Detail)
	}
}

// An automation has the planning tools attached, but its script neither sees nor can call them.
func TestK13_ScriptCannotCallPlanningTools(t *testing.T) {
	t.Parallel()
	a, _ := newPlannedAutomation(t, kit.FastConfig(t))
	a.Want(200, nil, "PUT", "/api/profiles/assistant",
		kit.Call{"capabilities": []string{"scripts.see", "scripts.plan", "scripts.fix"}})
	for _, id := range []string{"scripts_list", "scripts_eval", "scripts_save"} {
		a.Want(201, nil, "POST", "/api/agents/letters/tools", kit.Call{"tool_id": id})
	}
	a.SaveVersion(`
		const out = [typeof globalThis.Scripts, (await getDocs()).includes('Scripts.')];
		for (const [id, args] of [['scripts_list', {}], ['scripts_eval', { source: '1' }]]) { try { await Tools.call(id, args); out.push('called') } catch (e) { out.push(e.code) } }
		await Items.withItem('a', 'A', async (ctx) => { try { await Tools.call('scripts_save', { source: '1', comment: 'no' }); out.push('called') } catch (e) { out.push(e.code); ctx.ignore(e) } });
		out.join(' ')`, false)
	kit.Equal(t, a.MustComplete().Run.Output, "undefined false NOT_FOUND NOT_FOUND NOT_FOUND",
		"what a script finds of them")
	kit.Equal(t, a.Get().Version, "1.0", "nothing was saved")
}
