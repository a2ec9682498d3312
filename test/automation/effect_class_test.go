package automation_test

import (
	"context"
	"net/http"
	"sync"
	"testing"

	"reeve"
	"reeve/reevetest"
	"reeve/test/kit"
)

// twoLetters is a script that sends a letter for each of two items and hides errors if it can.
const twoLetters = `
for (const id of ['a', 'b']) await Items.withItem(id, 'Letter ' + id, async (ctx) => {
  if (ctx.item.isDone) return;
  try { await General.send({ to: id }) } catch (e) { Console.log(e.code); await ctx.ignore(e) }
})`

// crashMidScript runs twoLetters until the first request has had its effect but no answer, and returns the automation
// on a host that started as after a crash at that moment.
func crashMidScript(t *testing.T, w *kit.Witness, effect reeve.Effect, spec map[string]any) *kit.Automation {
	t.Helper()
	h := reevetest.StartWith(t, kit.FastConfig(t))
	s := map[string]any{"method": "POST", "url": w.URL + "/send"}
	for k, v := range spec {
		s[k] = v
	}
	limit := 60_000
	if effect == reeve.Verifiable {
		limit = 3_000 // for so long nothing is sent again
	}
	kit.DefineHTTPTool(h, "send", effect, s, map[string]any{"timeout_ms": limit})
	a := &kit.Automation{Host: h, T: t, Name: "letters"}
	h.Want(201, nil, "POST", "/api/automations", kit.Call{"name": a.Name, "source": twoLetters,
		"tools": []string{"send"}})
	h.Want(201, nil, "POST", a.Path("/runs"), kit.Call{})
	release := make(chan struct{})
	w.After = func(n int, _ http.ResponseWriter, r *http.Request) bool {
		if n == 1 {
			select {
			case <-release:
			case <-r.Context().Done():
			}
		}
		return false
	}
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = h.Step(ctx) })
	t.Cleanup(func() { close(release); wg.Wait() })
	<-w.Reached
	next := &kit.Automation{Host: kit.RestartAfterCrash(h), T: t, Name: a.Name}
	stop() // the crashed host starts nothing more, even once its request has timed out
	kit.Equal(t, kit.JoinValues(len(kit.ListOperations(next.Host)), kit.ListOperations(next.Host)[0].State,
		next.ItemState("a")),
		"1 dispatched processing", "what the crash left")
	return next
}

func TestG09_KeyedInAScript(t *testing.T) {
	t.Parallel()
	w := kit.NewWitness(t)
	a := crashMidScript(t, w, reeve.Keyed, nil)
	a.WaitForRun(reeve.RunCompleted)
	effects, requests := w.Count()
	kit.Equal(t, kit.JoinValues(effects, requests, w.Keys()[0] == w.Keys()[1], a.ItemState("a"), a.ItemState("b")),
		"2 3 true done done",
		"sent again with the same key")
}

func TestG10_VerifiableInAScript(t *testing.T) {
	t.Parallel()
	t.Run("applied", func(t *testing.T) {
		w := kit.NewWitness(t)
		a := crashMidScript(t, w, reeve.Verifiable, kit.VerifySpec(w, nil))
		a.WaitForRun(reeve.RunCompleted)
		effects, requests := w.Count()
		kit.Equal(t, kit.JoinValues(effects, requests, a.ItemState("a"), a.ItemState("b")), "2 2 done done",
			"the look-up decides")
	})
	t.Run("not applied", func(t *testing.T) {
		w := kit.NewWitness(t)
		a := crashMidScript(t, w, reeve.Verifiable, kit.VerifySpec(w, nil))
		w.Forget() // the witness lost its data
		first := w.Keys()[0]
		a.WaitForRun(reeve.RunCompleted)
		effects, _ := w.Count()
		kit.Equal(t, kit.JoinValues(effects, w.CountRequests(first), a.ItemState("a"), a.ItemState("b")),
			"2 2 done done",
			"it is sent again")
	})
	t.Run("cannot tell", func(t *testing.T) {
		w := kit.NewWitness(t)
		a := crashMidScript(t, w, reeve.Verifiable,
			kit.VerifySpec(w, map[string]any{"applied": []int{204}, "not_applied": []int{410}}))
		kit.Eventually(t, "the operation is unknown", func() bool {
			if _, err := a.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
			return len(kit.GetInbox(a.Host).Unknown) == 1
		})
		a.WaitForRun(reeve.RunParked)
		_, requests := w.Count()
		kit.Equal(t, kit.JoinValues(requests, a.ItemState("a"), a.ListItems("").Total), "1 processing 1",
			"nothing is sent again, and the run waits for a person")
		a.Want(200, nil, "POST", "/api/operations/"+kit.GetInbox(a.Host).Unknown[0].ID+"/resolve",
			kit.Call{"resolution": "happened"})
		a.WaitForRun(reeve.RunCompleted)
		_, requests = w.Count()
		kit.Equal(t, kit.JoinValues(requests, a.ItemState("a"), a.ItemState("b")), "2 done done", "then it goes on")
	})
}

