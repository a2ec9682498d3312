package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"reeve"
	"reeve/api"
	"reeve/client"
	"reeve/reevetest"
)

// shelf is a tool with a preview: it puts a value under a key, based on what is there.
type shelf struct {
	deeds *deeds
	held  map[string]string
}

func (s *shelf) tool() reeve.Tool {
	type in struct{ Key, Value string }
	read := func(inv *reeve.Invocation) (v in) { _ = json.Unmarshal(inv.Args, &v); return v }
	t := tool("shelf_put", reeve.Keyed, func(_ context.Context, inv *reeve.Invocation) (any, error) {
		v := read(inv)
		s.deeds.mu.Lock()
		s.held[v.Key] = v.Value
		s.deeds.mu.Unlock()
		return "put", s.deeds.do(v.Key)
	})
	t.Preview = func(_ context.Context, inv *reeve.Invocation) (reeve.Preview, error) {
		v := read(inv)
		s.deeds.mu.Lock()
		defer s.deeds.mu.Unlock()
		return reeve.Preview{Change: fmt.Sprintf("- %s\n+ %s", s.held[v.Key], v.Value), Base: "was:" + s.held[v.Key]},
			nil
	}
	t.Pack = "shelf"
	return t
}

func TestK28_PlanAndApply(t *testing.T) {
	t.Parallel()
	d := newDeeds()
	s := &shelf{d, map[string]string{"a": "old"}}
	h := reevetest.StartWith(t, quick(t), append(d.tools(), s.tool())...)
	a := &auto{Host: h, t: t, name: "planner"}
	h.Want(201, nil, "POST", "/api/automations", call{"name": a.name, "tools": append([]string{"shelf_put"}, mailTools...), "source": `
		Items.total(3);
		for (const id of ['a', 'b', 'c']) await Items.withItem(id, 'Shelf ' + id, async (ctx) => {
		  if (ctx.item.isDone) return;
		  await Shelf.put({ key: id, value: 'new' });
		  await Mail.send({ to: id, text: '!' });
		})`})
	r := a.start(call{"type": "dry"})
	equal(t, spoken(r.Run.State, r.Script.Progress.Planned, d, a.items("").Total), "completed 6 map[] 0",
		"a dry run changes nothing")
	var plan api.Plan
	h.Want(200, &plan, "GET", "/api/plans/"+r.Run.ID, nil)
	first := plan.Calls[0]
	equal(t, spoken(len(plan.Calls), first.ItemID, first.Title, first.Tool, strings.ReplaceAll(first.Preview, "\n",
		"/"), first.Base), "6 a Shelf a shelf_put - old/+ new was:old", "the plan")
	equal(t, spoken(plan.Calls[1].Tool, plan.Calls[1].Args), `mail_send {"to":"a","text":"!"}`,
		"a call that cannot be previewed")

	s.held["b"] = "changed since"
	var asked reeve.AutomationRun
	h.Want(201, &asked, "POST", "/api/plans/"+r.Run.ID+"/apply", nil)
	r2 := a.served(asked)
	equal(t, spoken(r2.Run.State, r2.Script.Type, d), "failed apply map[a:1 a!:1 c:1 c!:1]",
		"what is as it was is done")
	equal(t, spoken(a.state("a"), a.state("b"), a.state("c"), a.item("b").Code), "done failed done STALE", "items")
	equal(t, asked.AlreadyApplied, false, "it was applied before")
	for _, who := range [][]string{nil, as(h, "bob", "owner")} { // whoever asks
		var again reeve.AutomationRun
		h.Want(201, &again, "POST", "/api/plans/"+r.Run.ID+"/apply", nil, who...)
		equal(t, spoken(again.AlreadyApplied, again.Wake.RunID, again.Wake.UserID,
			again.Wake.CreatedAt.Equal(asked.Wake.CreatedAt)), spoken(true, r2.Run.ID, asked.Wake.UserID, true),
			"a plan is applied once")
	}
	h.Want(200, &plan, "GET", "/api/plans/"+r.Run.ID, nil)
	// the other was never an operation
	equal(t, spoken(plan.Calls[0].State, plan.Calls[2].State), "committed", "what became of it")
	a.completes()
	equal(t, d.String(), "map[a:1 a!:1 b:1 b!:1 c:1 c!:1]", "the next run does only what is missing")
	h.Want(404, nil, "POST", "/api/plans/"+r2.Run.ID+"/apply", nil)

	// What a dry run may not do is the same as ever.
	a.save(`await Shelf.put({ key: 'x', value: 'y' })`, false)
	bad := a.start(call{"type": "dry"})
	equal(t, spoken(bad.Run.State, bad.Script.Class), "failed logic", "a change outside an item")
	h.Want(409, nil, "POST", "/api/plans/"+bad.Run.ID+"/apply", nil)
}

