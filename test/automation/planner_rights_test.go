package automation_test

import (
	"net/http"
	"strings"
	"testing"

	"reeve"
	"reeve/host"
	"reeve/test/kit"
)

// A script that the planner writes for an agent has only the rights of that agent, also after a person activated it and
// after a repair; so do its schedule and its trial runs. A version that a person saves has all rights of the
// automation.
func TestG29_PlannedScriptHasTheRightsOfItsRequester(t *testing.T) {
	t.Parallel()
	kit.OnBothDatabases(t, func(t *testing.T, cfg host.Config) {
		t.Parallel()
		a, d := newPlannedAutomation(t, cfg)
		a.Plan("hello") // makes the planner and its kind
		var planner reeve.Agent
		a.Want(http.StatusOK, &planner, "GET", "/api/agents/planner", nil)
		if planner.Kind != "script_planner" { // the kind planner is for agents that plan a day
			t.Errorf("the planner is of kind %s", planner.Kind)
		}
		kit.NewPersona(a.Host, "boss", kit.Object{"kind": "script_planner"}, "delegate", "scripts_save", "scripts_schedule",
			"scripts_eval", "mail_list")
		c := a.StartConversation("boss")
		tell := func(said string) string {
			t.Helper()
			turn := kit.StartTurn(a.Host, c.ID,
				"delegate "+string(kit.MustJSON(kit.Object{"agent": "planner", "input": said})))
			a.RunUntilIdle(t.Context())
			return kit.GetTurn(a.Host, turn.ID).Output
		}
		const source = `if (input) Items.withItem("x", "X", async () => { await Mail.send({to: "ann"}); })`
		if out := tell("scripts_save " +
			string(kit.MustJSON(kit.Object{"automation": "letters", "source": source,
				"comment": "sends"}))); !strings.Contains(
			out, "1.0") {
			t.Fatalf("saving: %s", out)
		}
		if out := tell(scheduleSeven); !strings.Contains(out, "sch_") {
			t.Fatalf("scheduling: %s", out)
		}
		if s := kit.ListSchedules(a.Host); len(s) != 1 || len(s[0].OnBehalfOf) != 1 {
			t.Errorf("the schedule: %+v", s)
		}
		if out := tell("scripts_eval " +
			string(kit.MustJSON(kit.Object{"automation": "letters", "source": source,
				"input": "1"}))); strings.Contains(out,
			`"tool":"mail_send"`) {
			t.Errorf("the trial: %s", out)
		}
		a.StartRun(kit.Call{"type": "test", "version": "1.0"})
		a.Activate("1.0")
		run := a.StartRun(kit.Call{"input": 1})
		if run.Run.State != reeve.RunFailed || d.String() != "map[]" {
			t.Errorf("it is %s and did %s", run.Run.State, d)
		}
		a.SaveVersion(source, false)
		if run := a.StartRun(kit.Call{"input": 1}); run.Run.State != reeve.RunCompleted || d.String() != "map[ann:1]" {
			t.Errorf("a person's version is %s and did %s: %s", run.Run.State, d, run.Run.Message)
		}
	})
}
