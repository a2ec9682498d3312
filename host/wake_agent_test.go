package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/reevetest"
	"reeve/test/kit"
)

// emitter is a local tool that tells of what its arguments say.
func emitter() reeve.Tool {
	return kit.Tool("emit", reeve.Local, func(_ context.Context, inv *reeve.Invocation) (any, error) {
		var in struct{ Class, Name string }
		if err := json.Unmarshal(inv.Args, &in); err != nil {
			return nil, err
		}
		inv.Emit(reeve.TokenClass(in.Class), in.Name)
		return "told", nil
	})
}

func committed(h *reevetest.Host, tool string) (n int) {
	h.T.Helper()
	for _, op := range kit.ListOperations(h) {
		if op.Tool == tool && op.State == reeve.Committed {
			n++
		}
	}
	return n
}

func TestL01_LifecycleHasItsLegalMovesOnly(t *testing.T) {
	t.Parallel()
	h := reevetest.Start(t)
	legal := map[string]string{"created": "active dormant destroyed", "active": "dormant destroyed",
		"dormant": "active destroyed", "destroyed": ""}
	i := 0
	for from, to := range legal {
		for next := range legal {
			var a reeve.Agent
			i++
			made := from
			if from == "destroyed" { // nobody is made so
				h.Want(400, nil, "POST", "/api/agents", kit.Object{"name": "stillborn", "lifecycle": from})
				made = "active"
			}
			h.Want(201, &a, "POST", "/api/agents", kit.Object{"name": fmt.Sprint("a", i), "lifecycle": made})
			status := 409
			if from == next || strings.Contains(to, next) {
				status = 200
			}
			h.Want(200, nil, "PATCH", "/api/agents/"+a.ID, kit.Object{"lifecycle": from})
			h.Want(status, nil, "PATCH", "/api/agents/"+a.ID, kit.Object{"lifecycle": next})
		}
	}
}

// Destroying an agent ends its timers and subscriptions, skips what waits, ends its run, and what the run still tries
// is refused.
func TestL01_DestroyingEndsEverything(t *testing.T) {
	t.Parallel()
	g := kit.NewBlockingTool()
	h := reevetest.Start(t, g.Tool(), emitter())
	a := h.Agent("coach", "hold", "write_file", "emit")
	other := h.Agent("other", "emit")
	kit.SetRehearsal(h, a.ID, "done", kit.WriteFileStep("/before.txt", "1"), kit.Object{"tool": "hold"},
		kit.WriteFileStep("/after.txt", "2"),
		kit.Object{"tool": "emit", "args": kit.Object{"class": "key", "name": "X"}})
	kit.Subscribe(h, a.ID, "key", "TASK", "")
	kit.Subscribe(h, other.ID, "key", "X", "")
	var s api.Schedule
	h.Want(201, &s, "POST", "/api/schedules", kit.Object{"agent": a.ID, "goal": "g", "cadence_type": "cron",
		"cadence_value": "0 7 * * *"})
	kit.StepInBackground(t, h)
	h.Want(201, nil, "POST", "/api/agents/coach/wake", kit.Object{"input": "go"})
	<-g.Reached
	h.Call(other.ID, "emit", kit.Object{"class": "key", "name": "TASK"}) // waits behind the run
	h.Want(200, nil, "PATCH", "/api/agents/coach", kit.Object{"lifecycle": "destroyed"})
	close(g.Release)
	kit.WaitUntilIdle(h)
	run := kit.ListRuns(h, "")[0]
	if run.State != reeve.RunCancelled || run.FinishedAt == nil {
		t.Errorf("the run: %+v", run)
	}
	if n := committed(h, "write_file"); n != 1 {
		t.Errorf("%d files were written, want the one before", n)
	}
	if n := committed(h, "emit"); n != 1 {
		t.Errorf("%d tokens were told, want the other's", n)
	}
	states := map[reeve.WakeState]int{}
	for _, w := range kit.ListWakes(h, a.ID) {
		states[w.State]++
	}
	if states[reeve.WakeTaken] != 1 || states[reeve.WakeSkipped] != 1 {
		t.Errorf("wakes: %v", states)
	}
	var subs api.SubscriptionList
	if h.Want(200, &subs, "GET", "/api/agents/coach/subscriptions", nil); len(subs.Subscriptions) != 0 {
		t.Errorf("it still watches: %+v", subs)
	}
	id := s.ID
	s = api.Schedule{}
	if h.Want(200, &s, "GET", "/api/schedules/"+id, nil); s.State != reeve.TimerCompleted || s.NextAt != nil {
		t.Errorf("its schedule: %+v", s.Timer)
	}
	// Nothing brings it back, with a clear word.
	h.Want(409, nil, "POST", "/api/agents/coach/wake", kit.Object{})
	h.Want(409, nil, "PATCH", "/api/schedules/"+s.ID, kit.Object{"status": "active"})
	h.Want(409, nil, "POST", "/api/schedules", kit.Object{"agent": a.ID, "goal": "g", "cadence_type": "cron",
		"cadence_value": "0 7 * * *"})
	h.Want(409, nil, "POST", "/api/agents/coach/subscriptions", kit.Object{"class": "key", "name": "X"})
	h.Want(404, nil, "POST", "/api/schedules", kit.Object{"agent": "nobody", "goal": "g", "cadence_type": "cron",
		"cadence_value": "0 7 * * *"})
}