// TestK15_CrashInAHandler loses the server after one of two effects of an item, for each class.
// TestK28_APlanIsShownToItsEnd plans more than one page: what is applied is what can be read, and the client reads all
// of it.
func TestK28_APlanIsShownToItsEnd(t *testing.T) {
	t.Parallel()
	a, _ := automate(t, `for (let n = 1; n <= 501; n++) await Items.withItem('item ' + n, 'Item', async () => {})`)
	r := a.start(call{"type": "dry"})
	equal(t, string(r.Run.State), "completed", "the dry run")
	var page api.Plan
	a.Want(200, &page, "GET", "/api/plans/"+r.Run.ID+"?limit=2", nil)
	a.Want(200, &page, "GET", "/api/plans/"+r.Run.ID+"?limit=2&cursor="+page.Next, nil)
	equal(t, spoken(len(page.Calls), page.Calls[0].ItemID, page.Next != ""), "2 item 3 true", "the second page")
	c, err := client.New(client.Config{URL: a.URL, Token: a.Token})
	if err != nil {
		t.Fatal(err)
	}
	whole, err := c.Automations().RunPlan(t.Context(), r.Run.ID)
	if err != nil || len(whole.Calls) != 501 || whole.Calls[500].ItemID != "item 501" || whole.Next != "" {
		t.Errorf("the client read %d of 501, %v", len(whole.Calls), err)
	}
}

func TestK15_CrashInAHandler(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"send", "note"} {
		t.Run(name, func(t *testing.T) {
			d := newDeeds()
			source := strings.ReplaceAll(
				`for (const id of ['a', 'b']) await Items.withItem(id, id, async (ctx) => { if (ctx.item.isDone) return; await Mail.NAME({ to: id + '1' }); await Mail.list(); await Mail.NAME({ to: id + '2' }) })`, "NAME", name)
			var old *reevetest.Host
			var next *reevetest.Host
			var looks atomic.Int32
			tools := d.tools()
			tools[len(tools)-1].Handler = func(context.Context, *reeve.Invocation) (any, error) {
				if looks.Add(1) == 2 { // in the middle of b
					next = crashed(old, d.tools()...)
				}
				return "looked", nil
			}
			old = reevetest.StartWith(t, quick(t), tools...)
			was := newAuto(t, old, "mailer", source)
			before := func() string { d.mu.Lock(); defer d.mu.Unlock(); return fmt.Sprint(d.done["b1"]) }
			was.completes() // in a world of its own: it knows nothing of the crash
			equal(t, before(), "1", "the first effect")
			d.mu.Lock()
			delete(d.done, "b2") // what the lost server did after it was lost
			d.mu.Unlock()
			a := &auto{Host: next, t: t, name: "mailer"}
			equal(t, spoken(a.state("a"), a.state("b")), "done processing", "after the crash")
			eventually(t, "the run is taken up", func() bool {
				if _, err := a.Step(t.Context()); err != nil {
					t.Fatal(err)
				}
				return a.state("b") == reeve.ItemDone
			})
			equal(t, d.String(), "map[a1:1 a2:1 b1:1 b2:1]", "what was done")
		})
	}
}

