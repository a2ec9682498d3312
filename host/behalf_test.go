package host_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/internal/store/storetest"
	"reeve/reevetest"
)

// delegatedSchedules is a model in which chief calls boss, boss calls helper, and helper makes or changes schedules.
// Scheduled runs call the tool act.
const delegatedSchedules = `- {when: {tool: delegate}, text: "Back."}
- {when: {tool: schedule_create}, text: "Planned."}
- {when: {tool: schedule_edit}, text: "Changed."}
- {when: {tool: act}, text: "Done."}
- {when: {system: I am chief}, calls: [{name: delegate, args: {agent: boss, input: plan}}]}
- {when: {system: I am boss}, calls: [{name: delegate, args: {agent: helper, input: plan}}]}
- {when: {said: plan}, calls: [{name: schedule_create, args: {goal: "act now", cadence_type: interval, cadence_value: 1s}}]}
- {when: {said: again later}, calls: [{name: schedule_create, args: {goal: "act now", cadence_type: interval, cadence_value: 1s}}]}
- {when: {said: act now}, calls: [{name: act, args: {}}]}
`

// laundering is a server on which agents make schedules for each other, with a count of what the tool act did.
func laundering(t *testing.T, cfg host.Config) (*reevetest.Host, *counter) {
	t.Helper()
	ran := &counter{}
	cfg.MinInterval = host.Duration(time.Second)
	cfg.Models.Default, cfg.Models.Script = "rehearsal", scriptFile(t, delegatedSchedules)
	return reevetest.Run(t, cfg, tool("act", reeve.Keyed, ran.handle)), ran
}

// onEngine is a config with short waits on one of the databases.
func onEngine(t *testing.T, engine string) host.Config {
	t.Helper()
	cfg := quick(t)
	if engine == "postgres" {
		cfg.Database, cfg.SecretKey = storetest.PostgresURL(t), strings.Repeat("ab", 32)
	}
	return cfg
}

// fired waits until a run has ended that was started by a schedule after those that are listed already, and gives it.
func fired(h *reevetest.Host, after int) (run reeve.Run) {
	h.T.Helper()
	eventually(h.T, "a scheduled run", func() bool {
		list := scheduled(h)
		if len(list) > after {
			run = list[0]
		}
		return run.State.IsFinal()
	})
	return run
}

// scheduled lists the runs of schedules that have ended, newest first.
func scheduled(h *reevetest.Host) (list []reeve.Run) {
	h.T.Helper()
	var page api.RunList
	h.Want(http.StatusOK, &page, "GET", "/api/runs?limit=200", nil)
	for _, r := range page.Runs {
		if (r.Reason == reeve.ReasonTimer || r.Reason == reeve.ReasonCatchup) && r.State.IsFinal() {
			list = append(list, r)
		}
	}
	return list
}

// acted gives the outcome of the call of act in a run.
func acted(h *reevetest.Host, run string) reeve.ResultInfo {
	h.T.Helper()
	var r reeve.Run
	h.Want(http.StatusOK, &r, "GET", "/api/runs/"+run, nil)
	list, calls := thread(h, r.AgentID, "run="+run), map[string]bool{}
	for _, m := range list {
		switch m.Kind {
		case reeve.Action:
			calls[m.ID] = actionInfo(h.T, m).Tool == "act"
		case reeve.ToolResult:
			if calls[m.ActionID] {
				return resultInfo(h.T, m)
			}
		default:
		}
	}
	h.T.Fatalf("run %s did not call act: %+v", run, list)
	return reeve.ResultInfo{}
}

