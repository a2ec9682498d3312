package host_test

import (
	"context"
	"net/http"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/reevetest"
)

// No call is added to a run that has ended, whatever its tool does. What was called before is still answered by its
// key.
func TestNoCallIsAddedToARunThatHasEnded(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, cfg host.Config) {
		t.Parallel()
		var ran counter
		h := reevetest.Run(t, cfg, tool("look", reeve.Read, ran.handle), tool("note", reeve.Local, ran.handle),
			tool("send", reeve.Keyed, ran.handle),
			tool("shout", reeve.Unsafe, ran.handle))
		a := persona(h, "bot", object{"config": plan("done")}, "look", "note", "send", "shout")
		run := woken(h, a)
		for _, id := range []string{"look", "note", "send", "shout"} {
			if _, p, status := do(h, a.ID,
				call{"tool": id, "args": object{}, "run": run.ID}); status != http.StatusConflict ||
				p.Code != reeve.Conflict || p.Hint == "" {
				t.Errorf("%s: %d %+v", id, status, p)
			}
		}
		if ran.count() != 0 {
			t.Errorf("something was done %d times", ran.count())
		}
		for _, id := range []string{"look", "note"} { // a run that Reeve has not made is the caller's own affair
			if res, p, status := do(h, a.ID,
				call{"tool": id, "args": object{}, "run": "mine"}); status != http.StatusOK || res.IsError {
				t.Errorf("%s: %d %+v", id, status, p)
			}
		}
	})
}

// A call that is under way while its run ends is not added to it: it is refused, and what it has changed is taken back.
func TestACallThatItsRunDoesNotWaitFor(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, cfg host.Config) {
		t.Parallel()
		begun, end, entered, leave := make(chan struct{}), make(chan struct{}), make(chan struct{}, 1),
			make(chan struct{})
		brain := tool("brain", reeve.Read, func(context.Context, *reeve.Invocation) (any, error) {
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
		h := reevetest.Run(t, cfg, brain, tool("look", reeve.Read, slow), tool("note", reeve.Local, slow))
		a := persona(h, "bot", object{"config": plan("done", object{"tool": "brain", "args": object{}})}, "brain",
			"look", "note")
		var w reeve.Wake
		h.Want(http.StatusCreated, &w, "POST", "/api/agents/"+a.ID+"/wake", object{})
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
			_, p, status := do(h, a.ID, call{"tool": kind, "args": object{}, "run": run.ID})
			got <- answer{p, status}
		}()
		<-entered
		close(end)
		eventually(t, "the run to end", func() bool { return runOf(h, a).State.IsFinal() })
		close(leave)
		if x := <-got; x.status != http.StatusConflict || x.p.Code != reeve.Conflict {
			t.Errorf("%d %+v", x.status, x.p)
		}
	})
}

// woken wakes an agent and gives the run, once it has ended.
func woken(h *reevetest.Host, a reeve.Agent) reeve.Run {
	h.T.Helper()
	h.Want(http.StatusCreated, nil, "POST", "/api/agents/"+a.ID+"/wake", object{})
	eventually(h.T, "a run to end", func() bool { return runOf(h, a).State.IsFinal() })
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