// TestK15_AStopInACall stops the server while a script, or a plan that is applied, is in a call: the call is finished,
// the run is taken up, and the item is done.
func TestK15_AStopInACall(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		plan bool
	}{{"send", false}, {"note", false}, {"send", true}, {"note", true}} {
		t.Run(spoken(c.name, c.plan), func(t *testing.T) {
			cfg, d := quick(t), newDeeds()
			began, stopping := make(chan struct{}, 1), make(chan struct{})
			tools := d.tools()
			for i, what := range tools[:2] { // send and note
				tools[i].Handler = func(ctx context.Context, inv *reeve.Invocation) (any, error) {
					select {
					case began <- struct{}{}:
						select {
						case <-ctx.Done():
							return nil, ctx.Err()
						case <-stopping:
						}
					default:
					}
					return what.Handler(ctx, inv)
				}
			}
			h := reevetest.Run(t, cfg, tools...)
			a := newAuto(t, h, "mailer",
				strings.ReplaceAll(`await Items.withItem('a', 'A', async (ctx) => { if (ctx.item.isDone) return; await Mail.NAME({ to: '1' }); await Mail.NAME({ to: '2' }) })`, "NAME", c.name))
			ended := func() (r reeve.AutomationRun) {
				eventually(t, "the run ends", func() bool {
					runs := listRuns(a)
					if len(runs) > 0 {
						r = runs[0]
					}
					return r.Run != nil && r.Run.State.IsFinal()
				})
				return r
			}
			if c.plan {
				a.Want(201, nil, "POST", a.at("/runs"), call{"type": "dry"})
				a.Want(201, nil, "POST", "/api/plans/"+ended().Run.ID+"/apply", nil)
			} else {
				a.Want(201, nil, "POST", a.at("/runs"), call{})
			}
			<-began
			stopped := make(chan struct{})
			go func() { h.Stop(); close(stopped) }()
			eventually(t, "the server stops", func() bool {
				c, err := net.Dial("tcp", strings.TrimPrefix(h.URL, "http://"))
				if err == nil {
					_ = c.Close()
				}
				return err != nil
			})
			close(stopping)
			<-stopped
			began <- struct{}{} // nobody waits any more
			a.Host = reevetest.Run(t, cfg, tools...)
			r := ended()
			equal(t, spoken(r.Run.State, r.Run.Message, a.state("a"), d, a.get().Status),
				"completed  done map[1:1 2:1] active", "after the stop")
		})
	}
}

// TestK26_Triggers lets two schedules, a change and a person wake one automation at the same time: all are served, one
// after the other.
func TestK26_Triggers(t *testing.T) {
	t.Parallel()
	d := newDeeds()
	emits := tool("emits", reeve.Local, func(_ context.Context, inv *reeve.Invocation) (any, error) {
		inv.Emit(reeve.SemanticKey, "LETTER")
		return "emitted", nil
	})
	h := reevetest.Run(t, quick(t), append(d.tools(), emits)...)
	a := newAuto(t, h, "mailer",
		`await Items.withItem('for ' + input, 'I', async () => { await Mail.send({ to: String(input) }); await Mail.list() })`)
	other := h.Agent("other", "emits")
	h.Want(201, nil, "POST", "/api/agents/mailer/subscriptions", call{"class": "key", "name": "LETTER"})
	soon := reeve.Now().Add(200 * time.Millisecond).Format(time.RFC3339Nano)
	for _, goal := range []string{"first", "second"} {
		h.Want(201, nil, "POST", "/api/schedules", call{"agent": "mailer", "name": goal, "goal": goal,
			"cadence_type": "once", "cadence_value": soon})
	}
	h.Call(other.ID, "emits", call{})
	h.Want(201, nil, "POST", a.at("/runs"), call{"input": "hand"})
	eventually(t, "all four are served", func() bool { return a.items("status=done").Total == 4 })
	equal(t, d.String(), "map[first:1 hand:1 null:1 second:1]", "what was done")
	var runs []reeve.AutomationRun
	eventually(t, "all have ended", func() bool {
		runs = listRuns(a)
		for _, r := range runs {
			if r.Run.FinishedAt == nil {
				return false
			}
		}
		return true
	})
	for i, r := range runs[1:] { // newest first
		if later := runs[i].Run; later.StartedAt.Before(*r.Run.FinishedAt) {
			t.Errorf("run %s began at %v, before run %s had ended at %v", later.ID, later.StartedAt, r.Run.ID,
				r.Run.FinishedAt)
		}
	}
}