func TestL02_ModesSayWhoMayWake(t *testing.T) {
	t.Parallel()
	for mode, want := range map[reeve.Mode]map[reeve.Reason]bool{
		reeve.Autonomous: {reeve.ReasonSubscription: true, reeve.ReasonTimer: true, reeve.ReasonCatchup: true,
			reeve.ReasonManual: true, reeve.ReasonUser: false},
		reeve.Interactive: {reeve.ReasonSubscription: false, reeve.ReasonTimer: false, reeve.ReasonCatchup: false,
			reeve.ReasonManual: true, reeve.ReasonUser: true},
		reeve.Hybrid: {reeve.ReasonSubscription: true, reeve.ReasonTimer: true, reeve.ReasonCatchup: true,
			reeve.ReasonManual: true, reeve.ReasonUser: true},
		"unheard of": {reeve.ReasonManual: false},
	} {
		for reason, wakes := range want {
			if mode.Wakes(reason) != wakes {
				t.Errorf("%s, %s: %v", mode, reason, !wakes)
			}
		}
	}
	h := reevetest.Start(t, emitter())
	source := h.Agent("source", "emit")
	for _, mode := range []string{"autonomous", "interactive", "hybrid"} {
		var a reeve.Agent
		h.Want(201, &a, "POST", "/api/agents", kit.Object{"name": mode, "mode": mode,
			"config": kit.RehearsalConfig("ok")})
		kit.Subscribe(h, a.ID, "key", "TASK", "")
		h.Want(201, nil, "POST", "/api/schedules", kit.Object{"agent": a.ID, "goal": "g", "cadence_type": "once",
			"cadence_value": time.Now().Add(2 * time.Second).UTC().Format(time.RFC3339Nano)})
	}
	h.Call(source.ID, "emit", kit.Object{"class": "key", "name": "TASK"})
	for _, mode := range []string{"autonomous", "interactive", "hybrid"} {
		h.Want(201, nil, "POST", "/api/agents/"+mode+"/wake", kit.Object{})
	}
	counts := func(mode string) map[reeve.Reason]int {
		n := map[reeve.Reason]int{}
		for _, r := range kit.ListRuns(h, "agent="+mode) {
			n[r.Reason]++
		}
		return n
	}
	kit.Eventually(t, "the schedules to fire", func() bool {
		h.Settle(t.Context())
		return len(kit.ListWakes(h, "interactive")) == 3 && counts("hybrid")[reeve.ReasonTimer] == 1 &&
			counts("autonomous")[reeve.ReasonTimer] == 1
	})
	kit.WaitUntilIdle(h)
	for mode, want := range map[string]int{"autonomous": 1, "hybrid": 1, "interactive": 0} {
		n := counts(mode)
		if n[reeve.ReasonSubscription] != want || n[reeve.ReasonTimer] != want || n[reeve.ReasonManual] != 1 {
			t.Errorf("%s: %v", mode, n)
		}
	}
	for _, w := range kit.ListWakes(h, "interactive") {
		if w.Reason != reeve.ReasonManual && (w.State != reeve.WakeSkipped || w.Why != "the agent is interactive") {
			t.Errorf("%+v", w)
		}
	}
}