func TestG11_UnsafeInAScript(t *testing.T) {
	t.Parallel()
	for choice, want := range map[string]string{"happened": "2 done done", "retry": "3 done done",
		"skip": "2 done done"} {
		t.Run(choice, func(t *testing.T) {
			w := kit.NewWitness(t)
			a := crashMidScript(t, w, reeve.Unsafe, nil)
			a.WaitForRun(reeve.RunParked)
			_, requests := w.Count()
			kit.Equal(t, kit.JoinValues(requests, len(kit.GetInbox(a.Host).Unknown), a.ItemState("a")),
				"1 1 processing",
				"nothing is sent again, and the run waits for a person")
			a.Want(200, nil, "POST", "/api/operations/"+kit.GetInbox(a.Host).Unknown[0].ID+"/resolve",
				kit.Call{"resolution": choice})
			a.WaitForRun(reeve.RunCompleted)
			_, requests = w.Count()
			kit.Equal(t, kit.JoinValues(requests, a.ItemState("a"), a.ItemState("b")), want, "as the person said")
		})
	}
}

// The connection breaks after the request left. That is not a failure, whatever the script does with the error.
func TestG12_LostInAScript(t *testing.T) {
	t.Parallel()
	for _, effect := range []reeve.Effect{reeve.Keyed, reeve.Unsafe} {
		t.Run(string(effect), func(t *testing.T) {
			w := kit.NewWitness(t)
			w.After = func(_ int, out http.ResponseWriter, _ *http.Request) bool {
				kit.CloseConnection(out)
				return true
			}
			cfg := kit.FastConfig(t)
			cfg.RetryAttempts = 2
			h := reevetest.StartWith(t, cfg)
			kit.DefineHTTPTool(h, "send", effect, map[string]any{"method": "POST", "url": w.URL + "/send"}, nil)
			a := &kit.Automation{Host: h, T: t, Name: "letters"}
			h.Want(201, nil, "POST", "/api/automations", kit.Call{"name": a.Name, "source": twoLetters,
				"tools": []string{"send"}})
			h.Want(201, nil, "POST", a.Path("/runs"), kit.Call{})
			kit.Eventually(t, "the operation is unknown", func() bool {
				if _, err := h.Step(t.Context()); err != nil {
					t.Fatal(err)
				}
				return len(kit.GetInbox(h).Unknown) == 1
			})
			a.WaitForRun(reeve.RunParked)
			effects, _ := w.Count()
			kit.Equal(t, kit.JoinValues(effects, a.ItemState("a"), a.ListItems("").
				Total, kit.ListAutomationRuns(a)[0].Script.Log,
				a.Get().
					Failure == nil), "1 processing 1  true", "it may have happened")
		})
	}
	t.Run("what never left is failed", func(t *testing.T) {
		h := reevetest.StartWith(t, kit.FastConfig(t))
		kit.DefineHTTPTool(h, "send", reeve.Unsafe, map[string]any{"method": "POST", "url": kit.ClosedPort + "/"}, nil)
		a := &kit.Automation{Host: h, T: t, Name: "letters"}
		h.Want(201, nil, "POST", "/api/automations", kit.Call{"name": a.Name, "source": twoLetters,
			"tools": []string{"send"}})
		a.MustFail(reeve.NetworkFailure)
		kit.Equal(t, kit.JoinValues(a.ItemState("a"), len(kit.GetInbox(h).Unknown)), "failed 0",
			"and is tried again by itself")
	})
}

