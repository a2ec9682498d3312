package wake_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"reeve"
	"reeve/reevetest"
	"reeve/test/kit"
)

// Equal wakes have equal run keys, and a served key is not served again.
func TestL07_KeysAreDeterministic(t *testing.T) {
	t.Parallel()
	h := reevetest.Start(t, newEmitter())
	source, a := h.Agent("source", "emit"), h.Agent("coach")
	kit.SetRehearsal(h, a.ID, "ok")
	sub := kit.Subscribe(h, a.ID, "key", "TASK", "")
	var w, again reeve.Wake
	h.Want(201, &w, "POST", "/api/agents/coach/wake", kit.Object{}, "Idempotency-Key", "k1")
	kit.WaitUntilIdle(h)
	h.Want(201, &again, "POST", "/api/agents/coach/wake", kit.Object{}, "Idempotency-Key", "k1")
	if again.RunKey != w.RunKey || w.RunKey != reeve.DeriveID("wake", "manual", a.ID, "owner", "k1") {
		t.Errorf("keys: %s, then %s", w.RunKey, again.RunKey)
	}
	if again.State != reeve.WakeTaken || again.RunID == "" {
		t.Errorf("the wake as it is by then: %+v", again)
	}
	h.Want(409, nil, "POST", "/api/agents/coach/wake", kit.Object{"input": "something else"}, "Idempotency-Key", "k1")
	res := h.Call(source.ID, "emit", kit.Object{"class": "key", "name": "TASK"}, "Idempotency-Key", "c1")
	kit.WaitUntilIdle(h)
	h.Call(source.ID, "emit", kit.Object{"class": "key", "name": "TASK"}, "Idempotency-Key", "c1")
	kit.WaitUntilIdle(h)
	if n := len(kit.ListRuns(h, "agent=coach")); n != 2 {
		t.Errorf("%d runs, want one by hand and one by the change", n)
	}
	for _, k := range kit.ListWakes(h, a.ID) {
		if k.Reason == reeve.ReasonSubscription && k.RunKey != a.ID+"/"+sub.ID+"/"+res.OperationID {
			t.Errorf("the key %s does not derive from who, what and the change alone", k.RunKey)
		}
	}
}

// The plan is stored before it is followed. After a crash the run follows it, although the config has changed.
func TestL09_TheStoredPlanIsReplayed(t *testing.T) {
	t.Parallel()
	g := kit.NewBlockingTool()
	h := reevetest.Start(t, g.Tool())
	a := h.Agent("coach", "hold", "write_file", "read_file")
	kit.SetRehearsal(h, a.ID, "old plan", kit.WriteFileStep("/1.txt", "one"),
		kit.Object{"tool": "read_file", "args": kit.Object{"path": "/1.txt"}},
		kit.Object{"tool": "hold"}, kit.WriteFileStep("/2.txt", "two"))
	kit.StepInBackground(t, h)
	h.Want(201, nil, "POST", "/api/agents/coach/wake", kit.Object{})
	<-g.Reached
	kit.SetRehearsal(h, a.ID, "new plan", kit.WriteFileStep("/3.txt", "three"))
	g2 := kit.NewBlockingTool()
	close(g2.Release)
	dead := kit.RestartAfterCrash(h, g2.Tool())
	close(g.Release)
	kit.WaitUntilIdle(dead)
	run := kit.ListRuns(dead, "")[0]
	if run.Output != "old plan" || run.State != reeve.RunCompleted || run.Attempts != 2 {
		t.Fatalf("the run: %+v", run)
	}
	var wrote []string
	thoughts := 0
	for _, m := range kit.ListThread(dead, a.ID, "run="+run.ID) {
		switch m.Kind {
		case reeve.Thought:
			thoughts++
		case reeve.Action:
			wrote = append(wrote, kit.ActionInfo(t, m).Tool)
		default:
		}
	}
	if got := strings.Join(wrote, " "); got != "write_file read_file hold write_file" || thoughts != 1 {
		t.Errorf("it did %s, with %d thoughts", got, thoughts)
	}
}