// Classes do not mix: an id that looks like a key is an id.
func TestL03_TokenClassesDoNotCrossOver(t *testing.T) {
	t.Parallel()
	h := reevetest.Start(t, emitter())
	source := h.Agent("source", "emit")
	for _, class := range []string{"key", "subtype", "id"} {
		a := h.Agent(class)
		kit.SetRehearsal(h, a.ID, "ok")
		kit.Subscribe(h, a.ID, class, "TASK", "")
	}
	for _, class := range []string{"key", "subtype", "id"} {
		h.Call(source.ID, "emit", kit.Object{"class": class, "name": "TASK"})
		h.Call(source.ID, "emit", kit.Object{"class": class, "name": "task"})
	}
	kit.WaitUntilIdle(h)
	for _, class := range []string{"key", "subtype", "id"} {
		list := kit.ListWakes(h, class)
		if len(list) != 1 || string(list[0].Token.Class) != class || list[0].Token.Name != "TASK" {
			t.Errorf("%s: %+v", class, list)
		}
	}
	if r := h.Do("POST", "/api/agents/key/subscriptions",
		kit.Object{"class": "colour", "name": "X"}); r.Status != 400 ||
		!strings.Contains(string(r.Body), "class") {
		t.Errorf("a token of no class: %d %s", r.Status, r.Body)
	}
	if res := h.Call(source.ID, "emit", kit.Object{"class": "colour", "name": "X"}); !res.IsError ||
		!strings.Contains(res.Message, "class") {
		t.Errorf("a token of no class was told: %+v", res)
	}
}

// Fifty edits within the window of 100 ms are one run that was triggered by all of them, and each of their keys is
// terminal. The server looks for work after every edit, so that without a window each would be a run of its own. The
// next edit, when the window is over, is another run.
func TestL04_FiftyEditsOneRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := kit.NewBubbleHost(t, host.Config{})
		var gym reeve.Category
		b.Want(201, &gym, "POST", "/api/journal/categories", kit.Object{"name": "Gym"})
		var task reeve.Task
		b.Want(201, &task, "POST", "/api/journal/tasks", kit.Object{"category_id": gym.ID, "title": "Squat"})
		b.NewAgent("coach", kit.Object{"categories": []string{gym.ID}})
		b.Want(201, nil, "POST", "/api/agents/coach/subscriptions", kit.Object{"class": "key", "name": "TASK"})
		b.AdvanceBy(time.Second, 100*time.Millisecond)
		if runs := b.ListRuns("agent=coach"); len(runs) != 0 {
			t.Fatalf("%d runs before any edit", len(runs))
		}
		edit := func(i int) {
			b.Want(200, nil, "PATCH", "/api/journal/tasks/"+task.ID, kit.Object{"title": fmt.Sprint("Squat ", i)})
		}
		for i := range 50 {
			edit(i)
			b.AdvanceBy(time.Millisecond, time.Millisecond)
		}
		b.AdvanceBy(time.Second, 5*time.Millisecond)
		runs := b.ListRuns("agent=coach")
		if len(runs) != 1 || runs[0].Wakes != 50 || !runs[0].State.Final() ||
			runs[0].Reason != reeve.ReasonSubscription {
			t.Fatalf("50 edits are %d runs: %+v", len(runs), runs)
		}
		var list api.WakeList
		b.Want(200, &list, "GET", "/api/runs/"+runs[0].ID+"/wakes?limit=100", nil)
		keys, changes := map[string]bool{}, map[string]bool{}
		for _, w := range list.Wakes {
			keys[w.RunKey], changes[w.OperationID] = true, true
			if w.State != reeve.WakeTaken || w.OperationID == "" {
				t.Errorf("%+v", w)
			}
		}
		if len(keys) != 50 || len(changes) != 50 {
			t.Errorf("the run serves %d keys of %d edits", len(keys), len(changes))
		}
		edit(50)
		b.AdvanceBy(time.Second, 5*time.Millisecond)
		if runs := b.ListRuns("agent=coach"); len(runs) != 2 || runs[0].Wakes != 1 {
			t.Errorf("after one more edit: %+v", runs)
		}
	})
}

