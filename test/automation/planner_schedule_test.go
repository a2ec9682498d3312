package automation_test

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/test/kit"
)

// After any number of repairs the maintainer gets the person's request, the planner schedules its version, and the
// schedule of an earlier plan ends.
func TestK27_PlansAreFoundAmongManyRepairs(t *testing.T) {
	t.Parallel()
	a, _ := newPlannedAutomation(t, kit.FastConfig(t))
	tell := a.TalkToPlanner()
	a.SaveByPlanner(tell, "1.0")
	tell(scheduleSeven)
	a.Activate("1.0")
	db, err := sql.Open("sqlite", "file:"+filepath.Join(a.Dir(), "reeve.db")+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 250)
		INSERT INTO script_jobs (id, workspace_id, kind, agent_id, worker_id, script_id, run_id, run_key, user_id, request, state, question, talk, result_id, timer_id, message, tries, created_at, closed_at)
		SELECT 'ern_z' || i, workspace_id, 'repair', agent_id, '', 'scr_' || i, '', 'key_' || i, '', 'mend it', 'done', '', '', '', '', '', 0, 1, 1 FROM script_jobs, n WHERE kind = 'plan' AND timer_id <> ''`); err != nil {
		t.Fatal(err)
	}
	a.SaveByPlanner(tell, "2.0")
	if out := tell(scheduleEight); !strings.Contains(out, "sch_") {
		t.Errorf("scheduling: %s", out)
	}
	a.Activate("2.0")
	kit.Equal(t, a.DescribeSchedules(), "0 7 * * * completed false owner; 0 8 * * * active true owner", "the schedules")
	a.SaveVersion("oops()", false)
	a.MustFail(reeve.LogicFailure)
	var k reeve.ScriptJob
	a.Want(200, &k, "GET", "/api/script-jobs/"+a.Get().Failure.ScriptJobID, nil)
	if !strings.Contains(k.Request, "The user's request: says it") {
		t.Errorf("the maintainer was told %s", k.Request)
	}
}

// The schedule of a plan ends when another version is activated, and begins again with its version.
func TestK27_ActivatingAVersionActivatesItsSchedule(t *testing.T) {
	t.Parallel()
	a, _ := newPlannedAutomation(t, kit.FastConfig(t))
	tell := a.TalkToPlanner()
	a.SaveByPlanner(tell, "1.0")
	tell(scheduleSeven)
	a.Activate("1.0")
	a.SaveByPlanner(tell, "2.0")
	tell(scheduleEight)
	kit.Equal(t, a.DescribeSchedules(), "0 7 * * * active true owner; 0 8 * * * paused false owner", "before 2.0")
	for range 2 {
		a.Activate("2.0")
		kit.Equal(t, a.DescribeSchedules(), "0 7 * * * completed false owner; 0 8 * * * active true owner", "with 2.0")
		a.Activate("1.0")
		kit.Equal(t, a.DescribeSchedules(), "0 7 * * * active true owner; 0 8 * * * completed false owner",
			"with 1.0 again")
	}
}

// The planner gives an active version a new schedule, or its first, which applies at once and belongs to the person who
// asked. Versions that are not active, or paused, wait.
func TestK27_PlannerReschedulesAnActiveVersion(t *testing.T) {
	t.Parallel()
	a, _ := newPlannedAutomation(t, kit.FastConfig(t))
	tell := a.TalkToPlanner()
	a.SaveByPlanner(tell, "1.0")
	a.Activate("1.0")
	tell(scheduleSeven)
	kit.Equal(t, a.DescribeSchedules(), "0 7 * * * active true owner", "its first schedule")
	tell(scheduleEight)
	kit.Equal(t, a.DescribeSchedules(), "0 8 * * * active true owner", "at another time")
	a.SaveVersion("'by hand'", false)
	tell(scheduleSeven)
	kit.Equal(t, a.DescribeSchedules(), "0 7 * * * active true owner", "with a version of a person's")
	a.SaveByPlanner(tell, "3.0")
	tell(scheduleEight)
	kit.Equal(t, a.DescribeSchedules(), "0 7 * * * active true owner; 0 8 * * * paused false owner",
		"of a version that nobody has activated")
	tell(scheduleSeven)
	kit.Equal(t, a.DescribeSchedules(), "0 7 * * * active true owner; 0 7 * * * paused false owner",
		"of that version, at another time")
	a.Activate("3.0")
	kit.Equal(t, a.DescribeSchedules(), "0 7 * * * completed false owner; 0 7 * * * active true owner", "activated")
	a.SaveByPlanner(tell, "4.0")
	a.Activate("4.0")
	tell(scheduleEight)
	kit.Equal(t, a.DescribeSchedules(),
		"0 7 * * * completed false owner; 0 7 * * * completed false owner; 0 8 * * * active true "+
			"owner", "in place of that of an earlier plan")
	var l api.ScheduleList
	a.Want(200, &l, "GET", "/api/schedules", nil)
	a.Want(200, nil, "PATCH", "/api/schedules/"+l.Schedules[2].ID, kit.Call{"status": "paused"})
	tell(scheduleSeven)
	kit.Equal(t, a.DescribeSchedules(),
		"0 7 * * * completed false owner; 0 7 * * * completed false owner; 0 7 * * * paused "+
			"false owner", "that a person has paused")
	var made api.NewToken
	a.Want(201, &made, "POST", "/api/tokens", api.TokenRequest{Name: "bob", User: "bob", Role: reeve.Member})
	bob := []string{"Authorization", "Bearer " + made.Token}
	var c reeve.Conversation
	a.Want(201, &c, "POST", "/api/conversations", kit.Call{"agent": "planner"}, bob...)
	a.Want(201, nil, "POST", "/api/conversations/"+c.ID+"/turns", kit.Call{"content": scheduleEight}, bob...)
	a.RunUntilIdle(t.Context())
	a.Want(200, &l, "GET", "/api/schedules", nil, bob...)
	kit.Equal(t, kit.JoinValues(l.Total, l.Schedules[0].Value, l.Schedules[0].UserID), "1 0 8 * * * bob",
		"by another person's word")
}
