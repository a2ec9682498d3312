package host_test

import (
	"context"
	"net/http"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/reevetest"
	"reeve/test/kit"
)

// No call is added to a run that has ended, whatever its tool does. What was called before is still answered by its
// key.
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
		run := woken(h, a)
		for _, id := range []string{"look", "note", "send", "shout"} {
			if _, p, status := kit.TryCall(h, a.ID,
				kit.Call{"tool": id, "args": kit.Object{}, "run": run.ID}); status != http.StatusConflict ||
				p.Code != reeve.Conflict || p.Hint == "" {
				t.Errorf("%s: %d %+v", id, status, p)
			}
		}
		if ran.Count() != 0 {
			t.Errorf("something was done %d times", ran.Count())
		}
		for _, id := range []string{"look", "note"} { // a run that Reeve has not made is the caller's own affair
			if res, p, status := kit.TryCall(h, a.ID,
				kit.Call{"tool": id, "args": kit.Object{}, "run": "mine"}); status != http.StatusOK || res.IsError {
				t.Errorf("%s: %d %+v", id, status, p)
			}
		}
	})
}

// A call that is under way while its run ends is not added to it: it is refused, and what it has changed is taken back.
func TestACallThatItsRunDoesNotWaitFor(t *testing.T) {
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
		run := runOf(h, a)
		kind := "note"
		if cfg.Database == "" {
			kind = "look" // where one writes at a time, the run cannot end while a local tool does
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
		kit.Eventually(t, "the run to end", func() bool { return runOf(h, a).State.Final() })
		close(leave)
		if x := <-got; x.status != http.StatusConflict || x.p.Code != reeve.Conflict {
			t.Errorf("%d %+v", x.status, x.p)
		}
	})
}

// woken wakes an agent and gives the run, once it has ended.
func woken(h *reevetest.Host, a reeve.Agent) reeve.Run {
	h.T.Helper()
	h.Want(http.StatusCreated, nil, "POST", "/api/agents/"+a.ID+"/wake", kit.Object{})
	kit.Eventually(h.T, "a run to end", func() bool { return runOf(h, a).State.Final() })
	return runOf(h, a)
}

// runOf gives an agent's newest run; empty if there is none yet.
func runOf(h *reevetest.Host, a reeve.Agent) reeve.Run {
	h.T.Helper()
	var list api.RunList
	h.Want(http.StatusOK, &list, "GET", "/api/runs?limit=1&agent="+a.ID, nil)
	if len(list.Runs) == 0 {
		return reeve.Run{}
	}
	return list.Runs[0]
}