// A change during a run is one more run; the agent's own writes are none.
func TestL05_AChangeDuringARunAndItsOwn(t *testing.T) {
	t.Parallel()
	g := kit.NewBlockingTool()
	h := reevetest.Start(t, g.Tool(), emitter())
	source, a := h.Agent("source", "emit"), h.Agent("coach", "emit", "hold")
	kit.SetRehearsal(h, a.ID, "ok", kit.Object{"tool": "emit", "args": kit.Object{"class": "key", "name": "TASK"}},
		kit.Object{"tool": "hold"})
	kit.Subscribe(h, a.ID, "key", "TASK", "")
	kit.StepInBackground(t, h)
	h.Want(201, nil, "POST", "/api/agents/coach/wake", kit.Object{})
	<-g.Reached
	for range 5 {
		h.Call(source.ID, "emit", kit.Object{"class": "key", "name": "TASK"})
	}
	close(g.Release)
	kit.Eventually(t, "the follow-up to end",
		func() bool { return len(kit.ListRuns(h, "agent=coach&state=completed")) == 2 })
	kit.WaitUntilIdle(h)
	runs := kit.ListRuns(h, "agent=coach")
	if len(runs) != 2 || runs[0].Wakes != 5 || runs[0].Reason != reeve.ReasonSubscription {
		t.Errorf("runs: %+v", runs)
	}
}

// Predicates see the entity as it is when the window is over.
func TestL06_PredicatesSeeTheEntityAfterTheBatch(t *testing.T) {
	t.Parallel()
	h := reevetest.Start(t)
	var gym, home reeve.Category
	h.Want(201, &gym, "POST", "/api/journal/categories", kit.Object{"name": "Gym"})
	h.Want(201, &home, "POST", "/api/journal/categories", kit.Object{"name": "Home"})
	a := h.Agent("coach")
	kit.UpdateAgent(h, a, kit.Object{"categories": []string{gym.ID, home.ID}})
	kit.SetRehearsal(h, a.ID, "ok")
	kit.Subscribe(h, a.ID, "key", "TASK", `entity.category_id == "`+gym.ID+`"`)
	task := func(category, title string) (k reeve.Task) {
		h.Want(201, &k, "POST", "/api/journal/tasks", kit.Object{"category_id": category, "title": title})
		return k
	}
	ran := func(what string, want int) {
		t.Helper()
		kit.WaitUntilIdle(h)
		if n := len(kit.ListRuns(h, "agent=coach")); n != want {
			t.Errorf("%s: %d runs, want %d", what, n, want)
		}
	}
	squat := task(gym.ID, "Squat")
	ran("a task in the category", 1)
	task(home.ID, "Dishes")
	ran("a task elsewhere", 1)
	h.Want(200, nil, "PATCH", "/api/journal/tasks/"+squat.ID, kit.Object{"title": "Deep squat"})
	h.Want(200, nil, "PATCH", "/api/journal/tasks/"+squat.ID, kit.Object{"category_id": home.ID})
	ran("changed and moved out within the window", 1)
	press := task(gym.ID, "Press")
	h.Want(http.StatusNoContent, nil, "DELETE", "/api/journal/tasks/"+press.ID, nil)
	ran("made and gone within the window", 1)
	for _, w := range kit.ListWakes(h, "coach") {
		if w.State == reeve.WakeSkipped && !strings.HasPrefix(w.Why, "the predicate is false") {
			t.Errorf("%+v", w)
		}
	}
	h.Want(200, nil, "PATCH", "/api/journal/tasks/"+squat.ID, kit.Object{"category_id": gym.ID})
	ran("moved in", 2)
	for _, bad := range []string{"entity.", "1 + 1", "nobody.knows == 1", `"text"`, strings.Repeat("(", 300)} {
		var p api.Problem
		h.Want(400, &p, "POST", "/api/agents/coach/subscriptions", kit.Object{"class": "key", "name": "TASK",
			"predicate": bad})
		if len(p.Errors) == 0 || p.Errors[0].Path != "/predicate" {
			t.Errorf("%q: %+v", bad, p)
		}
	}
	// One that would take for ever is cut short, and is false.
	long := "[1,2,3,4,5,6,7,8,9]"
	loop := "true"
	for i := range 8 {
		loop = fmt.Sprintf("%s.all(x%d, %s)", long, i, loop)
	}
	b := h.Agent("looper")
	kit.UpdateAgent(h, b, kit.Object{"categories": []string{gym.ID}})
	kit.SetRehearsal(h, b.ID, "ok")
	kit.Subscribe(h, b.ID, "key", "TASK", loop)
	start := time.Now()
	task(gym.ID, "Row")
	ran("a task beside a loop", 3)
	if n := len(kit.ListRuns(h, "agent=looper")); n != 0 || time.Since(start) > 10*time.Second {
		t.Errorf("a predicate without end held: %d runs in %s", n, time.Since(start))
	}
}

