package wake_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/reevetest"
	"reeve/test/kit"
)

// No call is added to a run that has ended, whatever its tool. Earlier calls are still answered by their key.
func TestNoCallIsAddedToARunThatHasEnded(t *testing.T) {
	t.Parallel()
	kit.OnBothDatabases(t, func(t *testing.T, cfg host.Config) {
		t.Parallel()
		var ran kit.Counter
		h := reevetest.Run(t, cfg, kit.Tool("look", reeve.Read, ran.Handle), kit.Tool("note", reeve.Local, ran.Handle),
			kit.Tool("send", reeve.Keyed, ran.Handle),
			kit.Tool("shout", reeve.Unsafe, ran.Handle))
		a := kit.NewPersona(h, "bot", kit.Object{"config": kit.RehearsalConfig("done")}, "look", "note", "send",
			"shout")
		run := wakeAndWait(h, a)
		for _, id := range []string{"look", "note", "send", "shout"} {
			if _, p, status := kit.TryCall(h, a.ID, kit.Call{"tool": id, "args": kit.Object{}, "run": run.ID}); status != http.StatusConflict ||
				p.Code != reeve.Conflict || p.Hint == "" {
				t.Errorf("%s: %d %+v", id, status, p)
			}
		}
		if ran.Count() != 0 {
			t.Errorf("something was done %d times", ran.Count())
		}
		for _, id := range []string{"look", "note"} { // a run name that a caller invents is not checked
			if res, p, status := kit.TryCall(h, a.ID, kit.Call{"tool": id, "args": kit.Object{}, "run": "mine"}); status != http.StatusOK || res.IsError {
				t.Errorf("%s: %d %+v", id, status, p)
			}
		}
	})
}

// A call that is executing while its run ends is refused, and its change is rolled back.
func TestCallDuringTheEndOfItsRunIsRefused(t *testing.T) {
	t.Parallel()
	kit.OnBothDatabases(t, func(t *testing.T, cfg host.Config) {
		t.Parallel()
		begun, end, entered, leave := make(chan struct{}), make(chan struct{}), make(chan struct{}, 1),
			make(chan struct{})
		brain := kit.Tool("brain", reeve.Read, func(context.Context, *reeve.Invocation) (any, error) {
			close(begun)
			<-end
			return "on", nil
		})
		slow := func(context.Context, *reeve.Invocation) (any, error) {
			select {
			case entered <- struct{}{}:
			default:
			}
			<-leave
			return "late", nil
		}
		h := reevetest.Run(t, cfg, brain, kit.Tool("look", reeve.Read, slow), kit.Tool("note", reeve.Local, slow))
		a := kit.NewPersona(h, "bot",
			kit.Object{"config": kit.RehearsalConfig("done", kit.Object{"tool": "brain", "args": kit.Object{}})},
			"brain",
			"look", "note")
		var w reeve.Wake
		h.Want(http.StatusCreated, &w, "POST", "/api/agents/"+a.ID+"/wake", kit.Object{})
		<-begun
		run := getNewestRun(h, a)
		kind := "note"
		if cfg.Database == "" {
			kind = "look" // with SQLite's single writer, the run cannot end while a local tool runs
		}
		type answer struct {
			p      api.Problem
			status int
		}
		got := make(chan answer, 1)
		go func() {
			_, p, status := kit.TryCall(h, a.ID, kit.Call{"tool": kind, "args": kit.Object{}, "run": run.ID})
			got <- answer{p, status}
		}()
		<-entered
		close(end)
		kit.Eventually(t, "the run to end", func() bool { return getNewestRun(h, a).State.IsFinal() })
		close(leave)
		if x := <-got; x.status != http.StatusConflict || x.p.Code != reeve.Conflict {
			t.Errorf("%d %+v", x.status, x.p)
		}
	})
}

// wakeAndWait wakes an agent and returns the run when it has ended.
func wakeAndWait(h *reevetest.Host, a reeve.Agent) reeve.Run {
	h.T.Helper()
	h.Want(http.StatusCreated, nil, "POST", "/api/agents/"+a.ID+"/wake", kit.Object{})
	kit.Eventually(h.T, "a run to end", func() bool { return getNewestRun(h, a).State.IsFinal() })
	return getNewestRun(h, a)
}

// getNewestRun returns the newest run of an agent, or an empty run.
func getNewestRun(h *reevetest.Host, a reeve.Agent) reeve.Run {
	h.T.Helper()
	var list api.RunList
	h.Want(http.StatusOK, &list, "GET", "/api/runs?limit=1&agent="+a.ID, nil)
	if len(list.Runs) == 0 {
		return reeve.Run{}
	}
	return list.Runs[0]
}

// With the kill switch on nothing starts, queued wakes are skipped, due or not, and a run in progress changes nothing
// more.
func TestG25_StopSkipsWhatIsQueued(t *testing.T) {
	t.Parallel()
	g := kit.NewBlockingTool()
	h := reevetest.Start(t, g.Tool(), newEmitter())
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
		countCommitted(h, "write_file") != 0 {
		t.Errorf("runs: %+v", runs)
	}
	h.Want(http.StatusNoContent, nil, "POST", "/api/resume", kit.Object{"agent": "coach"})
	kit.WaitUntilIdle(h)
	if runs := kit.ListRuns(h, "agent=coach"); len(runs) != 1 {
		t.Errorf("what was skipped ran after all: %+v", runs)
	}
	h.Want(201, nil, "POST", "/api/agents/coach/wake", kit.Object{})
	kit.Eventually(t, "it to run again", func() bool { return countCommitted(h, "write_file") == 1 })
}

// A caller that turns the kill switch on and disconnects has stopped what runs.
func TestG25_StopWorksWithoutItsCaller(t *testing.T) {
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

// An end whose commit fails ends nothing: the agent and its runs continue.
func TestL08_FailedEndEndsNothing(t *testing.T) {
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
	if run := kit.ListRuns(h, "")[0]; run.State != reeve.RunCompleted || countCommitted(h, "write_file") != 1 {
		t.Errorf("%d writes, run %+v", countCommitted(h, "write_file"), run)
	}
}

// A server that stops in the middle of a run neither loses nor repeats a step.
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
			if run.State != reeve.RunCompleted || countCommitted(h, "write_file") != 2 || len(did) != 3 {
				t.Errorf("%s, stopped at step %d: it did %v, run %+v", effect, at, did, run)
			}
		}
	}
}

// A call that was decided before its run ended is not made afterwards.
func TestL08_NoCallAfterTheEndOfItsRun(t *testing.T) {
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
		if n := made.Count(); n != 0 || countCommitted(h, "act") != 0 || kit.ListRuns(h, "")[0].State != reeve.RunCancelled {
			t.Errorf("%s: %d calls were made, %d kept; run %+v", name, n, countCommitted(h, "act"), kit.ListRuns(h, "")[0])
		}
	}
}