// Messages are linked rows that never change. Large content is stored separately.
func TestL12_MessagesAreImmutableRows(t *testing.T) {
	t.Parallel()
	big := kit.Tool("big", reeve.Read, func(context.Context, *reeve.Invocation) (any, error) {
		return strings.Repeat("x", 1<<20), nil
	})
	h := reevetest.Start(t, big)
	a := h.Agent("coach", "big", "write_file")
	var steps []kit.Object
	for i := range 20 {
		steps = append(steps, kit.WriteFileStep(fmt.Sprintf("/%d.txt", i), "x"))
	}
	kit.SetRehearsal(h, a.ID, "ok", append(steps, kit.Object{"tool": "big"})...)
	h.Want(201, nil, "POST", "/api/agents/coach/wake", kit.Object{})
	kit.WaitUntilIdle(h)
	run := kit.ListRuns(h, "")[0]
	list := kit.ListThread(h, a.ID, "run="+run.ID)
	if len(list) != 1+2*21 || list[0].Kind != reeve.Thought {
		t.Fatalf("%d messages", len(list))
	}
	prev := ""
	for _, m := range list {
		if m.PrevID != prev {
			t.Errorf("message %s follows %q, want %q", m.ID, m.PrevID, prev)
		}
		prev = m.ID
		if len(m.Content) > 20<<10 || len(m.Metadata) > 20<<10 {
			t.Errorf("message %s holds %d bytes", m.ID, len(m.Content))
		}
	}
	last := kit.ResultInfo(t, list[len(list)-1])
	if !last.Truncated || last.Hash == "" {
		t.Errorf("the large output: %+v", last)
	}
	h.Want(201, nil, "POST", "/api/agents/coach/wake", kit.Object{})
	kit.WaitUntilIdle(h)
	again := kit.ListThread(h, a.ID, "run="+run.ID)
	if string(kit.MustJSON(list)) != string(kit.MustJSON(again)) {
		t.Error("what was written has changed")
	}
	for _, method := range []string{"PUT", "PATCH", "DELETE"} {
		if r := h.Do(method, "/api/agents/coach/messages/"+list[0].ID, kit.Object{}); r.Status != 404 &&
			r.Status != 405 {
			t.Errorf("%s of a message: %d", method, r.Status)
		}
	}
}