func listRuns(a *auto) []reeve.AutomationRun {
	var l api.AutomationRunList
	a.Want(200, &l, "GET", a.at("/runs"), nil)
	return l.Runs
}

func TestK25_Progress(t *testing.T) {
	t.Parallel()
	a, d := automate(t, `Items.total(3); for (const id of ['a', 'b', 'c']) await Items.withItem(id, 'Letter ' + id, async () => { await Mail.send({ to: id }) })`)
	var during reeve.AutomationRun
	d.hook = func(what string) {
		if what == "b" {
			runs := listRuns(a)
			a.Want(200, &during, "GET", a.at("/runs/"+runs[0].Run.ID), nil)
		}
	}
	r := a.completes()
	p := during.Script.Progress
	equal(t, spoken(during.Run.State, p.Done, p.Total, p.Current, p.Spent.Calls), "running 1 3 Letter b 1",
		"while it runs")
	equal(t, spoken(r.Script.Progress.Done, r.Script.Progress.Total, r.Script.Progress.Current,
		r.Script.Progress.Spent.Calls), "3 3  3", "at its end")
}

// TestK25_WhatARunSpentIsCountedOnce: a run that waited for a person runs its script again, and shows what it has
// really cost; so does one that finds calls of an earlier run done.
func TestK25_WhatARunSpentIsCountedOnce(t *testing.T) {
	t.Parallel()
	a, d := automate(t, `await Items.withItem('a', 'A', async () => { await Mail.send({ to: 'one' }); await Mail.note({ to: 'two' }); await Mail.send({ to: 'three' }) })`)
	a.Want(200, nil, "PATCH", "/api/agents/mailer", call{"policy": call{"tools": call{"mail_note": "ask"}}})
	d.refuse("three", true)
	r := a.run()
	decide(a.Host, inbox(a.Host).Approvals[0].ID, "approve")
	a.RunUntilIdle(t.Context())
	a.Want(200, &r, "GET", a.at("/runs/"+r.Run.ID), nil)
	equal(t, spoken(r.Run.State, r.Run.Spent.Calls, r.Script.Progress.Spent.Calls), "failed 3 3",
		"with the one that was refused")
	d.refuse("three", false)
	r = a.completes()
	equal(t, spoken(r.Run.Spent.Calls, r.Script.Progress.Spent.Calls, d), "1 1 map[one:1 three:1 two:1]",
		"the next run")
}

// lostInAScript runs a script whose call nobody can tell the outcome of.
func lostInAScript(t *testing.T) (*auto, *deeds) {
	t.Helper()
	d := newDeeds()
	lost := tool("mail_lose", reeve.Unsafe, func(context.Context, *reeve.Invocation) (any, error) {
		_ = d.do("lost")
		return nil, reeve.Errorf(reeve.Timeout, "no answer")
	})
	lost.Pack = "mail"
	h := reevetest.StartWith(t, quick(t), append(d.tools(), lost)...)
	a := &auto{Host: h, t: t, name: "mailer"}
	h.Want(201, nil, "POST", "/api/automations", call{"name": a.name, "tools": append([]string{"mail_lose"}, mailTools...), "source": `
		await Items.withItem('a', 'A', async () => { await Mail.send({ to: 'before' }); try { await Mail.lose({}) } catch (e) {} await Mail.send({ to: 'after' }) })`})
	r := a.run()
	equal(t, spoken(r.Run.State, a.state("a"), d), "parked processing map[before:1 lost:1]", "nobody can tell")
	if n := len(inbox(h).Unknown); n != 1 {
		t.Fatalf("the inbox has %d", n)
	}
	return a, d
}