// A later run makes an equal call with its arguments in another order and format, and gets the stored result. Other
// arguments for the same target are a conflict, and nothing is done.
func TestG13_TheSameInAScript(t *testing.T) {
	t.Parallel()
	w := kit.NewWitness(t)
	h := reevetest.StartWith(t, kit.FastConfig(t))
	kit.DefineHTTPTool(h, "send", reeve.Keyed, map[string]any{"method": "POST", "url": w.URL + "/send"},
		map[string]any{"identity": []string{"to"}})
	a := &kit.Automation{Host: h, T: t, Name: "letters"}
	item := func(args string) string {
		return `await Items.withItem('a', 'A', async () => { const r = await General.send(` + args +
			`); Console.log(r); if (input !== 'well') throw new Error('later') })`
	}
	h.Want(201, nil, "POST", "/api/automations",
		kit.Call{"name": a.Name, "source": item(`{ to: 'x', at: { n: 1, m: [2] } }`), "tools": []string{"send"}})
	a.MustFail(reeve.LogicFailure, "later")
	ops := len(kit.ListOperations(h))
	a.SaveVersion(item(`{ at: { m: [2.0], n: 1.0 }, to: 'x' }`), true)
	a.MustFail(reeve.LogicFailure, "later")
	effects, requests := w.Count()
	kit.Equal(t, kit.JoinValues(effects, requests, len(kit.ListOperations(h))-ops,
		kit.ListAutomationRuns(a)[0].Script.Log),
		"1 1 0 done",
		"the stored result")
	a.SaveVersion(item(`{ to: 'x', at: 'another' }`), true)
	r := a.RunOnce()
	effects, requests = w.Count()
	kit.Equal(t, kit.JoinValues(r.Run.State, r.Run.Code, effects, requests, a.ItemState("a")),
		"failed CONFLICT 1 1 needs_attention",
		"the same thing with other content")
}

// An unknown outcome parks the run until a person resolves it. Then the script continues.
func TestG11_UnknownInAScript(t *testing.T) {
	t.Parallel()
	a, d := runWithUnknownOutcome(t)
	h, unknown := a.Host, kit.GetInbox(a.Host).Unknown
	h.Want(200, nil, "POST", "/api/operations/"+unknown[0].ID+"/resolve", kit.Call{"resolution": "happened"})
	kit.Eventually(t, "the run goes on", func() bool {
		if _, err := a.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		return a.ItemState("a") == reeve.ItemDone
	})
	kit.Equal(t, d.String(), "map[after:1 before:1 lost:1]", "what was done")
}

// A call that needs approval parks the run until a person approves.
func TestG14_ApprovalInAScript(t *testing.T) {
	t.Parallel()
	a, d := newMailer(t, threeItems)
	a.Want(200, nil, "PATCH", "/api/agents/mailer", kit.Call{"policy": kit.Call{"tools": kit.Call{"mail_send": "ask"}}})
	r := a.RunOnce()
	kit.Equal(t, kit.JoinValues(r.Run.State, d), "parked map[]", "it waits")
	kit.Eventually(t, "all are approved", func() bool {
		for _, p := range kit.GetInbox(a.Host).Approvals {
			kit.Decide(a.Host, p.ID, "approve")
		}
		if _, err := a.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		return a.ListItems("status=done").Total == 3
	})
	kit.Equal(t, d.String(), "map[a:1 b:1 c:1]", "what was done")
}
