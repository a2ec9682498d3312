package wake_test

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/test/kit"
)

// Budgets of the operator apply to scheduled runs and appear in no schema. The row of the run shows its cost.
func TestO18_BudgetsBindScheduledRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := kit.NewBubbleHost(t, host.Config{RunCalls: 3})
		a := b.NewAgent("aide", kit.Object{"config": kit.RehearsalConfig("all", kit.WriteFileStep("/1", "1"),
			kit.Object{"tool": "read_file", "args": kit.Object{"path": "/1"}}, kit.WriteFileStep("/2", "2"),
			kit.WriteFileStep("/3", "3"),
			kit.WriteFileStep("/4", "4"))})
		b.CallAs("ann", a.ID, "list_files", kit.Object{}) // what is known of the workspace is that it has no budgets
		s := b.NewSchedule("aide", kit.Object{"cadence_type": "interval", "cadence_value": "1h"})
		b.AdvanceBy(2*time.Hour, time.Hour)
		runs := b.ListRuns("")
		if len(runs) != 2 {
			t.Fatalf("%d runs", len(runs))
		}
		for _, r := range runs {
			if r.State != reeve.RunFailed || r.Code != reeve.BudgetExceeded || r.Spent.Calls != 3 ||
				r.Spent.Millis == 0 {
				t.Errorf("%+v", r)
			}
		}
		if got := b.GetSchedule(s.ID); got.Failures != 2 {
			t.Errorf("%+v", got.Timer)
		}
		b.AttachTools("aide", "schedule_runs", "write_file", "read_file")
		history := kit.DecodeResult[struct {
			Runs []struct {
				Moves int
				Spent reeve.Amount
			}
		}](t, b.CallAs("owner", a.ID, "schedule_runs", kit.Object{"schedule_id": s.ID}))
		// a rehearsal asks no model
		if len(history.Runs) != 2 || history.Runs[0].Spent.Calls != 3 || history.Runs[0].Moves != 0 {
			t.Errorf("the history shows %+v", history)
		}
		var ops api.OperationList
		b.Want(200, &ops, "GET", "/api/operations?limit=100", nil)
		if len(ops.Operations) != 4 { // two writes in each
			t.Errorf("%d operations", len(ops.Operations))
		}
		var budgets struct{ Budgets []reeve.Budget }
		b.Want(200, &budgets, "GET", "/api/budgets", nil)
		if len(budgets.Budgets) != 0 {
			t.Errorf("budgets of runs that ended: %+v", budgets)
		}
		// The budget of scheduled runs does not apply to a run that a person starts.
		b.Want(201, nil, "POST", "/api/agents/aide/wake", kit.Object{})
		b.StepAll()
		if r := b.ListRuns("")[0]; r.State != reeve.RunCompleted || r.Spent.Calls != 5 {
			t.Errorf("by hand: %+v", r)
		}
		for _, id := range append(scheduleTools, "") {
			var text json.RawMessage
			b.Want(200, &text, "GET", strings.TrimSuffix("/api/tools/"+id, "/"), nil)
			for _, word := range []string{"budget", "run_calls", "min_interval", "per_user", "alert_after"} {
				if strings.Contains(string(text), word) && id != "" {
					t.Errorf("%s speaks of %s", id, word)
				}
			}
		}
		b.AttachTools("aide", "schedule_create")
		if res := b.CallAs("ann", a.ID, "schedule_create", kit.Object{"goal": "g", "cadence_type": "interval",
			"cadence_value": "1h", "budget": 100}); !res.IsError {
			t.Errorf("a model set a budget: %+v", res)
		}
	})
}
