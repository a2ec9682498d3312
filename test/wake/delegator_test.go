package wake_test

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
	"reeve/test/kit"
)

// delegatedSchedules is a model script in which chief calls boss, boss calls helper, and helper creates or changes
// schedules. Scheduled runs call the tool act.
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

// runDelegatedSchedules runs a host on which agents create schedules for each other, with a count of the calls of act.
func runDelegatedSchedules(t *testing.T, cfg host.Config) (*reevetest.Host, *kit.Counter) {
	t.Helper()
	ran := &kit.Counter{}
	cfg.MinInterval = host.Duration(time.Second)
	cfg.Models.Default, cfg.Models.Script = "rehearsal", kit.WriteScript(t, delegatedSchedules)
	return reevetest.Run(t, cfg, kit.Tool("act", reeve.Keyed, ran.Handle)), ran
}

// engineConfig returns a FastConfig for one of the databases.
func engineConfig(t *testing.T, engine string) host.Config {
	t.Helper()
	cfg := kit.FastConfig(t)
	if engine == "postgres" {
		cfg.Database, cfg.SecretKey = storetest.PostgresURL(t), strings.Repeat("ab", 32)
	}
	return cfg
}

// waitForScheduledRun waits for the end of a scheduled run after the first n, and returns it.
func waitForScheduledRun(h *reevetest.Host, after int) (run reeve.Run) {
	h.T.Helper()
	kit.Eventually(h.T, "a scheduled run", func() bool {
		list := listScheduledRuns(h)
		if len(list) > after {
			run = list[0]
		}
		return run.State.IsFinal()
	})
	return run
}

// listScheduledRuns returns the scheduled runs that have ended, newest first.
func listScheduledRuns(h *reevetest.Host) (list []reeve.Run) {
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

// getActResult returns the result of the call of act in a run.
func getActResult(h *reevetest.Host, run string) reeve.ResultInfo {
	h.T.Helper()
	var r reeve.Run
	h.Want(http.StatusOK, &r, "GET", "/api/runs/"+run, nil)
	list, calls := kit.ListThread(h, r.AgentID, "run="+run), map[string]bool{}
	for _, m := range list {
		switch m.Kind {
		case reeve.Action:
			calls[m.ID] = kit.ActionInfo(h.T, m).Tool == "act"
		case reeve.ToolResult:
			if calls[m.ActionID] {
				return kit.ResultInfo(h.T, m)
			}
		default:
		}
	}
	h.T.Fatalf("run %s did not call act: %+v", run, list)
	return reeve.ResultInfo{}
}

// A schedule that an agent creates while it works for others has no right that one of them lacks: none that they never
// had, got later, or lost.
func TestG29_ScheduledRunHasTheRightsOfAllDelegators(t *testing.T) {
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
			func(h *reevetest.Host, boss reeve.Agent) { attachTool(h, boss, "act") }, reeve.NotFound},
		"one lost it": {[]any{"delegate", make, "act"},
			func(h *reevetest.Host, boss reeve.Agent) { detachTool(h, boss, "act") }, reeve.NotFound},
		"one may not by now": {[]any{"delegate", make, "act"}, func(h *reevetest.Host, boss reeve.Agent) {
			kit.UpdateAgent(h, boss, kit.Object{"policy": kit.Object{"tools": kit.Object{"act": "deny"}}})
		}, reeve.Denied},
		"one is dormant": {[]any{"delegate", make, "act"},
			func(h *reevetest.Host, boss reeve.Agent) {
				kit.UpdateAgent(h, boss, kit.Object{"lifecycle": "dormant"})
			},
			reeve.Denied},
	} {
		engines := []string{"sqlite"}
		if c.denied == reeve.NotFound {
			engines = append(engines, "postgres")
		}
		for _, engine := range engines {
			t.Run(name+" on "+engine, func(t *testing.T) {
				t.Parallel()
				h, ran := runDelegatedSchedules(t, engineConfig(t, engine))
				kit.NewPersona(h, "chief", nil, "delegate", make, "act")
				boss := kit.NewPersona(h, "boss", nil, c.boss...)
				kit.NewPersona(h, "helper", nil, make, "act")
				kit.WaitForTurn(h, kit.StartTurn(h, h.StartConversation("chief").ID, "go").ID)
				s := kit.ListSchedules(h)
				if len(s) != 1 || len(s[0].OnBehalfOf) != 2 {
					t.Fatalf("the schedule acts on behalf of nobody: %+v", s)
				}
				if c.late != nil {
					h.Want(http.StatusOK, nil, "PATCH", "/api/schedules/"+s[0].ID, kit.Object{"status": "paused"})
					kit.Eventually(t, "its runs to end", func() bool { return len(listUnendedRuns(h)) == 0 })
					c.late(h, boss)
					h.Want(http.StatusOK, nil, "PATCH", "/api/schedules/"+s[0].ID, kit.Object{"status": "active"})
				}
				n := len(listScheduledRuns(h))
				before := ran.Count()
				info := getActResult(h, waitForScheduledRun(h, n).ID)
				if info.Code != c.denied {
					t.Errorf("the scheduled run was told %+v", info)
				}
				if (ran.Count() > before) != (c.denied == "") {
					t.Errorf("it was done %d times", ran.Count())
				}
			})
		}
	}
}