// A schedule that an agent makes while it works for others has no right that one of them lacks: not one that they never
// had, not one that they got later, and not one that they have lost.
func TestG29_ASchedulesRunsHaveOnlyTheRightsOfAllWhoLedToIt(t *testing.T) {
	t.Parallel()
	const make = "schedule_create"
	for name, c := range map[string]struct {
		boss   []any // the tools of boss, whom chief has called
		late   func(*reevetest.Host, reeve.Agent)
		denied reeve.Code // empty means that it is done
	}{
		"all have it":      {[]any{"delegate", make, "act"}, nil, ""},
		"one never had it": {[]any{"delegate", make}, nil, reeve.NotFound},
		"one got it later": {[]any{"delegate", make},
			func(h *reevetest.Host, boss reeve.Agent) { attach(h, boss, "act") }, reeve.NotFound},
		"one lost it": {[]any{"delegate", make, "act"},
			func(h *reevetest.Host, boss reeve.Agent) { detach(h, boss, "act") }, reeve.NotFound},
		"one may not by now": {[]any{"delegate", make, "act"}, func(h *reevetest.Host, boss reeve.Agent) {
			patch(h, boss, object{"policy": object{"tools": object{"act": "deny"}}})
		}, reeve.Denied},
		"one is dormant": {[]any{"delegate", make, "act"},
			func(h *reevetest.Host, boss reeve.Agent) { patch(h, boss, object{"lifecycle": "dormant"}) }, reeve.Denied},
	} {
		engines := []string{"sqlite"}
		if c.denied == reeve.NotFound {
			engines = append(engines, "postgres")
		}
		for _, engine := range engines {
			t.Run(name+" on "+engine, func(t *testing.T) {
				t.Parallel()
				h, ran := laundering(t, onEngine(t, engine))
				persona(h, "chief", nil, "delegate", make, "act")
				boss := persona(h, "boss", nil, c.boss...)
				persona(h, "helper", nil, make, "act")
				over(h, speak(h, h.StartConversation("chief").ID, "go").ID)
				s := schedules(h)
				if len(s) != 1 || len(s[0].OnBehalfOf) != 2 {
					t.Fatalf("the schedule acts on behalf of nobody: %+v", s)
				}
				if c.late != nil {
					h.Want(http.StatusOK, nil, "PATCH", "/api/schedules/"+s[0].ID, object{"status": "paused"})
					eventually(t, "its runs to end", func() bool { return len(unended(h)) == 0 })
					c.late(h, boss)
					h.Want(http.StatusOK, nil, "PATCH", "/api/schedules/"+s[0].ID, object{"status": "active"})
				}
				n := len(scheduled(h))
				before := ran.count()
				info := acted(h, fired(h, n).ID)
				if info.Code != c.denied {
					t.Errorf("the scheduled run was told %+v", info)
				}
				if (ran.count() > before) != (c.denied == "") {
					t.Errorf("it was done %d times", ran.count())
				}
			})
		}
	}
}

// Nothing runs any more for an agent that is gone, and nothing changes for one that is stopped.
func TestG29_ASchedulesRunsEndWithThoseWhoLedToIt(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*reevetest.Host, reeve.Agent){
		"destroyed": func(h *reevetest.Host, a reeve.Agent) { patch(h, a, object{"lifecycle": "destroyed"}) },
		"removed": func(h *reevetest.Host, a reeve.Agent) {
			h.Want(http.StatusNoContent, nil, "DELETE", "/api/agents/"+a.ID, nil)
		},
		"stopped": func(h *reevetest.Host, a reeve.Agent) {
			h.Want(http.StatusNoContent, nil, "POST", "/api/stop", object{"agent": a.ID})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, ran := laundering(t, quick(t))
			boss := persona(h, "boss", nil, "delegate", "schedule_create", "act")
			persona(h, "helper", nil, "schedule_create", "act")
			over(h, speak(h, h.StartConversation("boss").ID, "go").ID)
			s := schedules(h)
			h.Want(http.StatusOK, nil, "PATCH", "/api/schedules/"+s[0].ID, object{"status": "paused"})
			eventually(t, "its runs to end", func() bool { return len(unended(h)) == 0 })
			end(h, boss)
			before, n := ran.count(), len(scheduled(h))
			h.Want(http.StatusOK, nil, "PATCH", "/api/schedules/"+s[0].ID, object{"status": "active"})
			fired(h, n)
			if ran.count() != before {
				t.Error("it was done")
			}
		})
	}
}

