package httpapi_test

import (
	"fmt"
	"strings"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
)

// getDoctorProblems returns the problems that the doctor reports for a check, or nil.
func getDoctorProblems(t *testing.T, h *reevetest.Host, part string, who ...string) []string {
	t.Helper()
	for _, c := range decode[api.DoctorReport](t, h.Want(200, nil, "GET", "/api/doctor", nil, who...)).Checks {
		if c.Name == part && !c.OK {
			return strings.Split(c.Detail, "; ")
		}
	}
	return nil
}

// The doctor lists disabled schedules with the reason, to users who may see them.
func TestO13_DoctorListsDisabledSchedules(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, env testEnv) {
		h := env.start(t)
		ann, bob := createUserToken(t, h, "ann", reeve.Member), createUserToken(t, h, "bob", reeve.Member)
		h.Agent("clerk")
		ids := make([]string, 12)
		for i := range ids {
			ids[i] = decode[api.Schedule](t, h.Want(201, nil, "POST", "/api/schedules",
				object{"agent": "clerk", "name": fmt.Sprint("n", i), "goal": "g", "cadence_type": "cron",
					"cadence_value": "0 7 * * *"}, ann...)).ID
		}
		if problems := getDoctorProblems(t, h, "schedules"); problems != nil {
			t.Fatalf("doctor reports %q before any schedule is disabled", problems)
		}
		env.exec(t, `UPDATE timers SET state = 'disabled', failures = 5, next_at = 0 WHERE id = $1`, ids[3])
		for _, who := range [][]string{nil, ann} {
			if problems := getDoctorProblems(t, h, "schedules", who...); len(problems) != 1 || problems[0] != ids[3]+
				" (n3): it failed 5 times in a row" {
				t.Errorf("%q", problems)
			}
		}
		if problems := getDoctorProblems(t, h, "schedules", bob...); problems != nil {
			t.Errorf("doctor reports %q to another user", problems)
		}
		env.exec(t, `UPDATE timers SET state = 'disabled', failures = 5, next_at = 0 WHERE name LIKE $1`, "n%")
		if problems := getDoctorProblems(t, h, "schedules"); len(problems) != 11 || problems[10] != "and 2 more" {
			t.Errorf("%q", problems)
		}
	})
}