// Nothing runs for a removed agent, and nothing changes for a stopped one.
func TestG29_ScheduledRunEndsWithItsDelegators(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*reevetest.Host, reeve.Agent){
		"destroyed": func(h *reevetest.Host, a reeve.Agent) {
			kit.UpdateAgent(h, a, kit.Object{"lifecycle": "destroyed"})
		},
		"removed": func(h *reevetest.Host, a reeve.Agent) {
			h.Want(http.StatusNoContent, nil, "DELETE", "/api/agents/"+a.ID, nil)
		},
		"stopped": func(h *reevetest.Host, a reeve.Agent) {
			h.Want(http.StatusNoContent, nil, "POST", "/api/stop", kit.Object{"agent": a.ID})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, ran := runDelegatedSchedules(t, kit.FastConfig(t))
			boss := kit.NewPersona(h, "boss", nil, "delegate", "schedule_create", "act")
			kit.NewPersona(h, "helper", nil, "schedule_create", "act")
			kit.WaitForTurn(h, kit.StartTurn(h, h.StartConversation("boss").ID, "go").ID)
			s := kit.ListSchedules(h)
			h.Want(http.StatusOK, nil, "PATCH", "/api/schedules/"+s[0].ID, kit.Object{"status": "paused"})
			kit.Eventually(t, "its runs to end", func() bool { return len(listUnendedRuns(h)) == 0 })
			end(h, boss)
			before, n := ran.Count(), len(listScheduledRuns(h))
			h.Want(http.StatusOK, nil, "PATCH", "/api/schedules/"+s[0].ID, kit.Object{"status": "active"})
			waitForScheduledRun(h, n)
			if ran.Count() != before {
				t.Error("it was done")
			}
		})
	}
}