// TestG11_UnknownInAScript parks the run until a person has spoken; then the script goes on from there.
func TestG11_UnknownInAScript(t *testing.T) {
	t.Parallel()
	a, d := lostInAScript(t)
	h, unknown := a.Host, inbox(a.Host).Unknown
	h.Want(200, nil, "POST", "/api/operations/"+unknown[0].ID+"/resolve", call{"resolution": "happened"})
	eventually(t, "the run goes on", func() bool {
		if _, err := a.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		return a.state("a") == reeve.ItemDone
	})
	equal(t, d.String(), "map[after:1 before:1 lost:1]", "what was done")
}

// TestG14_ApprovalInAScript parks the run until a person approves.
func TestG14_ApprovalInAScript(t *testing.T) {
	t.Parallel()
	a, d := automate(t, three)
	a.Want(200, nil, "PATCH", "/api/agents/mailer", call{"policy": call{"tools": call{"mail_send": "ask"}}})
	r := a.run()
	equal(t, spoken(r.Run.State, d), "parked map[]", "it waits")
	eventually(t, "all are approved", func() bool {
		for _, p := range inbox(a.Host).Approvals {
			decide(a.Host, p.ID, "approve")
		}
		if _, err := a.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		return a.items("status=done").Total == 3
	})
	equal(t, d.String(), "map[a:1 b:1 c:1]", "what was done")
}

// TestK28_APlanThatWasBegunTwice: a dry run that is taken up after a crash plans anew. What only the first try had
// found is not part of the plan.
func TestK28_APlanThatWasBegunTwice(t *testing.T) {
	t.Parallel()
	d := newDeeds()
	lists := func(found []string, then func()) []reeve.Tool {
		tools := d.tools()
		tools[len(tools)-1].Handler = func(_ context.Context, inv *reeve.Invocation) (any, error) {
			if then != nil {
				then()
			}
			return found, nil
		}
		return tools
	}
	var old, next *reevetest.Host
	looks := 0
	old = reevetest.StartWith(t, quick(t), lists([]string{"a", "b", "c"}, func() {
		if looks++; looks == 2 { // all is planned by then
			next = crashed(old, lists([]string{"c"}, nil)...)
		}
	})...)
	a := newAuto(t, old, "mailer", `
		for (const id of await Mail.list({})) await Items.withItem(id, id, async () => { await Mail.send({ to: id }) });
		await Mail.list({})`)
	run := a.start(call{"type": "dry"}).Run.ID
	a.Host = next
	a.RunUntilIdle(t.Context())
	var plan api.Plan
	a.Want(200, &plan, "GET", "/api/plans/"+run, nil)
	var items []string
	for _, c := range plan.Calls {
		items = append(items, c.ItemID)
	}
	equal(t, strings.Join(items, " "), "c", "what is planned")
	a.Want(201, nil, "POST", "/api/plans/"+run+"/apply", nil)
	a.RunUntilIdle(t.Context())
	equal(t, d.String(), "map[c:1]", "what was done")
}

// Of several who apply a plan at the same moment one is the first; the others are told so, whoever they are.
func TestK28_AppliedAtOnce(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, start func(...reeve.Tool) *reevetest.Host) {
		d := newDeeds()
		h := start(d.tools()...)
		a := &auto{Host: h, t: t, name: "planner"}
		h.Want(201, nil, "POST", "/api/automations", call{"name": a.name, "tools": mailTools,
			"source": `await Items.withItem('a', 'A', async (ctx) => { if (!ctx.item.isDone) await Mail.send({ to: 'a', text: '!' }) })`})
		who := [][]string{nil, as(h, "bob", "owner"), as(h, "eve", "owner")}
		for range 5 {
			plan := a.start(call{"type": "dry"})
			runs := make([]reeve.AutomationRun, 6)
			var all sync.WaitGroup
			for i := range runs {
				all.Go(func() {
					h.Want(201, &runs[i], "POST", "/api/plans/"+plan.Run.ID+"/apply", nil,
						who[i%len(who)]...)
				})
			}
			all.Wait()
			first := 0
			for _, r := range runs {
				if !r.AlreadyApplied {
					first++
				}
				equal(t, r.Wake.RunKey, runs[0].Wake.RunKey, "the run that applies it")
			}
			equal(t, first, 1, "how many were the first")
		}
	})
}