// A parked run continues when its person has decided. A person can end a run that runs or waits.
func TestL08_ParkedRunsResumeAndCancelledOnesEnd(t *testing.T) {
	t.Parallel()
	for _, decision := range []string{"approve", "deny"} {
		for _, must := range []bool{false, true} {
			h := reevetest.Start(t)
			a := h.Agent("coach", "write_file")
			h.Want(200, nil, "PATCH", "/api/agents/coach",
				kit.Object{"policy": kit.Object{"tools": kit.Object{"write_file": "ask"}}})
			first := kit.WriteFileStep("/1.txt", "1")
			first["must"] = must
			kit.SetRehearsal(h, a.ID, "done", first)
			h.Want(201, nil, "POST", "/api/agents/coach/wake", kit.Object{})
			h.RunUntilIdle(t.Context())
			run := kit.ListRuns(h, "")[0]
			if run.State != reeve.RunParked {
				t.Fatalf("the run: %+v", run)
			}
			kit.Decide(h, kit.GetInbox(h).Approvals[0].ID, decision)
			kit.WaitUntilIdle(h)
			want, wrote := reeve.RunCompleted, 1
			if decision == "deny" {
				if wrote = 0; must {
					want = reeve.RunFailed
				}
			}
			if run = kit.ListRuns(h, "")[0]; run.State != want || run.Attempts != 1 ||
				countCommitted(h, "write_file") != wrote {
				t.Errorf("%s, must %v: %+v", decision, must, run)
			}
		}
	}
	// Cancelled while it runs: nothing more of it is done, and its agent is free.
	g := kit.NewBlockingTool()
	h := reevetest.Start(t, g.Tool())
	a := h.Agent("coach", "hold", "write_file")
	kit.SetRehearsal(h, a.ID, "done", kit.WriteFileStep("/1.txt", "1"), kit.Object{"tool": "hold"},
		kit.WriteFileStep("/2.txt", "2"))
	kit.StepInBackground(t, h)
	h.Want(201, nil, "POST", "/api/agents/coach/wake", kit.Object{})
	<-g.Reached
	run := kit.ListRuns(h, "")[0]
	var ended reeve.Run
	h.Want(200, &ended, "POST", "/api/runs/"+run.ID+"/cancel", kit.Object{})
	if ended.State != reeve.RunCancelled || ended.Spent.Calls != 1 {
		t.Errorf("cancelled: %+v", ended)
	}
	h.Want(409, nil, "POST", "/api/runs/"+run.ID+"/cancel", kit.Object{})
	close(g.Release)
	kit.SetRehearsal(h, a.ID, "next")
	h.Want(201, nil, "POST", "/api/agents/coach/wake", kit.Object{})
	kit.Eventually(t, "the next run", func() bool { return len(kit.ListRuns(h, "state=completed")) == 1 })
	if n := countCommitted(h, "write_file"); n != 1 {
		t.Errorf("%d writes, want the one before", n)
	}
	for _, p := range kit.PairRunCalls(h, a.ID, run.ID) {
		if p[1].ID == "" {
			t.Errorf("action %s has no result", p[0].ID)
		}
	}
	// Cancelled while it waits: nobody is asked any more, and approving it later does nothing.
	h.Want(200, nil, "PATCH", "/api/agents/coach",
		kit.Object{"policy": kit.Object{"tools": kit.Object{"write_file": "ask"}}})
	kit.SetRehearsal(h, a.ID, "done", kit.WriteFileStep("/3.txt", "3"))
	h.Want(201, nil, "POST", "/api/agents/coach/wake", kit.Object{})
	kit.Eventually(t, "it to wait", func() bool { return len(kit.ListRuns(h, "state=parked")) == 1 })
	void := kit.GetInbox(h).Approvals[0]
	h.Want(200, nil, "POST", "/api/runs/"+kit.ListRuns(h, "state=parked")[0].ID+"/cancel", kit.Object{})
	var lapsed reeve.Approval
	if h.Want(200, &lapsed, "GET", "/api/approvals/"+void.ID, nil); lapsed.State != reeve.ApprovalLapsed ||
		len(kit.GetInbox(h).Approvals) != 0 {
		t.Errorf("%+v, and the inbox has %d", lapsed, len(kit.GetInbox(h).Approvals))
	}
	for range 2 {
		h.Want(409, nil, "POST", "/api/approvals/"+void.ID+"/decision", kit.Object{"decision": "approve"})
	}
	if op := kit.GetOperation(h, void.OperationID); op.State != reeve.DeniedOp || op.ResultID == "" ||
		len(kit.GetInbox(h).Approvals) != 0 {
		t.Errorf("%+v, and the inbox has %d", op, len(kit.GetInbox(h).Approvals))
	}
	if n := countCommitted(h, "write_file"); n != 1 {
		t.Errorf("%d writes after an end", n)
	}
}

// A person who undoes a call of a run does not change the position of the run in its plan.
func TestL08_AnUndoDoesNotMoveThePlan(t *testing.T) {
	t.Parallel()
	h := reevetest.Start(t)
	a := h.Agent("coach", "write_file", "schedule_create", "schedule_delete")
	h.Want(200, nil, "PATCH", "/api/agents/coach",
		kit.Object{"policy": kit.Object{"tools": kit.Object{"write_file": "ask"}}})
	kit.SetRehearsal(h, a.ID, "done",
		kit.Object{"tool": "schedule_create", "args": kit.Object{"goal": "g", "cadence_type": "interval",
			"cadence_value": "1h"}}, kit.WriteFileStep("/1.txt", "1"), kit.WriteFileStep("/2.txt", "2"))
	h.Want(201, nil, "POST", "/api/agents/coach/wake", kit.Object{})
	h.RunUntilIdle(t.Context())
	for _, op := range kit.ListOperations(h) {
		if op.Tool == "schedule_create" {
			h.Do("POST", "/api/operations/"+op.ID+"/undo", kit.Object{})
		}
	}
	for range 2 {
		kit.Decide(h, kit.GetInbox(h).Approvals[0].ID, "approve")
		kit.WaitUntilIdle(h)
	}
	if run := kit.ListRuns(h, "")[0]; run.State != reeve.RunCompleted || countCommitted(h, "write_file") != 2 {
		t.Errorf("%d writes, run %+v", countCommitted(h, "write_file"), run)
	}
}