// Rights do not come back by another way through time: a schedule that a scheduled run makes, a schedule that is
// changed while its agent works for another, a schedule that an agent tells another agent's to follow, a turn with
// fewer tools.
func TestG29_NoDetourWidensASchedule(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, cfg host.Config) {
		t.Run("made by a scheduled run", func(t *testing.T) {
			t.Parallel()
			ran := &counter{}
			cfg.MinInterval = host.Duration(time.Second)
			cfg.Models.Default, cfg.Models.Script = "rehearsal", scriptFile(t,
				strings.Replace(delegatedSchedules,
					`{said: plan}, calls: [{name: schedule_create, args: {goal: "act now"`,
					`{said: plan}, calls: [{name: schedule_create, args: {goal: "again later"`, 1))
			h := reevetest.Run(t, cfg, tool("act", reeve.Keyed, ran.handle))
			persona(h, "boss", nil, "delegate", "schedule_create")
			persona(h, "helper", nil, "schedule_create", "act")
			over(h, speak(h, h.StartConversation("boss").ID, "go").ID)
			var second reeve.Run
			eventually(t, "a run of a schedule of a scheduled run", func() bool {
				for _, r := range scheduled(h) {
					if r.Input == "act now" {
						second = r
					}
				}
				return second.ID != ""
			})
			if info := acted(h, second.ID); info.Code != reeve.NotFound || ran.count() != 0 {
				t.Errorf("%+v, done %d times", info, ran.count())
			}
		})
	})
	edit := func(t *testing.T, owner string) (*reevetest.Host, *counter, api.Schedule) {
		t.Helper()
		ran := &counter{}
		cfg := quick(t)
		cfg.MinInterval = host.Duration(time.Second)
		cfg.Models.Default, cfg.Models.Script = "rehearsal", scriptFile(t, delegatedSchedules)
		h := reevetest.Run(t, cfg, tool("act", reeve.Keyed, ran.handle))
		persona(h, "boss", nil, "delegate", "schedule_edit")
		persona(h, "helper", nil, "schedule_edit", "act")
		persona(h, "clerk", nil, "schedule_edit")
		var s api.Schedule
		h.Want(http.StatusCreated, &s, "POST", "/api/schedules", object{"agent": owner, "name": "it", "goal": "rest",
			"cadence_type": "interval", "cadence_value": "1h"})
		return h, ran, s
	}
	check := func(t *testing.T, h *reevetest.Host, ran *counter, s api.Schedule) {
		t.Helper()
		h.Want(http.StatusOK, nil, "PATCH", "/api/schedules/"+s.ID,
			object{"cadence_type": "interval", "cadence_value": "1s"})
		if info := acted(h, fired(h, 0).ID); info.Code != reeve.NotFound || ran.count() != 0 {
			t.Errorf("%+v, done %d times", info, ran.count())
		}
	}
	t.Run("changed by another agent", func(t *testing.T) {
		t.Parallel()
		h, ran, s := edit(t, "helper")
		h.Call("clerk", "schedule_edit", object{"schedule_id": s.ID, "goal": "act now"})
		check(t, h, ran, s)
	})
	t.Run("changed by its own agent", func(t *testing.T) {
		t.Parallel()
		h, ran, s := edit(t, "helper")
		h.Call("helper", "schedule_edit", object{"schedule_id": s.ID, "goal": "act now"})
		h.Want(http.StatusOK, nil, "PATCH", "/api/schedules/"+s.ID,
			object{"cadence_type": "interval", "cadence_value": "1s"})
		if info := acted(h, fired(h, 0).ID); info.Code != "" || ran.count() == 0 {
			t.Errorf("%+v: it lost its own right", info)
		}
	})
	t.Run("made in a turn with fewer tools", func(t *testing.T) {
		t.Parallel()
		h, ran := laundering(t, quick(t))
		persona(h, "helper", nil, "schedule_create", "act")
		turn := speakWith(h, h.StartConversation("helper").
			ID, object{"content": "plan", "tools": []string{"schedule_create"}})
		over(h, turn.ID)
		if info := acted(h, fired(h, 0).ID); info.Code != reeve.NotFound || ran.count() != 0 {
			t.Errorf("%+v, done %d times", info, ran.count())
		}
	})
}

