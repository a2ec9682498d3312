package automation_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/reevetest"
	"reeve/test/kit"
)

// The server is down for three days of an hourly schedule. The automation runs once for all of them, and its run says
// so. The test moves the next time in the row.
func TestK26_AMissedScheduleIsOneCatchUp(t *testing.T) {
	t.Parallel()
	d := newEffectLog()
	cfg := host.Config{Dir: t.TempDir()}
	h := reevetest.StartWith(t, cfg, d.tools()...)
	a := newAutomation(t, h, "mailer",
		`await Items.withItem('for ' + input, 'I', async (ctx) => { if (!ctx.item.isDone) await Mail.send({ to: 'you' }) })`)
	var s api.Schedule
	h.Want(201, &s, "POST", "/api/schedules", kit.Call{"agent": "mailer", "name": "hourly", "goal": "hour",
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
	runs := kit.ListAutomationRuns(a)
	kit.Equal(t, kit.JoinValues(len(runs), runs[0].Run.Reason, runs[0].Run.State, d),
		"1 recovery_catchup completed map[you:1]",
		"one run for all that was missed")
	a.Want(200, &s, "GET", "/api/schedules/"+s.ID, nil)
	kit.Equal(t, kit.JoinValues(s.Missed >= 70, s.State, s.NextAt.After(reeve.Now())), "true active true",
		"the schedule")
	a.RunUntilIdle(t.Context())
	kit.Equal(t, len(kit.ListAutomationRuns(a)), 1, "runs")
}

// Two schedules, a change and a person wake one automation at once. All are served, one after the other.
func TestK26_Triggers(t *testing.T) {
	t.Parallel()
	d := newEffectLog()
	emits := kit.Tool("emits", reeve.Local, func(_ context.Context, inv *reeve.Invocation) (any, error) {
		inv.Emit(reeve.SemanticKey, "LETTER")
		return "emitted", nil
	})
	h := reevetest.Run(t, kit.FastConfig(t), append(d.tools(), emits)...)
	a := newAutomation(t, h, "mailer",
		`await Items.withItem('for ' + input, 'I', async () => { await Mail.send({ to: String(input) }); await Mail.list() })`)
	other := h.Agent("other", "emits")
	h.Want(201, nil, "POST", "/api/agents/mailer/subscriptions", kit.Call{"class": "key", "name": "LETTER"})
	soon := reeve.Now().Add(3 * time.Second).Format(time.RFC3339Nano)
	for _, goal := range []string{"first", "second"} {
		h.Want(201, nil, "POST", "/api/schedules", kit.Call{"agent": "mailer", "name": goal, "goal": goal,
			"cadence_type": "once", "cadence_value": soon})
	}
	h.Call(other.ID, "emits", kit.Call{})
	h.Want(201, nil, "POST", a.Path("/runs"), kit.Call{"input": "hand"})
	kit.Eventually(t, "all four are served", func() bool { return a.ListItems("status=done").Total == 4 })
	kit.Equal(t, d.String(), "map[first:1 hand:1 null:1 second:1]", "what was done")
	var runs []reeve.AutomationRun
	kit.Eventually(t, "all have ended", func() bool {
		runs = kit.ListAutomationRuns(a)
		for _, r := range runs {
			if r.Run.FinishedAt == nil {
				return false
			}
		}
		return true
	})
	for i, r := range runs[1:] { // newest first
		if later := runs[i].Run; later.StartedAt.Before(*r.Run.FinishedAt) {
			t.Errorf("run %s began at %v, before run %s had ended at %v", later.ID, later.StartedAt, r.Run.ID,
				r.Run.FinishedAt)
		}
	}
}
