package host_test

import (
	"context"
	"database/sql"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
)

// ends are the ways in which an agent ends.
var ends = map[string]func(h *reevetest.Host, a reeve.Agent){
	"destroyed": func(h *reevetest.Host, a reeve.Agent) { patch(h, a, object{"lifecycle": "destroyed"}) },
	"removed": func(h *reevetest.Host, a reeve.Agent) {
		h.Want(http.StatusNoContent, nil, "DELETE", "/api/agents/"+a.ID, nil)
	},
}

// eachEnd runs a test for each way in which an agent ends, on each engine.
func eachEnd(t *testing.T, f func(t *testing.T, engine, how string, end func(h *reevetest.Host, a reeve.Agent))) {
	for _, engine := range []string{"sqlite", "postgres"} {
		for how, end := range ends {
			t.Run(engine+", "+how, func(t *testing.T) { f(t, engine, how, end) })
		}
	}
}

// TestO20_WhatWasProposedForOneThatIsGone: nobody is asked about it any more, and it can be proposed again.
func TestO20_WhatWasProposedForOneThatIsGone(t *testing.T) {
	t.Parallel()
	eachEnd(t, func(t *testing.T, engine, how string, end func(*reevetest.Host, reeve.Agent)) {
		var ran counter
		h, boss := bossAndHelperOn(t, engine, "propose", tool("act", reeve.Keyed, ran.handle))
		stays := h.Call("helper", "act", object{"for": "nobody"}).ProposalID
		over(h, speak(h, h.StartConversation("boss").ID, "go").ID)
		list := proposals(h, "state=pending")
		if len(list) != 2 {
			t.Fatalf("%+v", list)
		}
		id := list[0].ID
		end(h, boss)
		if p := proposal(h, id); p.State != reeve.ProposalStale || p.Comment != "boss, on whose behalf this runs, was "+
			how || len(inbox(h).Proposals) != 1 {
			t.Errorf("%+v", p)
		}
		for _, word := range []string{"accept", "reject"} {
			if _, problem, status := say(h, id, word, ""); status != http.StatusConflict ||
				problem.Code != reeve.Stale {
				t.Errorf("%s: %d %+v", word, status, problem)
			}
		}
		again := h.Call("helper", "act", object{}).ProposalID // which is on nobody's behalf
		for _, p := range []string{stays, again} {
			say(h, p, "accept", "")
			eventually(t, "it to be applied", func() bool { return proposal(h, p).State == reeve.ProposalApplied })
		}
		if ran.count() != 2 {
			t.Errorf("%d ran", ran.count())
		}
	})
}

// TestO20_WhatWasAnsweredForOneThatIsGone: what a person let go, and the kill switch held, is refused when it is taken
// up.
func TestO20_WhatWasAnsweredForOneThatIsGone(t *testing.T) {
	t.Parallel()
	eachEnd(t, func(t *testing.T, engine, _ string, end func(*reevetest.Host, reeve.Agent)) {
		for _, policy := range []string{"ask", "propose"} {
			var ran counter
			h, boss := bossAndHelperOn(t, engine, policy, tool("act", reeve.Keyed, ran.handle))
			turn := speak(h, h.StartConversation("boss").ID, "go")
			op := ""
			if policy == "ask" {
				a := waiting(h, turn.ID)
				h.Want(http.StatusNoContent, nil, "POST", "/api/stop", object{"agent": "helper"})
				decide(h, a.ID, "approve")
				op = a.OperationID
			} else {
				over(h, turn.ID)
				h.Want(http.StatusNoContent, nil, "POST", "/api/stop", object{"agent": "helper"})
				p, _, _ := say(h, proposals(h, "state=pending")[0].ID, "accept", "")
				op = p.OperationID
			}
			end(h, boss)
			h.Want(http.StatusNoContent, nil, "POST", "/api/resume", object{"agent": "helper"})
			refused(h, op)
			if ran.count() != 0 {
				t.Errorf("%s: it was done", policy)
			}
		}
	})
}

// TestO20_RunAgainForOneThatIsGone: a call of unknown outcome that a person has run again is refused.
func TestO20_RunAgainForOneThatIsGone(t *testing.T) {
	t.Parallel()
	eachEnd(t, func(t *testing.T, engine, _ string, end func(*reevetest.Host, reeve.Agent)) {
		h, boss := bossAndHelperOn(t, engine, "allow",
			tool("act", reeve.Unsafe, func(context.Context, *reeve.Invocation) (any, error) {
				return nil, reeve.Errorf(reeve.UnknownOutcome, "the line went dead")
			}))
		turn := speak(h, h.StartConversation("boss").ID, "go")
		until(h, turn.ID, func(api.TurnDetail) bool { return len(inbox(h).Unknown) == 1 })
		op := inbox(h).Unknown[0].ID
		end(h, boss)
		h.Want(http.StatusOK, nil, "POST", "/api/operations/"+op+"/resolve", object{"resolution": "retry"})
		refused(h, op)
	})
}

// TestO20_WhoBeganItIsLost: a run that another began, and of which the database does not say so any more, makes no
// call: nobody can tell what it may do. What was approved waits until the row is corrected.
func TestO20_WhoBeganItIsLost(t *testing.T) {
	t.Parallel()
	for _, ancestors := range []string{"", "null", "[]",
		`[{"run_id":"run_other","agent_id":"agt_other","tools":null}]`} {
		t.Run("ancestors "+ancestors, func(t *testing.T) {
			var ran counter
			act := tool("act", reeve.Keyed, ran.handle)
			cfg := delegating(t, "sqlite")
			cfg.Dir = t.TempDir()
			h := reevetest.Run(t, cfg, act)
			boss := persona(h, "boss", nil, "delegate", "act")
			persona(h, "helper", object{"policy": object{"tools": object{"act": "ask"}}}, "act")
			a := waiting(h, speak(h, h.StartConversation("boss").ID, "go").ID)
			patch(h, boss, object{"policy": object{"tools": object{"act": "deny"}}})
			h.Stop()
			db, err := sql.Open("sqlite", "file:"+filepath.Join(cfg.Dir, "reeve.db"))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := db.ExecContext(t.Context(), `UPDATE runs SET ancestors = $1 WHERE parent_id <> ''`,
				ancestors); err != nil {
				t.Fatal(err)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			h = reevetest.Run(t, cfg, act)
			decide(h, a.ID, "approve")
			h.RunUntilIdle(t.Context())
			if op := operation(h, a.OperationID); op.State != reeve.Prepared || ran.count() != 0 {
				t.Errorf("%d ran, %+v", ran.count(), op)
			}
			if rows := part(h, "rows"); rows.OK ||
				!strings.Contains(rows.Detail, "in table runs cannot be read: ancestors") {
				t.Errorf("the doctor says %+v", rows)
			}
		})
	}
}

// refused waits until an operation is denied because of whom it was for.
func refused(h *reevetest.Host, id string) {
	h.T.Helper()
	var op reeve.Operation
	eventually(h.T, "the operation to be refused",
		func() bool { op = operation(h, id); return op.State != reeve.Prepared })
	if op.State != reeve.DeniedOp || op.Code != reeve.Denied || op.ResultID == "" ||
		!strings.Contains(op.Message, "behalf") && !strings.Contains(op.Message, "run has ended") {
		h.T.Errorf("%+v", op)
	}
}