// The same demand has the same key, and a key that was served is not served again.
func TestL07_KeysAreDeterministic(t *testing.T) {
	t.Parallel()
	h := reevetest.Start(t, emitter())
	source, a := h.Agent("source", "emit"), h.Agent("coach")
	kit.SetRehearsal(h, a.ID, "ok")
	sub := kit.Subscribe(h, a.ID, "key", "TASK", "")
	var w, again reeve.Wake
	h.Want(201, &w, "POST", "/api/agents/coach/wake", kit.Object{}, "Idempotency-Key", "k1")
	kit.WaitUntilIdle(h)
	h.Want(201, &again, "POST", "/api/agents/coach/wake", kit.Object{}, "Idempotency-Key", "k1")
	if again.RunKey != w.RunKey || w.RunKey != reeve.Key("wake", "manual", a.ID, "owner", "k1") {
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

// The plan is stored before it is acted on: after a crash the run follows it, whatever the config says by then.
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

// Messages are rows of their own, linked, and never change; large content is apart.
func TestL12_MessagesAreImmutableRows(t *testing.T) {
	t.Parallel()
	big := kit.Tool("big", reeve.Read, func(context.Context, *reeve.Invocation) (any,
		error) {
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

// A run that parks goes on when its person has decided, and a person can end one that runs or waits.
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
			h.Settle(t.Context())
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
				committed(h, "write_file") != wrote {
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
	if n := committed(h, "write_file"); n != 1 {
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
	if h.Want(200, &lapsed, "GET", "/api/approvals/"+void.ID, nil); lapsed.State != reeve.Lapsed ||
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
	if n := committed(h, "write_file"); n != 1 {
		t.Errorf("%d writes after an end", n)
	}
}

// A person who takes a call of a run back does not put the run out of step.
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
	h.Settle(t.Context())
	for _, op := range kit.ListOperations(h) {
		if op.Tool == "schedule_create" {
			h.Do("POST", "/api/operations/"+op.ID+"/undo", kit.Object{})
		}
	}
	for range 2 {
		kit.Decide(h, kit.GetInbox(h).Approvals[0].ID, "approve")
		kit.WaitUntilIdle(h)
	}
	if run := kit.ListRuns(h, "")[0]; run.State != reeve.RunCompleted || committed(h, "write_file") != 2 {
		t.Errorf("%d writes, run %+v", committed(h, "write_file"), run)
	}
}

// The kill switch: nothing starts, what is queued is skipped, due or not, and a run that was under way changes nothing
// more.
func TestG25_StopSkipsWhatIsQueued(t *testing.T) {
	t.Parallel()
	g := kit.NewBlockingTool()
	h := reevetest.Start(t, g.Tool(), emitter())
	source, a := h.Agent("source", "emit"), h.Agent("coach", "hold", "write_file")
	kit.SetRehearsal(h, a.ID, "done", kit.Object{"tool": "hold"}, kit.WriteFileStep("/1.txt", "1"))
	kit.Subscribe(h, a.ID, "key", "TASK", "")
	kit.StepInBackground(t, h)
	h.Want(201, nil, "POST", "/api/agents/coach/wake", kit.Object{})
	<-g.Reached
	h.Call(source.ID, "emit", kit.Object{"class": "key", "name": "TASK"})
	h.Want(http.StatusNoContent, nil, "POST", "/api/stop", kit.Object{"agent": "coach", "reason": "enough"})
	for _, w := range kit.ListWakes(h, "coach") { // at once, and not when it is due
		if w.Reason == reeve.ReasonSubscription && (w.State != reeve.WakeSkipped || w.Why == "") {
			t.Errorf("a queued wake: %+v", w)
		}
	}
	close(g.Release)
	h.Call(source.ID, "emit", kit.Object{"class": "key", "name": "TASK"}) // queued while it is stopped
	h.Want(201, nil, "POST", "/api/agents/coach/wake", kit.Object{})
	kit.WaitUntilIdle(h)
	if runs := kit.ListRuns(h, "agent=coach"); len(runs) != 1 || runs[0].State != reeve.RunCancelled ||
		committed(h, "write_file") != 0 {
		t.Errorf("runs: %+v", runs)
	}
	h.Want(http.StatusNoContent, nil, "POST", "/api/resume", kit.Object{"agent": "coach"})
	kit.WaitUntilIdle(h)
	if runs := kit.ListRuns(h, "agent=coach"); len(runs) != 1 {
		t.Errorf("what was skipped ran after all: %+v", runs)
	}
	h.Want(201, nil, "POST", "/api/agents/coach/wake", kit.Object{})
	kit.Eventually(t, "it to run again", func() bool { return committed(h, "write_file") == 1 })
}

// Whoever turned the kill switch on, and left before they were answered, has stopped what runs.
func TestG25_TheCallerOfAStopGoesAway(t *testing.T) {
	t.Parallel()
	for _, whom := range []string{"coach", ""} {
		ctx, leave := context.WithCancel(t.Context())
		cfg := host.Config{Dir: t.TempDir()}
		var asked atomic.Bool
		cfg.OnFault.OnAfter = func() {
			if asked.Load() {
				leave()
			}
		}
		g := kit.NewBlockingTool()
		var looked kit.Counter // a stopped agent may look, as long as it runs
		h := reevetest.StartWith(t, cfg, g.Tool(), kit.Tool("look", reeve.Read, looked.Handle))
		a := h.Agent("coach", "hold", "look")
		kit.SetRehearsal(h, a.ID, "done", kit.Object{"tool": "hold"}, kit.Object{"tool": "look"})
		h.Want(201, nil, "POST", "/api/agents/coach/wake", kit.Object{})
		done := make(chan error, 1)
		go func() {
			_, err := h.Step(t.Context())
			done <- err
		}()
		<-g.Reached
		asked.Store(true)
		req := httptest.NewRequestWithContext(ctx, "POST", "http://127.0.0.1/api/stop",
			strings.NewReader(string(kit.MustJSON(kit.Object{"agent": whom}))))
		req.Header.Set("Authorization", "Bearer "+h.Token)
		req.Header.Set("X-Workspace-Id", "default")
		req.Header.Set("Content-Type", "application/json")
		h.Server.Config.Handler.ServeHTTP(httptest.NewRecorder(), req)
		close(g.Release)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if run := kit.ListRuns(h, "")[0]; ctx.Err() == nil || looked.Count() != 0 || run.State != reeve.RunCancelled {
			t.Errorf("stop %q: it looked %d times, run %+v", whom, looked.Count(), run)
		}
	}
}

// An end that was never written ends nothing: the agent lives on, and so do its runs.
func TestL08_AnAbandonedEndEndsNothing(t *testing.T) {
	t.Parallel()
	cfg := host.Config{Dir: t.TempDir()}
	var broken atomic.Bool
	cfg.OnFault.OnBefore = func() {
		if broken.Load() {
			panic("the power fails")
		}
	}
	g := kit.NewBlockingTool()
	h := reevetest.StartWith(t, cfg, g.Tool())
	a := h.Agent("coach", "hold", "write_file")
	kit.SetRehearsal(h, a.ID, "done", kit.Object{"tool": "hold"}, kit.WriteFileStep("/1.txt", "1"))
	h.Want(201, nil, "POST", "/api/agents/coach/wake", kit.Object{})
	done := make(chan error, 1)
	go func() {
		_, err := h.Step(t.Context())
		done <- err
	}()
	<-g.Reached
	broken.Store(true)
	h.Want(http.StatusInternalServerError, nil, "PATCH", "/api/agents/coach", kit.Object{"lifecycle": "destroyed"})
	h.Want(http.StatusInternalServerError, nil, "DELETE", "/api/agents/coach", nil)
	broken.Store(false)
	close(g.Release)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	kit.WaitUntilIdle(h)
	if run := kit.ListRuns(h, "")[0]; run.State != reeve.RunCompleted || committed(h, "write_file") != 1 {
		t.Errorf("%d writes, run %+v", committed(h, "write_file"), run)
	}
}

// A server that is told to stop in the middle of a run loses no step of it and repeats none, wherever it was.
func TestL08_AnOrderlyStopLosesNoStep(t *testing.T) {
	t.Parallel()
	for _, effect := range []reeve.Effect{reeve.Read, reeve.Local} {
		for _, at := range []int{0, 1, 2} {
			g, dir := kit.NewBlockingTool(), t.TempDir()
			hold := func() { g.Reached <- struct{}{}; <-g.Release }
			x := kit.Tool("hold", effect, func(context.Context, *reeve.Invocation) (any, error) {
				if effect == reeve.Read {
					hold()
				}
				return "held", nil
			})
			if effect == reeve.Local { // stopped while the gate still looks at it
				x.Check = func(context.Context, *reeve.Invocation) error { hold(); return nil }
			}
			h := reevetest.StartWith(t, host.Config{Dir: dir}, x)
			a := h.Agent("coach", "hold", "write_file")
			steps := []kit.Object{kit.WriteFileStep("/0.txt", "0"), kit.WriteFileStep("/1.txt", "1"),
				kit.WriteFileStep("/2.txt", "2")}
			steps[at] = kit.Object{"tool": "hold"}
			kit.SetRehearsal(h, a.ID, "done", steps...)
			h.Want(201, nil, "POST", "/api/agents/coach/wake", kit.Object{})
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() {
				_, err := h.Step(ctx)
				done <- err
			}()
			<-g.Reached
			stop()
			close(g.Release)
			<-done // it may say that it was stopped
			h.Stop()
			h = reevetest.StartWith(t, host.Config{Dir: dir}, x)
			kit.WaitUntilIdle(h)
			run := kit.ListRuns(h, "")[0]
			var did []string
			for _, m := range kit.ListThread(h, a.ID, "run="+run.ID) {
				switch {
				case m.Kind == reeve.Action:
					did = append(did, kit.ActionInfo(t, m).Tool)
				case m.Kind == reeve.ToolResult && kit.ResultInfo(t, m).Status != "success":
					t.Errorf("%s, stopped at step %d: %s", effect, at, m.Content)
				}
			}
			if run.State != reeve.RunCompleted || committed(h, "write_file") != 2 || len(did) != 3 {
				t.Errorf("%s, stopped at step %d: it did %v, run %+v", effect, at, did, run)
			}
		}
	}
}

// A call that was let through before its run was ended is not made after.
func TestL08_NoCallSlipsPastAnEnd(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(h *reevetest.Host){
		"cancelled": func(h *reevetest.Host) {
			h.Want(200, nil, "POST", "/api/runs/"+kit.ListRuns(h, "")[0].ID+"/cancel", kit.Object{})
		},
		"destroyed": func(h *reevetest.Host) {
			h.Want(200, nil, "PATCH", "/api/agents/coach", kit.Object{"lifecycle": "destroyed"})
		},
		"stopped": func(h *reevetest.Host) { h.Want(http.StatusNoContent, nil, "POST", "/api/stop", kit.Object{}) },
	} {
		g := kit.NewBlockingTool()
		var made kit.Counter
		x := kit.Tool("act", reeve.Unsafe, made.Handle)
		x.Check = func(context.Context, *reeve.Invocation) error { // after the gate has looked at the run
			g.Reached <- struct{}{}
			<-g.Release
			return nil
		}
		h := reevetest.Start(t, x)
		a := h.Agent("coach", "act")
		kit.SetRehearsal(h, a.ID, "done", kit.Object{"tool": "act"}, kit.Object{"tool": "act"})
		h.Want(201, nil, "POST", "/api/agents/coach/wake", kit.Object{})
		kit.StepInBackground(t, h)
		<-g.Reached
		end(h)
		close(g.Release)
		kit.WaitUntilIdle(h)
		if n := made.Count(); n != 0 || committed(h, "act") != 0 || kit.ListRuns(h, "")[0].State != reeve.RunCancelled {
			t.Errorf("%s: %d calls were made, %d kept; run %+v", name, n, committed(h, "act"), kit.ListRuns(h, "")[0])
		}
	}
}
