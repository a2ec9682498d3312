package host_test

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"reeve"
	"reeve/api"
)

// tells talks with the planner, which does what it is told, and gives what it answers.
func (a *auto) tells() func(said string) string {
	a.t.Helper()
	a.plan("hello")
	c := a.StartConversation("planner")
	return func(said string) string {
		a.t.Helper()
		var turn reeve.Turn
		a.Want(201, &turn, "POST", "/api/conversations/"+c.ID+"/turns", call{"content": said})
		a.RunUntilIdle(a.t.Context())
		a.Want(200, &turn, "GET", "/api/turns/"+turn.ID, nil)
		return turn.Output
	}
}

const (
	scheduleSeven = `scripts_schedule {"automation": "letters", "cadence_type": "cron", "cadence_value": "0 7 * * *"}`
	scheduleEight = `scripts_schedule {"automation": "letters", "cadence_type": "cron", "cadence_value": "0 8 * * *"}`
)

// written has the planner write the next version, which is tried.
func (a *auto) written(tell func(string) string, version string) {
	a.t.Helper()
	if out := tell(`scripts_save {"automation": "letters", "source": "'` + version +
		`'", "comment": "says it"}`); !strings.Contains(out, `"version":"`+version+`"`) {
		a.t.Fatalf("saving: %s", out)
	}
	a.start(call{"type": "test", "version": version})
}

func (a *auto) activate(version string) {
	a.t.Helper()
	a.Want(200, nil, "POST", a.at("/activate"), call{"version": version})
}

// schedules tells when the automation is to run, and what of it holds.
func (a *auto) schedules() string {
	a.t.Helper()
	var l api.ScheduleList
	a.Want(200, &l, "GET", "/api/schedules", nil)
	list := make([]string, len(l.Schedules))
	for i, s := range l.Schedules {
		list[i] = spoken(s.Value, s.State, s.NextAt != nil, s.UserID)
	}
	return strings.Join(list, "; ")
}

// TestK27_PlansAreFoundAmongManyRepairs: however many repairs there were since, the maintainer is told what the person
// asked for, the planner schedules its version, and the schedule of an earlier plan ends.
func TestK27_PlansAreFoundAmongManyRepairs(t *testing.T) {
	t.Parallel()
	a, _ := planning(t, quick(t))
	tell := a.tells()
	a.written(tell, "1.0")
	tell(scheduleSeven)
	a.activate("1.0")
	db, err := sql.Open("sqlite", "file:"+filepath.Join(a.Dir(), "reeve.db")+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 250)
		INSERT INTO script_jobs (id, workspace_id, kind, agent_id, worker_id, script_id, run_id, run_key, user_id, request, state, question, talk, result_id, timer_id, message, tries, created_at, closed_at)
		SELECT 'job_z' || i, workspace_id, 'repair', agent_id, '', 'scr_' || i, '', 'key_' || i, '', 'mend it', 'done', '', '', '', '', '', 0, 1, 1 FROM script_jobs, n WHERE kind = 'plan' AND timer_id <> ''`); err != nil {
		t.Fatal(err)
	}
	a.written(tell, "2.0")
	if out := tell(scheduleEight); !strings.Contains(out, "sch_") {
		t.Errorf("scheduling: %s", out)
	}
	a.activate("2.0")
	equal(t, a.schedules(), "0 7 * * * completed false owner; 0 8 * * * active true owner", "the schedules")
	a.save("oops()", false)
	a.fails(reeve.LogicFailure)
	var k reeve.ScriptJob
	a.Want(200, &k, "GET", "/api/script-jobs/"+a.get().Failure.ScriptJobID, nil)
	if !strings.Contains(k.Request, "The user's request: says it") {
		t.Errorf("the maintainer was told %s", k.Request)
	}
}

// TestK27_GoingBackTakesTheScheduleAlong: the schedule of a plan ends when another is activated, and begins again with
// its version.
func TestK27_GoingBackTakesTheScheduleAlong(t *testing.T) {
	t.Parallel()
	a, _ := planning(t, quick(t))
	tell := a.tells()
	a.written(tell, "1.0")
	tell(scheduleSeven)
	a.activate("1.0")
	a.written(tell, "2.0")
	tell(scheduleEight)
	equal(t, a.schedules(), "0 7 * * * active true owner; 0 8 * * * paused false owner", "before 2.0")
	for range 2 {
		a.activate("2.0")
		equal(t, a.schedules(), "0 7 * * * completed false owner; 0 8 * * * active true owner", "with 2.0")
		a.activate("1.0")
		equal(t, a.schedules(), "0 7 * * * active true owner; 0 8 * * * completed false owner", "with 1.0 again")
	}
}

// TestK27_AnotherTimeForWhatRuns: the planner gives an active version another time, or its first, and it holds at once;
// the schedule is whose word it was. What nobody has activated waits, and so does what a person has paused.
func TestK27_AnotherTimeForWhatRuns(t *testing.T) {
	t.Parallel()
	a, _ := planning(t, quick(t))
	tell := a.tells()
	a.written(tell, "1.0")
	a.activate("1.0")
	tell(scheduleSeven)
	equal(t, a.schedules(), "0 7 * * * active true owner", "its first schedule")
	tell(scheduleEight)
	equal(t, a.schedules(), "0 8 * * * active true owner", "at another time")
	a.save("'by hand'", false)
	tell(scheduleSeven)
	equal(t, a.schedules(), "0 7 * * * active true owner", "with a version of a person's")
	a.written(tell, "3.0")
	tell(scheduleEight)
	equal(t, a.schedules(), "0 7 * * * active true owner; 0 8 * * * paused false owner",
		"of a version that nobody has activated")
	tell(scheduleSeven)
	equal(t, a.schedules(), "0 7 * * * active true owner; 0 7 * * * paused false owner",
		"of that version, at another time")
	a.activate("3.0")
	equal(t, a.schedules(), "0 7 * * * completed false owner; 0 7 * * * active true owner", "activated")
	a.written(tell, "4.0")
	a.activate("4.0")
	tell(scheduleEight)
	equal(t, a.schedules(), "0 7 * * * completed false owner; 0 7 * * * completed false owner; 0 8 * * * active true "+
		"owner", "in place of that of an earlier plan")
	var l api.ScheduleList
	a.Want(200, &l, "GET", "/api/schedules", nil)
	a.Want(200, nil, "PATCH", "/api/schedules/"+l.Schedules[2].ID, call{"status": "paused"})
	tell(scheduleSeven)
	equal(t, a.schedules(), "0 7 * * * completed false owner; 0 7 * * * completed false owner; 0 7 * * * paused "+
		"false owner", "that a person has paused")
	var made api.NewToken
	a.Want(201, &made, "POST", "/api/tokens", api.TokenRequest{Name: "bob", User: "bob", Role: reeve.Member})
	bob := []string{"Authorization", "Bearer " + made.Token}
	var c reeve.Conversation
	a.Want(201, &c, "POST", "/api/conversations", call{"agent": "planner"}, bob...)
	a.Want(201, nil, "POST", "/api/conversations/"+c.ID+"/turns", call{"content": scheduleEight}, bob...)
	a.RunUntilIdle(t.Context())
	a.Want(200, &l, "GET", "/api/schedules", nil, bob...)
	equal(t, spoken(l.Total, l.Schedules[0].Value, l.Schedules[0].UserID), "1 0 8 * * * bob",
		"by another person's word")
}
