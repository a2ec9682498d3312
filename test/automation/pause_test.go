package automation_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"reeve"
	"reeve/host"
	"reeve/reevetest"
	"reeve/test/kit"
)

func TestK17_PauseAndResume(t *testing.T) {
	t.Parallel()
	a, d := newMailer(t, `
		for (const id of ['a', 'b', 'c']) await Items.withItem(id, id, async (ctx) => {
		  if (ctx.item.isDone) return;
		  await Mail.send({ to: id });
		  try { await Mail.send({ to: id + '2' }) } catch (e) {}
		})`)
	d.hook = func(what string) {
		if what == "b" {
			a.Want(200, nil, "POST", a.Path("/pause"), nil)
		}
	}
	r := a.RunOnce()
	kit.Equal(t, kit.JoinValues(r.Run.State, d, a.ItemState("b")), "paused map[a:1 a2:1 b:1] processing",
		"paused in the middle of b")
	a.Want(409, nil, "POST", a.Path("/runs"), kit.Call{})
	d.hook = nil
	a.Want(200, nil, "POST", a.Path("/resume"), nil)
	a.Want(200, nil, "POST", a.Path("/resume"), nil) // once more does nothing more
	kit.Eventually(t, "it carries on", func() bool {
		if _, err := a.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		return a.ListItems("status=done").Total == 3
	})
	kit.Equal(t, d.String(), "map[a:1 a2:1 b:1 b2:1 c:1 c2:1]", "what was done")

	// While it is paused, nothing that wakes it does anything.
	a.Want(200, nil, "POST", a.Path("/pause"), nil)
	var w reeve.Wake
	a.Want(201, &w, "POST", "/api/agents/mailer/wake", kit.Call{})
	kit.Equal(t, a.ServeRun(reeve.AutomationRun{Wake: &w}).Run.State, reeve.RunPaused, "a run while it is paused")
}

// After a resume, the run that was in progress, the run that waited, and the runs that the pause prevented all happen.
// Runs that were requested twice happen once.
func TestK17_PausedRunsContinueAfterResume(t *testing.T) {
	t.Parallel()
	kit.OnBothDatabases(t, func(t *testing.T, cfg host.Config) {
		d := newEffectLog()
		a := newAutomation(t, reevetest.StartWith(t, cfg, d.tools()...), "mailer", `
			for (const id of ['a', 'b']) await Items.withItem(input + id, id, async (ctx) => { if (!ctx.item.isDone) await Mail.send({ to: input + id }) })`)
		d.hook = func(what string) {
			if what == "onea" {
				a.Want(201, nil, "POST", a.Path("/runs"), kit.Call{"input": "two"})
				a.Want(200, nil, "POST", a.Path("/pause"), nil)
			}
		}
		first := a.StartRun(kit.Call{"input": "one"})
		for range 3 {
			a.Want(201, nil, "POST", "/api/agents/mailer/wake", kit.Call{"input": "three"})
		}
		a.RunUntilIdle(t.Context())
		kit.Equal(t, kit.JoinValues(first.Run.State, a.Get().PausedRun == first.Run.ID, d,
			len(kit.ListAutomationRuns(a))),
			"paused true map[onea:1] 5", "while it is paused")
		a.Want(200, nil, "POST", a.Path("/resume"), nil)
		a.RunUntilIdle(t.Context())
		kit.Equal(t, kit.JoinValues(d, len(kit.ListAutomationRuns(a))),
			"map[onea:1 oneb:1 threea:1 threeb:1 twoa:1 twob:1] 8",
			"resumed")
	})
}

// One call of the run has seen the pause and another is still running when the automation is resumed.
func TestK17_ResumedBeforeThePausedRunHasEnded(t *testing.T) {
	t.Parallel()
	d := newEffectLog()
	var a *kit.Automation
	tools := d.tools()
	looks := 0
	tools[len(tools)-1].Handler = func(ctx context.Context, _ *reeve.Invocation) (any, error) {
		if looks++; looks == 1 {
			a.Want(200, nil, "POST", a.Path("/pause"), nil)
			<-ctx.Done()
			a.Want(200, nil, "POST", a.Path("/resume"), nil)
		}
		return nil, ctx.Err()
	}
	a = newAutomation(t, reevetest.StartWith(t, kit.FastConfig(t), tools...), "mailer", `
		await Items.withItem('a', 'A', async (ctx) => {
		  if (ctx.item.isDone) return;
		  let looked = false;
		  Mail.list({}).then(() => { looked = true });
		  while (!looked) await Items.list({});
		  await Mail.send({ to: input });
		})`)
	kit.Equal(t, a.StartRun(kit.Call{"input": "one"}).Run.State, reeve.RunPaused, "the run")
	a.RunUntilIdle(t.Context())
	kit.Equal(t, kit.JoinValues(a.Get().Status, a.ItemState("a"), d, len(kit.ListAutomationRuns(a))),
		"active done map[one:1] 2",
		"another carried on")
}

// A resume whose commit fails has not happened. Repeating it continues, also a plan that was being applied.
func TestK17_FailedResumeCanBeRepeated(t *testing.T) {
	t.Parallel()
	for _, planned := range []bool{false, true} {
		for commit := range int32(2) {
			var left atomic.Int32 // commits until the power fails
			cfg, d := kit.FastConfig(t), newEffectLog()
			cfg.OnFault.OnBefore = func() {
				if left.Load() > 0 && left.Add(-1) == 0 {
					panic("the power fails")
				}
			}
			a := newAutomation(t, reevetest.StartWith(t, cfg, d.tools()...), "mailer", `
				for (const id of ['a', 'b', 'c']) await Items.withItem(id, id, async (ctx) => { if (!ctx.item.isDone) await Mail.send({ to: id }) })`)
			d.hook = func(what string) {
				if what == "b" {
					a.Want(200, nil, "POST", a.Path("/pause"), nil)
				}
			}
			var r reeve.AutomationRun
			if planned {
				a.Want(201, &r, "POST", "/api/plans/"+a.StartRun(kit.Call{"type": "dry"}).Run.ID+"/apply", nil)
				r = a.ServeRun(r)
			} else {
				r = a.RunOnce()
			}
			kit.Equal(t, kit.JoinValues(r.Run.State, d), "paused map[a:1 b:1]", "paused in the middle")
			d.hook = nil
			left.Store(commit + 1)
			a.Do("POST", a.Path("/resume"), nil)
			left.Store(0)
			a.Want(200, nil, "POST", a.Path("/resume"), nil)
			a.RunUntilIdle(t.Context())
			kit.Equal(t, d.String(), "map[a:1 b:1 c:1]",
				fmt.Sprintf("what was done, with a plan: %v, the power gone at commit %d", planned, commit+1))
		}
	}
}