// Rights do not return on a detour: by a schedule that a scheduled run creates, a schedule that changes while its agent
// works for another, a schedule for another agent, or a turn with fewer tools.
func TestG29_ScheduleGainsNoRightsIndirectly(t *testing.T) {
	t.Parallel()
	kit.OnBothDatabases(t, func(t *testing.T, cfg host.Config) {
		t.Run("made by a scheduled run", func(t *testing.T) {
			t.Parallel()
			ran := &kit.Counter{}
			cfg.MinInterval = host.Duration(time.Second)
			cfg.Models.Default, cfg.Models.Script = "rehearsal", kit.WriteScript(t,
				strings.Replace(delegatedSchedules,
					`{said: plan}, calls: [{name: schedule_create, args: {goal: "act now"`,
					`{said: plan}, calls: [{name: schedule_create, args: {goal: "again later"`, 1))
			h := reevetest.Run(t, cfg, kit.Tool("act", reeve.Keyed, ran.Handle))
			kit.NewPersona(h, "boss", nil, "delegate", "schedule_create")
			// The answers of the script depend on words that outcomes of earlier runs contain.
			kit.NewPersona(h, "helper", kit.Object{"config": kit.Object{"instructions": "I am helper.", "recent_runs": 0}},
				"schedule_create", "act")
			kit.WaitForTurn(h, kit.StartTurn(h, h.StartConversation("boss").ID, "go").ID)
			var second reeve.Run
			kit.Eventually(t, "a run of a schedule of a scheduled run", func() bool {
				for _, r := range listScheduledRuns(h) {
					if r.Input == "act now" {
						second = r
					}
				}
				return second.ID != ""
			})
			if info := getActResult(h, second.ID); info.Code != reeve.NotFound || ran.Count() != 0 {
				t.Errorf("%+v, done %d times", info, ran.Count())
			}
		})
	})
	edit := func(t *testing.T, owner string) (*reevetest.Host, *kit.Counter, api.Schedule) {
		t.Helper()
		ran := &kit.Counter{}
		cfg := kit.FastConfig(t)
		cfg.MinInterval = host.Duration(time.Second)
		cfg.Models.Default, cfg.Models.Script = "rehearsal", kit.WriteScript(t, delegatedSchedules)
		h := reevetest.Run(t, cfg, kit.Tool("act", reeve.Keyed, ran.Handle))
		kit.NewPersona(h, "boss", nil, "delegate", "schedule_edit")
		kit.NewPersona(h, "helper", nil, "schedule_edit", "act")
		kit.NewPersona(h, "clerk", nil, "schedule_edit")
		var s api.Schedule
		h.Want(http.StatusCreated, &s, "POST", "/api/schedules", kit.Object{"agent": owner, "name": "it",
			"goal":         "rest",
			"cadence_type": "interval", "cadence_value": "1h"})
		return h, ran, s
	}
	check := func(t *testing.T, h *reevetest.Host, ran *kit.Counter, s api.Schedule) {
		t.Helper()
		h.Want(http.StatusOK, nil, "PATCH", "/api/schedules/"+s.ID,
			kit.Object{"cadence_type": "interval", "cadence_value": "1s"})
		if info := getActResult(h, waitForScheduledRun(h, 0).ID); info.Code != reeve.NotFound || ran.Count() != 0 {
			t.Errorf("%+v, done %d times", info, ran.Count())
		}
	}
	t.Run("changed by another agent", func(t *testing.T) {
		t.Parallel()
		h, ran, s := edit(t, "helper")
		h.Call("clerk", "schedule_edit", kit.Object{"schedule_id": s.ID, "goal": "act now"})
		check(t, h, ran, s)
	})
	t.Run("changed by its own agent", func(t *testing.T) {
		t.Parallel()
		h, ran, s := edit(t, "helper")
		h.Call("helper", "schedule_edit", kit.Object{"schedule_id": s.ID, "goal": "act now"})
		h.Want(http.StatusOK, nil, "PATCH", "/api/schedules/"+s.ID,
			kit.Object{"cadence_type": "interval", "cadence_value": "1s"})
		if info := getActResult(h, waitForScheduledRun(h, 0).ID); info.Code != "" || ran.Count() == 0 {
			t.Errorf("%+v: it lost its own right", info)
		}
	})
	t.Run("made in a turn with fewer tools", func(t *testing.T) {
		t.Parallel()
		h, ran := runDelegatedSchedules(t, kit.FastConfig(t))
		kit.NewPersona(h, "helper", nil, "schedule_create", "act")
		turn := kit.StartTurnWith(h, h.StartConversation("helper").
			ID, kit.Object{"content": "plan", "tools": []string{"schedule_create"}})
		kit.WaitForTurn(h, turn.ID)
		if info := getActResult(h, waitForScheduledRun(h, 0).ID); info.Code != reeve.NotFound || ran.Count() != 0 {
			t.Errorf("%+v, done %d times", info, ran.Count())
		}
	})
}

func listUnendedRuns(h *reevetest.Host) (list []reeve.Run) {
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

func attachTool(h *reevetest.Host, a reeve.Agent, tool string) {
	h.T.Helper()
	h.Want(http.StatusCreated, nil, "POST", "/api/agents/"+a.ID+"/tools", kit.Object{"tool_id": tool})
}

func detachTool(h *reevetest.Host, a reeve.Agent, tool string) {
	h.T.Helper()
	h.Want(http.StatusNoContent, nil, "DELETE", "/api/agents/"+a.ID+"/tools/"+tool, nil)
}
