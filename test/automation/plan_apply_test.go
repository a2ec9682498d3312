package automation_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/client"
	"reeve/reevetest"
	"reeve/test/kit"
)

// previewTool is a tool with a preview that puts a value under a key, based on the present value.
type previewTool struct {
	deeds *effectLog
	held  map[string]string
}

func (s *previewTool) tool() reeve.Tool {
	type in struct{ Key, Value string }
	read := func(inv *reeve.Invocation) (v in) { _ = json.Unmarshal(inv.Args, &v); return v }
	t := kit.Tool("shelf_put", reeve.Keyed, func(_ context.Context, inv *reeve.Invocation) (any, error) {
		v := read(inv)
		s.deeds.mu.Lock()
		s.held[v.Key] = v.Value
		s.deeds.mu.Unlock()
		return "put", s.deeds.record(v.Key)
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
	d := newEffectLog()
	s := &previewTool{d, map[string]string{"a": "old"}}
	h := reevetest.StartWith(t, kit.FastConfig(t), append(d.tools(), s.tool())...)
	a := &kit.Automation{Host: h, T: t, Name: "planner"}
	h.Want(201, nil, "POST", "/api/automations", kit.Call{"name": a.Name, "tools": append([]string{"shelf_put"}, mailTools...), "source": `
		Items.total(3);
		for (const id of ['a', 'b', 'c']) await Items.withItem(id, 'Shelf ' + id, async (ctx) => {
		  if (ctx.item.isDone) return;
		  await Shelf.put({ key: id, value: 'new' });
		  await Mail.send({ to: id, text: '!' });
		})`})
	r := a.StartRun(kit.Call{"type": "dry"})
	kit.Equal(t, kit.JoinValues(r.Run.State, r.Script.Progress.Planned, d, a.ListItems("").Total),
		"completed 6 map[] 0",
		"a dry run changes nothing")
	var plan api.Plan
	h.Want(200, &plan, "GET", "/api/plans/"+r.Run.ID, nil)
	first := plan.Calls[0]
	kit.Equal(t, kit.JoinValues(len(plan.Calls), first.ItemID, first.Title, first.Tool,
		strings.ReplaceAll(first.Preview, "\n",
			"/"), first.Base), "6 a Shelf a shelf_put - old/+ new was:old", "the plan")
	kit.Equal(t, kit.JoinValues(plan.Calls[1].Tool, plan.Calls[1].Args), `mail_send {"to":"a","text":"!"}`,
		"a call that cannot be previewed")

	s.held["b"] = "changed since"
	var asked reeve.AutomationRun
	h.Want(201, &asked, "POST", "/api/plans/"+r.Run.ID+"/apply", nil)
	r2 := a.ServeRun(asked)
	kit.Equal(t, kit.JoinValues(r2.Run.State, r2.Script.Type, d), "failed apply map[a:1 a!:1 c:1 c!:1]",
		"what is as it was is done")
	kit.Equal(t, kit.JoinValues(a.ItemState("a"), a.ItemState("b"), a.ItemState("c"), a.GetItem("b").Code),
		"done failed done STALE", "items")
	kit.Equal(t, asked.AlreadyApplied, false, "it was applied before")
	for _, who := range [][]string{nil, kit.NewTokenFor(h, "bob", "owner")} { // whoever asks
		var again reeve.AutomationRun
		h.Want(201, &again, "POST", "/api/plans/"+r.Run.ID+"/apply", nil, who...)
		kit.Equal(t, kit.JoinValues(again.AlreadyApplied, again.Wake.RunID, again.Wake.UserID,
			again.Wake.CreatedAt.Equal(asked.Wake.CreatedAt)), kit.JoinValues(true, r2.Run.ID, asked.Wake.UserID, true),
			"a plan is applied once")
	}
	h.Want(200, &plan, "GET", "/api/plans/"+r.Run.ID, nil)
	// the other was never an operation
	kit.Equal(t, kit.JoinValues(plan.Calls[0].State, plan.Calls[2].State), "committed", "what became of it")
	a.MustComplete()
	kit.Equal(t, d.String(), "map[a:1 a!:1 b:1 b!:1 c:1 c!:1]", "the next run does only what is missing")
	h.Want(404, nil, "POST", "/api/plans/"+r2.Run.ID+"/apply", nil)

	// What a dry run may not do is the same as ever.
	a.SaveVersion(`await Shelf.put({ key: 'x', value: 'y' })`, false)
	bad := a.StartRun(kit.Call{"type": "dry"})
	kit.Equal(t, kit.JoinValues(bad.Run.State, bad.Script.Class), "failed logic", "a change outside an item")
	h.Want(409, nil, "POST", "/api/plans/"+bad.Run.ID+"/apply", nil)
}

// A plan has more than one page. The client reads all of it, and what is applied is what can be read.
func TestK28_PlanOfSeveralPages(t *testing.T) {
	t.Parallel()
	a, _ := newMailer(t, `for (let n = 1; n <= 501; n++) await Items.withItem('item ' + n, 'Item', async () => {})`)
	r := a.StartRun(kit.Call{"type": "dry"})
	kit.Equal(t, string(r.Run.State), "completed", "the dry run")
	var page api.Plan
	a.Want(200, &page, "GET", "/api/plans/"+r.Run.ID+"?limit=2", nil)
	a.Want(200, &page, "GET", "/api/plans/"+r.Run.ID+"?limit=2&cursor="+page.Next, nil)
	kit.Equal(t, kit.JoinValues(len(page.Calls), page.Calls[0].ItemID, page.Next != ""), "2 item 3 true",
		"the second page")
	c, err := client.New(client.Config{URL: a.URL, Token: a.Token})
	if err != nil {
		t.Fatal(err)
	}
	whole, err := c.Automations().RunPlan(t.Context(), r.Run.ID)
	if err != nil || len(whole.Calls) != 501 || whole.Calls[500].ItemID != "item 501" || whole.Next != "" {
		t.Errorf("the client read %d of 501, %v", len(whole.Calls), err)
	}
}

// A dry run that continues after a crash plans anew. Items that only the first attempt found are not part of the plan.
func TestK28_PlanAfterACrash(t *testing.T) {
	t.Parallel()
	d := newEffectLog()
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
	old = reevetest.StartWith(t, kit.FastConfig(t), lists([]string{"a", "b", "c"}, func() {
		if looks++; looks == 2 { // all is planned by then
			next = kit.RestartAfterCrash(old, lists([]string{"c"}, nil)...)
		}
	})...)
	a := newAutomation(t, old, "mailer", `
		for (const id of await Mail.list({})) await Items.withItem(id, id, async () => { await Mail.send({ to: id }) });
		await Mail.list({})`)
	run := a.StartRun(kit.Call{"type": "dry"}).Run.ID
	a.Host = next
	a.RunUntilIdle(t.Context())
	var plan api.Plan
	a.Want(200, &plan, "GET", "/api/plans/"+run, nil)
	var items []string
	for _, c := range plan.Calls {
		items = append(items, c.ItemID)
	}
	kit.Equal(t, strings.Join(items, " "), "c", "what is planned")
	a.Want(201, nil, "POST", "/api/plans/"+run+"/apply", nil)
	a.RunUntilIdle(t.Context())
	kit.Equal(t, d.String(), "map[c:1]", "what was done")
}

// Of several requests that apply a plan at once one wins. The others get an error.
func TestK28_ConcurrentApply(t *testing.T) {
	t.Parallel()
	kit.StartOnBothDatabases(t, func(t *testing.T, start func(...reeve.Tool) *reevetest.Host) {
		d := newEffectLog()
		h := start(d.tools()...)
		a := &kit.Automation{Host: h, T: t, Name: "planner"}
		h.Want(201, nil, "POST", "/api/automations", kit.Call{"name": a.Name, "tools": mailTools,
			"source": `await Items.withItem('a', 'A', async (ctx) => { if (!ctx.item.isDone) await Mail.send({ to: 'a', text: '!' }) })`})
		who := [][]string{nil, kit.NewTokenFor(h, "bob", "owner"), kit.NewTokenFor(h, "eve", "owner")}
		for range 5 {
			plan := a.StartRun(kit.Call{"type": "dry"})
			runs := make([]reeve.AutomationRun, 6)
			var all sync.WaitGroup
			for i := range runs {
				all.Go(func() {
					h.Want(201, &runs[i], "POST", "/api/plans/"+plan.Run.ID+"/apply", nil, who[i%len(who)]...)
				})
			}
			all.Wait()
			first := 0
			for _, r := range runs {
				if !r.AlreadyApplied {
					first++
				}
				kit.Equal(t, r.Wake.RunKey, runs[0].Wake.RunKey, "the run that applies it")
			}
			kit.Equal(t, first, 1, "how many were the first")
		}
	})
}

// An item that a script finishes without a change is part of the plan and is done when the plan is applied.
func TestK28_ItemsWithoutAChange(t *testing.T) {
	t.Parallel()
	a, d := newMailer(t, `for (const id of ['a', 'b', 'c']) await Items.withItem(id, 'Letter ' + id, async ({ item }) => { if (!item.isDone && id === 'b') await Mail.send({ to: id }) })`)
	r := a.StartRun(kit.Call{"type": "dry"})
	kit.Equal(t, kit.JoinValues(r.Run.State, r.Script.Progress.Planned, a.ListItems("").Total), "completed 1 0",
		"the dry run")
	var plan api.Plan
	a.Want(http.StatusOK, &plan, "GET", "/api/plans/"+r.Run.ID, nil)
	got := ""
	for _, c := range plan.Calls {
		got += fmt.Sprintf("%s:%s:%s ", c.ItemID, c.Title, c.Tool)
	}
	kit.Equal(t, got, "a:Letter a: b:Letter b:mail_send c:Letter c: ", "the plan")
	var asked reeve.AutomationRun
	a.Want(http.StatusCreated, &asked, "POST", "/api/plans/"+r.Run.ID+"/apply", nil)
	done := a.ServeRun(asked)
	kit.Equal(t, kit.JoinValues(done.Run.State, done.Script.Progress.Done, done.Script.Progress.Total,
		a.ListItems("status=done").
			Total, d), "completed 3 3 3 map[b:1]", "applied")
	a.MustComplete()
	kit.Equal(t, d.String(), "map[b:1]", "there is nothing left to do")
}