// A script that the planner writes for an agent has only the rights of that agent, also once a person has activated it,
// and after a repair; so have the schedule of the script and a trial of it. What a person saves has all rights of the
// automation.
func TestG29_AScriptHasOnlyTheRightsOfThoseItWasWrittenFor(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, cfg host.Config) {
		t.Parallel()
		a, d := planning(t, cfg)
		a.plan("hello") // makes the planner and its kind
		persona(a.Host, "boss", object{"kind": "planner"}, "delegate", "scripts_save", "scripts_schedule",
			"scripts_eval", "mail_list")
		c := a.StartConversation("boss")
		tell := func(said string) string {
			t.Helper()
			turn := speak(a.Host, c.ID, "delegate "+string(mustJSON(object{"agent": "planner", "input": said})))
			a.RunUntilIdle(t.Context())
			return detail(a.Host, turn.ID).Output
		}
		const source = `if (input) Items.withItem("x", "X", async () => { await Mail.send({to: "ann"}); })`
		if out := tell("scripts_save " +
			string(mustJSON(object{"automation": "letters", "source": source, "comment": "sends"}))); !strings.Contains(
			out, "1.0") {
			t.Fatalf("saving: %s", out)
		}
		if out := tell(scheduleSeven); !strings.Contains(out, "sch_") {
			t.Fatalf("scheduling: %s", out)
		}
		if s := schedules(a.Host); len(s) != 1 || len(s[0].OnBehalfOf) != 1 {
			t.Errorf("the schedule: %+v", s)
		}
		if out := tell("scripts_eval " +
			string(mustJSON(object{"automation": "letters", "source": source, "input": "1"}))); strings.Contains(out,
			`"tool":"mail_send"`) {
			t.Errorf("the trial: %s", out)
		}
		a.start(call{"type": "test", "version": "1.0"})
		a.activate("1.0")
		run := a.start(call{"input": 1})
		if run.Run.State != reeve.RunFailed || d.String() != "map[]" {
			t.Errorf("it is %s and did %s", run.Run.State, d)
		}
		a.save(source, false)
		if run := a.start(call{"input": 1}); run.Run.State != reeve.RunCompleted || d.String() != "map[ann:1]" {
			t.Errorf("a person's version is %s and did %s: %s", run.Run.State, d, run.Run.Message)
		}
	})
}

func schedules(h *reevetest.Host) []reeve.Timer {
	h.T.Helper()
	var list api.ScheduleList
	h.Want(http.StatusOK, &list, "GET", "/api/schedules", nil)
	return list.Schedules
}

func unended(h *reevetest.Host) (list []reeve.Run) {
	h.T.Helper()
	var page api.RunList
	h.Want(http.StatusOK, &page, "GET", "/api/runs?limit=200", nil)
	for _, r := range page.Runs {
		if !r.State.IsFinal() {
			list = append(list, r)
		}
	}
	return list
}

func attach(h *reevetest.Host, a reeve.Agent, tool string) {
	h.T.Helper()
	h.Want(http.StatusCreated, nil, "POST", "/api/agents/"+a.ID+"/tools", object{"tool_id": tool})
}

func detach(h *reevetest.Host, a reeve.Agent, tool string) {
	h.T.Helper()
	h.Want(http.StatusNoContent, nil, "DELETE", "/api/agents/"+a.ID+"/tools/"+tool, nil)
}
