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
)

// gatekeeper is a read that waits until it is let go, so that a test can act while a run is under way.
type gatekeeper struct{ reached, open chan struct{} }

func newGatekeeper() *gatekeeper {
	return &gatekeeper{reached: make(chan struct{}, 10), open: make(chan struct{})}
}

func (g *gatekeeper) tool() reeve.Tool {
	x := tool("hold", reeve.Read, func(ctx context.Context, _ *reeve.Invocation) (any, error) {
		g.reached <- struct{}{}
		select {
		case <-g.open:
			return "go", nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
	x.TimeoutMS = 60_000
	return x
}

// emitter is a local tool that tells of what its arguments say.
func emitter() reeve.Tool {
	return tool("emit", reeve.Local, func(_ context.Context, inv *reeve.Invocation) (any, error) {
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
	for _, op := range operations(h) {
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
				h.Want(400, nil, "POST", "/api/agents", object{"name": "stillborn", "lifecycle": from})
				made = "active"
			}
			h.Want(201, &a, "POST", "/api/agents", object{"name": fmt.Sprint("a", i), "lifecycle": made})
			status := 409
			if from == next || strings.Contains(to, next) {
				status = 200
			}
			h.Want(200, nil, "PATCH", "/api/agents/"+a.ID, object{"lifecycle": from})
			h.Want(status, nil, "PATCH", "/api/agents/"+a.ID, object{"lifecycle": next})
		}
	}
}

// Destroying an agent ends its timers and subscriptions, skips what waits, ends its run, and what the run still tries
// is refused.
func TestL01_DestroyingEndsEverything(t *testing.T) {
	t.Parallel()
	g := newGatekeeper()
	h := reevetest.Start(t, g.tool(), emitter())
	a := h.Agent("coach", "hold", "write_file", "emit")
	other := h.Agent("other", "emit")
	rehearse(h, a.ID, "done", write("/before.txt", "1"), object{"tool": "hold"}, write("/after.txt", "2"),
		object{"tool": "emit", "args": object{"class": "key", "name": "X"}})
	watch(h, a.ID, "key", "TASK", "")
	watch(h, other.ID, "key", "X", "")
	var s api.Schedule
	h.Want(201, &s, "POST", "/api/schedules", object{"agent": a.ID, "goal": "g", "cadence_type": "cron",
		"cadence_value": "0 7 * * *"})
	live(t, h)
	h.Want(201, nil, "POST", "/api/agents/coach/wake", object{"input": "go"})
	<-g.reached
	h.Call(other.ID, "emit", object{"class": "key", "name": "TASK"}) // waits behind the run
	h.Want(200, nil, "PATCH", "/api/agents/coach", object{"lifecycle": "destroyed"})
	close(g.open)
	quiet(h)
	run := runsOf(h, "")[0]
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
	for _, w := range wakesOf(h, a.ID) {
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
	h.Want(409, nil, "POST", "/api/agents/coach/wake", object{})
	h.Want(409, nil, "PATCH", "/api/schedules/"+s.ID, object{"status": "active"})
	h.Want(409, nil, "POST", "/api/schedules", object{"agent": a.ID, "goal": "g", "cadence_type": "cron",
		"cadence_value": "0 7 * * *"})
	h.Want(409, nil, "POST", "/api/agents/coach/subscriptions", object{"class": "key", "name": "X"})
	h.Want(404, nil, "POST", "/api/schedules", object{"agent": "nobody", "goal": "g", "cadence_type": "cron",
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
			if mode.Allows(reason) != wakes {
				t.Errorf("%s, %s: %v", mode, reason, !wakes)
			}
		}
	}
	h := reevetest.Start(t, emitter())
	source := h.Agent("source", "emit")
	for _, mode := range []string{"autonomous", "interactive", "hybrid"} {
		var a reeve.Agent
		h.Want(201, &a, "POST", "/api/agents", object{"name": mode, "mode": mode, "config": plan("ok")})
		watch(h, a.ID, "key", "TASK", "")
		h.Want(201, nil, "POST", "/api/schedules", object{"agent": a.ID, "goal": "g", "cadence_type": "once",
			"cadence_value": time.Now().Add(2 * time.Second).UTC().Format(time.RFC3339Nano)})
	}
	h.Call(source.ID, "emit", object{"class": "key", "name": "TASK"})
	for _, mode := range []string{"autonomous", "interactive", "hybrid"} {
		h.Want(201, nil, "POST", "/api/agents/"+mode+"/wake", object{})
	}
	counts := func(mode string) map[reeve.Reason]int {
		n := map[reeve.Reason]int{}
		for _, r := range runsOf(h, "agent="+mode) {
			n[r.Reason]++
		}
		return n
	}
	eventually(t, "the schedules to fire", func() bool {
		h.RunUntilIdle(t.Context())
		return len(wakesOf(h, "interactive")) == 3 && counts("hybrid")[reeve.ReasonTimer] == 1 &&
			counts("autonomous")[reeve.ReasonTimer] == 1
	})
	quiet(h)
	for mode, want := range map[string]int{"autonomous": 1, "hybrid": 1, "interactive": 0} {
		n := counts(mode)
		if n[reeve.ReasonSubscription] != want || n[reeve.ReasonTimer] != want || n[reeve.ReasonManual] != 1 {
			t.Errorf("%s: %v", mode, n)
		}
	}
	for _, w := range wakesOf(h, "interactive") {
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
		rehearse(h, a.ID, "ok")
		watch(h, a.ID, class, "TASK", "")
	}
	for _, class := range []string{"key", "subtype", "id"} {
		h.Call(source.ID, "emit", object{"class": class, "name": "TASK"})
		h.Call(source.ID, "emit", object{"class": class, "name": "task"})
	}
	quiet(h)
	for _, class := range []string{"key", "subtype", "id"} {
		list := wakesOf(h, class)
		if len(list) != 1 || string(list[0].Token.Class) != class || list[0].Token.Name != "TASK" {
			t.Errorf("%s: %+v", class, list)
		}
	}
	if r := h.Do("POST", "/api/agents/key/subscriptions", object{"class": "colour", "name": "X"}); r.Status != 400 ||
		!strings.Contains(string(r.Body), "class") {
		t.Errorf("a token of no class: %d %s", r.Status, r.Body)
	}
	if res := h.Call(source.ID, "emit", object{"class": "colour", "name": "X"}); !res.IsError ||
		!strings.Contains(res.Message, "class") {
		t.Errorf("a token of no class was told: %+v", res)
	}
}

// Fifty edits within the window of 100 ms are one run that was triggered by all of them, and each of their keys is
// terminal. The server looks for work after every edit, so that without a window each would be a run of its own. The
// next edit, when the window is over, is another run.
func TestL04_FiftyEditsOneRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := inBubble(t, host.Config{})
		var gym reeve.Category
		b.want(201, &gym, "POST", "/api/journal/categories", object{"name": "Gym"})
		var task reeve.Task
		b.want(201, &task, "POST", "/api/journal/tasks", object{"category_id": gym.ID, "title": "Squat"})
		b.agent("coach", object{"categories": []string{gym.ID}})
		b.want(201, nil, "POST", "/api/agents/coach/subscriptions", object{"class": "key", "name": "TASK"})
		b.pass(time.Second, 100*time.Millisecond)
		if runs := b.runs("agent=coach"); len(runs) != 0 {
			t.Fatalf("%d runs before any edit", len(runs))
		}
		edit := func(i int) {
			b.want(200, nil, "PATCH", "/api/journal/tasks/"+task.ID, object{"title": fmt.Sprint("Squat ", i)})
		}
		for i := range 50 {
			edit(i)
			b.pass(time.Millisecond, time.Millisecond)
		}
		b.pass(time.Second, 5*time.Millisecond)
		runs := b.runs("agent=coach")
		if len(runs) != 1 || runs[0].Wakes != 50 || !runs[0].State.IsFinal() ||
			runs[0].Reason != reeve.ReasonSubscription {
			t.Fatalf("50 edits are %d runs: %+v", len(runs), runs)
		}
		var list api.WakeList
		b.want(200, &list, "GET", "/api/runs/"+runs[0].ID+"/wakes?limit=100", nil)
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
		b.pass(time.Second, 5*time.Millisecond)
		if runs := b.runs("agent=coach"); len(runs) != 2 || runs[0].Wakes != 1 {
			t.Errorf("after one more edit: %+v", runs)
		}
	})
}

// A change during a run is one more run; the agent's own writes are none.
func TestL05_AChangeDuringARunAndItsOwn(t *testing.T) {
	t.Parallel()
	g := newGatekeeper()
	h := reevetest.Start(t, g.tool(), emitter())
	source, a := h.Agent("source", "emit"), h.Agent("coach", "emit", "hold")
	rehearse(h, a.ID, "ok", object{"tool": "emit", "args": object{"class": "key", "name": "TASK"}},
		object{"tool": "hold"})
	watch(h, a.ID, "key", "TASK", "")
	live(t, h)
	h.Want(201, nil, "POST", "/api/agents/coach/wake", object{})
	<-g.reached
	for range 5 {
		h.Call(source.ID, "emit", object{"class": "key", "name": "TASK"})
	}
	close(g.open)
	eventually(t, "the follow-up to end", func() bool { return len(runsOf(h, "agent=coach&state=completed")) == 2 })
	quiet(h)
	runs := runsOf(h, "agent=coach")
	if len(runs) != 2 || runs[0].Wakes != 5 || runs[0].Reason != reeve.ReasonSubscription {
		t.Errorf("runs: %+v", runs)
	}
}

// Predicates see the entity as it is when the window is over.
func TestL06_PredicatesSeeTheEntityAfterTheBatch(t *testing.T) {
	t.Parallel()
	h := reevetest.Start(t)
	var gym, home reeve.Category
	h.Want(201, &gym, "POST", "/api/journal/categories", object{"name": "Gym"})
	h.Want(201, &home, "POST", "/api/journal/categories", object{"name": "Home"})
	a := h.Agent("coach")
	patch(h, a, object{"categories": []string{gym.ID, home.ID}})
	rehearse(h, a.ID, "ok")
	watch(h, a.ID, "key", "TASK", `entity.category_id == "`+gym.ID+`"`)
	task := func(category, title string) (k reeve.Task) {
		h.Want(201, &k, "POST", "/api/journal/tasks", object{"category_id": category, "title": title})
		return k
	}
	ran := func(what string, want int) {
		t.Helper()
		quiet(h)
		if n := len(runsOf(h, "agent=coach")); n != want {
			t.Errorf("%s: %d runs, want %d", what, n, want)
		}
	}
	squat := task(gym.ID, "Squat")
	ran("a task in the category", 1)
	task(home.ID, "Dishes")
	ran("a task elsewhere", 1)
	h.Want(200, nil, "PATCH", "/api/journal/tasks/"+squat.ID, object{"title": "Deep squat"})
	h.Want(200, nil, "PATCH", "/api/journal/tasks/"+squat.ID, object{"category_id": home.ID})
	ran("changed and moved out within the window", 1)
	press := task(gym.ID, "Press")
	h.Want(http.StatusNoContent, nil, "DELETE", "/api/journal/tasks/"+press.ID, nil)
	ran("made and gone within the window", 1)
	for _, w := range wakesOf(h, "coach") {
		if w.State == reeve.WakeSkipped && !strings.HasPrefix(w.Why, "the predicate is false") {
			t.Errorf("%+v", w)
		}
	}
	h.Want(200, nil, "PATCH", "/api/journal/tasks/"+squat.ID, object{"category_id": gym.ID})
	ran("moved in", 2)
	for _, bad := range []string{"entity.", "1 + 1", "nobody.knows == 1", `"text"`, strings.Repeat("(", 300)} {
		var p api.Problem
		h.Want(400, &p, "POST", "/api/agents/coach/subscriptions", object{"class": "key", "name": "TASK",
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
	patch(h, b, object{"categories": []string{gym.ID}})
	rehearse(h, b.ID, "ok")
	watch(h, b.ID, "key", "TASK", loop)
	start := time.Now()
	task(gym.ID, "Row")
	ran("a task beside a loop", 3)
	if n := len(runsOf(h, "agent=looper")); n != 0 || time.Since(start) > 10*time.Second {
		t.Errorf("a predicate without end held: %d runs in %s", n, time.Since(start))
	}
}

// The same demand has the same key, and a key that was served is not served again.
func TestL07_KeysAreDeterministic(t *testing.T) {
	t.Parallel()
	h := reevetest.Start(t, emitter())
	source, a := h.Agent("source", "emit"), h.Agent("coach")
	rehearse(h, a.ID, "ok")
	sub := watch(h, a.ID, "key", "TASK", "")
	var w, again reeve.Wake
	h.Want(201, &w, "POST", "/api/agents/coach/wake", object{}, "Idempotency-Key", "k1")
	quiet(h)
	h.Want(201, &again, "POST", "/api/agents/coach/wake", object{}, "Idempotency-Key", "k1")
	if again.RunKey != w.RunKey || w.RunKey != reeve.DeriveID("wake", "manual", a.ID, "owner", "k1") {
		t.Errorf("keys: %s, then %s", w.RunKey, again.RunKey)
	}
	if again.State != reeve.WakeTaken || again.RunID == "" {
		t.Errorf("the wake as it is by then: %+v", again)
	}
	h.Want(409, nil, "POST", "/api/agents/coach/wake", object{"input": "something else"}, "Idempotency-Key", "k1")
	res := h.Call(source.ID, "emit", object{"class": "key", "name": "TASK"}, "Idempotency-Key", "c1")
	quiet(h)
	h.Call(source.ID, "emit", object{"class": "key", "name": "TASK"}, "Idempotency-Key", "c1")
	quiet(h)
	if n := len(runsOf(h, "agent=coach")); n != 2 {
		t.Errorf("%d runs, want one by hand and one by the change", n)
	}
	for _, k := range wakesOf(h, a.ID) {
		if k.Reason == reeve.ReasonSubscription && k.RunKey != a.ID+"/"+sub.ID+"/"+res.OperationID {
			t.Errorf("the key %s does not derive from who, what and the change alone", k.RunKey)
		}
	}
}

// The plan is stored before it is acted on: after a crash the run follows it, whatever the config says by then.
func TestL09_TheStoredPlanIsReplayed(t *testing.T) {
	t.Parallel()
	g := newGatekeeper()
	h := reevetest.Start(t, g.tool())
	a := h.Agent("coach", "hold", "write_file", "read_file")
	rehearse(h, a.ID, "old plan", write("/1.txt", "one"), object{"tool": "read_file", "args": object{"path": "/1.txt"}},
		object{"tool": "hold"}, write("/2.txt", "two"))
	live(t, h)
	h.Want(201, nil, "POST", "/api/agents/coach/wake", object{})
	<-g.reached
	rehearse(h, a.ID, "new plan", write("/3.txt", "three"))
	g2 := newGatekeeper()
	close(g2.open)
	dead := crashed(h, g2.tool())
	close(g.open)
	quiet(dead)
	run := runsOf(dead, "")[0]
	if run.Output != "old plan" || run.State != reeve.RunCompleted || run.Attempts != 2 {
		t.Fatalf("the run: %+v", run)
	}
	var wrote []string
	thoughts := 0
	for _, m := range thread(dead, a.ID, "run="+run.ID) {
		switch m.Kind {
		case reeve.Thought:
			thoughts++
		case reeve.Action:
			wrote = append(wrote, actionInfo(t, m).Tool)
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
	big := tool("big", reeve.Read, func(context.Context, *reeve.Invocation) (any,
		error) {
		return strings.Repeat("x", 1<<20), nil
	})
	h := reevetest.Start(t, big)
	a := h.Agent("coach", "big", "write_file")
	var steps []object
	for i := range 20 {
		steps = append(steps, write(fmt.Sprintf("/%d.txt", i), "x"))
	}
	rehearse(h, a.ID, "ok", append(steps, object{"tool": "big"})...)
	h.Want(201, nil, "POST", "/api/agents/coach/wake", object{})
	quiet(h)
	run := runsOf(h, "")[0]
	list := thread(h, a.ID, "run="+run.ID)
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
	last := resultInfo(t, list[len(list)-1])
	if !last.Truncated || last.Hash == "" {
		t.Errorf("the large output: %+v", last)
	}
	h.Want(201, nil, "POST", "/api/agents/coach/wake", object{})
	quiet(h)
	again := thread(h, a.ID, "run="+run.ID)
	if string(mustJSON(list)) != string(mustJSON(again)) {
		t.Error("what was written has changed")
	}
	for _, method := range []string{"PUT", "PATCH", "DELETE"} {
		if r := h.Do(method, "/api/agents/coach/messages/"+list[0].ID, object{}); r.Status != 404 && r.Status != 405 {
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
				object{"policy": object{"tools": object{"write_file": "ask"}}})
			first := write("/1.txt", "1")
			first["must"] = must
			rehearse(h, a.ID, "done", first)
			h.Want(201, nil, "POST", "/api/agents/coach/wake", object{})
			h.RunUntilIdle(t.Context())
			run := runsOf(h, "")[0]
			if run.State != reeve.RunParked {
				t.Fatalf("the run: %+v", run)
			}
			decide(h, inbox(h).Approvals[0].ID, decision)
			quiet(h)
			want, wrote := reeve.RunCompleted, 1
			if decision == "deny" {
				if wrote = 0; must {
					want = reeve.RunFailed
				}
			}
			if run = runsOf(h, "")[0]; run.State != want || run.Attempts != 1 || committed(h, "write_file") != wrote {
				t.Errorf("%s, must %v: %+v", decision, must, run)
			}
		}
	}
	// Cancelled while it runs: nothing more of it is done, and its agent is free.
	g := newGatekeeper()
	h := reevetest.Start(t, g.tool())
	a := h.Agent("coach", "hold", "write_file")
	rehearse(h, a.ID, "done", write("/1.txt", "1"), object{"tool": "hold"}, write("/2.txt", "2"))
	live(t, h)
	h.Want(201, nil, "POST", "/api/agents/coach/wake", object{})
	<-g.reached
	run := runsOf(h, "")[0]
	var ended reeve.Run
	h.Want(200, &ended, "POST", "/api/runs/"+run.ID+"/cancel", object{})
	if ended.State != reeve.RunCancelled || ended.Spent.Calls != 1 {
		t.Errorf("cancelled: %+v", ended)
	}
	h.Want(409, nil, "POST", "/api/runs/"+run.ID+"/cancel", object{})
	close(g.open)
	rehearse(h, a.ID, "next")
	h.Want(201, nil, "POST", "/api/agents/coach/wake", object{})
	eventually(t, "the next run", func() bool { return len(runsOf(h, "state=completed")) == 1 })
	if n := committed(h, "write_file"); n != 1 {
		t.Errorf("%d writes, want the one before", n)
	}
	for _, p := range pairsOf(h, a.ID, run.ID) {
		if p[1].ID == "" {
			t.Errorf("action %s has no result", p[0].ID)
		}
	}
	// Cancelled while it waits: nobody is asked any more, and approving it later does nothing.
	h.Want(200, nil, "PATCH", "/api/agents/coach", object{"policy": object{"tools": object{"write_file": "ask"}}})
	rehearse(h, a.ID, "done", write("/3.txt", "3"))
	h.Want(201, nil, "POST", "/api/agents/coach/wake", object{})
	eventually(t, "it to wait", func() bool { return len(runsOf(h, "state=parked")) == 1 })
	void := inbox(h).Approvals[0]
	h.Want(200, nil, "POST", "/api/runs/"+runsOf(h, "state=parked")[0].ID+"/cancel", object{})
	var lapsed reeve.Approval
	if h.Want(200, &lapsed, "GET", "/api/approvals/"+void.ID, nil); lapsed.State != reeve.ApprovalLapsed ||
		len(inbox(h).Approvals) != 0 {
		t.Errorf("%+v, and the inbox has %d", lapsed, len(inbox(h).Approvals))
	}
	for range 2 {
		h.Want(409, nil, "POST", "/api/approvals/"+void.ID+"/decision", object{"decision": "approve"})
	}
	if op := operation(h, void.OperationID); op.State != reeve.DeniedOp || op.ResultID == "" ||
		len(inbox(h).Approvals) != 0 {
		t.Errorf("%+v, and the inbox has %d", op, len(inbox(h).Approvals))
	}
	if n := committed(h, "write_file"); n != 1 {
		t.Errorf("%d writes after an end", n)
	}
}

// pairsOf is pairs for a run's thread, which begins with its plan.
func pairsOf(h *reevetest.Host, agent, run string) map[string][2]reeve.Message {
	h.T.Helper()
	out := map[string][2]reeve.Message{}
	for _, m := range thread(h, agent, "run="+run) {
		switch m.Kind {
		case reeve.Action:
			out[m.ID] = [2]reeve.Message{m}
		case reeve.ToolResult:
			p := out[m.ActionID]
			p[1] = m
			out[m.ActionID] = p
		default:
		}
	}
	return out
}

// A person who takes a call of a run back does not put the run out of step.
func TestL08_AnUndoDoesNotMoveThePlan(t *testing.T) {
	t.Parallel()
	h := reevetest.Start(t)
	a := h.Agent("coach", "write_file", "schedule_create", "schedule_delete")
	h.Want(200, nil, "PATCH", "/api/agents/coach", object{"policy": object{"tools": object{"write_file": "ask"}}})
	rehearse(h, a.ID, "done", object{"tool": "schedule_create", "args": object{"goal": "g", "cadence_type": "interval",
		"cadence_value": "1h"}}, write("/1.txt", "1"), write("/2.txt", "2"))
	h.Want(201, nil, "POST", "/api/agents/coach/wake", object{})
	h.RunUntilIdle(t.Context())
	for _, op := range operations(h) {
		if op.Tool == "schedule_create" {
			h.Do("POST", "/api/operations/"+op.ID+"/undo", object{})
		}
	}
	for range 2 {
		decide(h, inbox(h).Approvals[0].ID, "approve")
		quiet(h)
	}
	if run := runsOf(h, "")[0]; run.State != reeve.RunCompleted || committed(h, "write_file") != 2 {
		t.Errorf("%d writes, run %+v", committed(h, "write_file"), run)
	}
}

// The kill switch: nothing starts, what is queued is skipped, due or not, and a run that was under way changes nothing
// more.
func TestG25_StopSkipsWhatIsQueued(t *testing.T) {
	t.Parallel()
	g := newGatekeeper()
	h := reevetest.Start(t, g.tool(), emitter())
	source, a := h.Agent("source", "emit"), h.Agent("coach", "hold", "write_file")
	rehearse(h, a.ID, "done", object{"tool": "hold"}, write("/1.txt", "1"))
	watch(h, a.ID, "key", "TASK", "")
	live(t, h)
	h.Want(201, nil, "POST", "/api/agents/coach/wake", object{})
	<-g.reached
	h.Call(source.ID, "emit", object{"class": "key", "name": "TASK"})
	h.Want(http.StatusNoContent, nil, "POST", "/api/stop", object{"agent": "coach", "reason": "enough"})
	for _, w := range wakesOf(h, "coach") { // at once, and not when it is due
		if w.Reason == reeve.ReasonSubscription && (w.State != reeve.WakeSkipped || w.Why == "") {
			t.Errorf("a queued wake: %+v", w)
		}
	}
	close(g.open)
	h.Call(source.ID, "emit", object{"class": "key", "name": "TASK"}) // queued while it is stopped
	h.Want(201, nil, "POST", "/api/agents/coach/wake", object{})
	quiet(h)
	if runs := runsOf(h, "agent=coach"); len(runs) != 1 || runs[0].State != reeve.RunCancelled ||
		committed(h, "write_file") != 0 {
		t.Errorf("runs: %+v", runs)
	}
	h.Want(http.StatusNoContent, nil, "POST", "/api/resume", object{"agent": "coach"})
	quiet(h)
	if runs := runsOf(h, "agent=coach"); len(runs) != 1 {
		t.Errorf("what was skipped ran after all: %+v", runs)
	}
	h.Want(201, nil, "POST", "/api/agents/coach/wake", object{})
	eventually(t, "it to run again", func() bool { return committed(h, "write_file") == 1 })
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
		g := newGatekeeper()
		var looked counter // a stopped agent may look, as long as it runs
		h := reevetest.StartWith(t, cfg, g.tool(), tool("look", reeve.Read, looked.handle))
		a := h.Agent("coach", "hold", "look")
		rehearse(h, a.ID, "done", object{"tool": "hold"}, object{"tool": "look"})
		h.Want(201, nil, "POST", "/api/agents/coach/wake", object{})
		done := make(chan error, 1)
		go func() {
			_, err := h.Step(t.Context())
			done <- err
		}()
		<-g.reached
		asked.Store(true)
		req := httptest.NewRequestWithContext(ctx, "POST", "http://127.0.0.1/api/stop",
			strings.NewReader(string(mustJSON(object{"agent": whom}))))
		req.Header.Set("Authorization", "Bearer "+h.Token)
		req.Header.Set("X-Workspace-Id", "default")
		req.Header.Set("Content-Type", "application/json")
		h.Server.Config.Handler.ServeHTTP(httptest.NewRecorder(), req)
		close(g.open)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if run := runsOf(h, "")[0]; ctx.Err() == nil || looked.count() != 0 || run.State != reeve.RunCancelled {
			t.Errorf("stop %q: it looked %d times, run %+v", whom, looked.count(), run)
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
	g := newGatekeeper()
	h := reevetest.StartWith(t, cfg, g.tool())
	a := h.Agent("coach", "hold", "write_file")
	rehearse(h, a.ID, "done", object{"tool": "hold"}, write("/1.txt", "1"))
	h.Want(201, nil, "POST", "/api/agents/coach/wake", object{})
	done := make(chan error, 1)
	go func() {
		_, err := h.Step(t.Context())
		done <- err
	}()
	<-g.reached
	broken.Store(true)
	h.Want(http.StatusInternalServerError, nil, "PATCH", "/api/agents/coach", object{"lifecycle": "destroyed"})
	h.Want(http.StatusInternalServerError, nil, "DELETE", "/api/agents/coach", nil)
	broken.Store(false)
	close(g.open)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	quiet(h)
	if run := runsOf(h, "")[0]; run.State != reeve.RunCompleted || committed(h, "write_file") != 1 {
		t.Errorf("%d writes, run %+v", committed(h, "write_file"), run)
	}
}

// A server that is told to stop in the middle of a run loses no step of it and repeats none, wherever it was.
func TestL08_AnOrderlyStopLosesNoStep(t *testing.T) {
	t.Parallel()
	for _, effect := range []reeve.Effect{reeve.Read, reeve.Local} {
		for _, at := range []int{0, 1, 2} {
			g, dir := newGatekeeper(), t.TempDir()
			hold := func() { g.reached <- struct{}{}; <-g.open }
			x := tool("hold", effect, func(context.Context, *reeve.Invocation) (any, error) {
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
			steps := []object{write("/0.txt", "0"), write("/1.txt", "1"), write("/2.txt", "2")}
			steps[at] = object{"tool": "hold"}
			rehearse(h, a.ID, "done", steps...)
			h.Want(201, nil, "POST", "/api/agents/coach/wake", object{})
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() {
				_, err := h.Step(ctx)
				done <- err
			}()
			<-g.reached
			stop()
			close(g.open)
			<-done // it may say that it was stopped
			h.Stop()
			h = reevetest.StartWith(t, host.Config{Dir: dir}, x)
			quiet(h)
			run := runsOf(h, "")[0]
			var did []string
			for _, m := range thread(h, a.ID, "run="+run.ID) {
				switch {
				case m.Kind == reeve.Action:
					did = append(did, actionInfo(t, m).Tool)
				case m.Kind == reeve.ToolResult && resultInfo(t, m).Status != "success":
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
			h.Want(200, nil, "POST", "/api/runs/"+runsOf(h, "")[0].ID+"/cancel", object{})
		},
		"destroyed": func(h *reevetest.Host) {
			h.Want(200, nil, "PATCH", "/api/agents/coach", object{"lifecycle": "destroyed"})
		},
		"stopped": func(h *reevetest.Host) { h.Want(http.StatusNoContent, nil, "POST", "/api/stop", object{}) },
	} {
		g := newGatekeeper()
		var made counter
		x := tool("act", reeve.Unsafe, made.handle)
		x.Check = func(context.Context, *reeve.Invocation) error { // after the gate has looked at the run
			g.reached <- struct{}{}
			<-g.open
			return nil
		}
		h := reevetest.Start(t, x)
		a := h.Agent("coach", "act")
		rehearse(h, a.ID, "done", object{"tool": "act"}, object{"tool": "act"})
		h.Want(201, nil, "POST", "/api/agents/coach/wake", object{})
		live(t, h)
		<-g.reached
		end(h)
		close(g.open)
		quiet(h)
		if n := made.count(); n != 0 || committed(h, "act") != 0 || runsOf(h, "")[0].State != reeve.RunCancelled {
			t.Errorf("%s: %d calls were made, %d kept; run %+v", name, n, committed(h, "act"), runsOf(h, "")[0])
		}
	}
}
