package automation_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/reevetest"
	"reeve/test/kit"
)

// Items are listed newest first and completely, also those that began in one batch at the same time.
func TestK12_ItemsAreListedNewestFirst(t *testing.T) {
	t.Parallel()
	kit.OnBothDatabases(t, func(t *testing.T, cfg host.Config) {
		t.Parallel()
		h := reevetest.StartWith(t, cfg)
		a := &kit.Automation{Host: h, T: t, Name: "many"}
		const n = 400
		h.Want(201, nil, "POST", "/api/automations", kit.Call{"name": a.Name, "source": fmt.Sprintf(`
			for (let i = 0; i < %d; i++) await Items.withItem('item-' + (i * 7919 %% %d), 'number ' + i, async () => {});
			(await Items.list({limit: 1000})).items.map(v => v.title).join()`, n, n)})
		run := a.StartRun(kit.Call{})
		want := make([]string, n)
		for i := range n {
			want[i] = fmt.Sprint("number ", n-1-i)
		}
		if run.Run.State != reeve.RunCompleted || run.Run.Output != strings.Join(want, ",") {
			t.Errorf("the script sees, as %s: %.200s", run.Run.State, run.Run.Output)
		}
		var got []string
		for offset := 0; offset < n; offset += 150 {
			var list reeve.ItemList
			h.Want(200, &list, "GET", a.Path(fmt.Sprint("/items?limit=150&offset=", offset)), nil)
			for _, v := range list.Items {
				got = append(got, v.Title)
			}
		}
		if strings.Join(got, ",") != strings.Join(want, ",") {
			t.Errorf("in pages: %.200s", strings.Join(got, ","))
		}
	})
}

// The inbox shows an item that needs attention until a person has decided.
func TestK13_WhatNeedsAttentionIsInTheInbox(t *testing.T) {
	t.Parallel()
	kit.OnBothDatabases(t, func(t *testing.T, cfg host.Config) {
		t.Parallel()
		d := newEffectLog()
		h := reevetest.StartWith(t, cfg, d.tools()...)
		a := newAutomation(t, h, "mailer",
			`Items.withItem('x', 'Letter', async () => { await Mail.send({to: 'ann', text: '1'}); throw new Error('halt'); })`)
		a.StartRun(kit.Call{})
		a.SaveVersion(`Items.withItem('x', 'Letter', async () => { await Mail.send({to: 'ann', text: '2'}); })`, true)
		a.StartRun(kit.Call{})
		var box api.Inbox
		h.Want(200, &box, "GET", "/api/inbox", nil)
		if len(box.Items) != 1 || box.Items[0].ID != "x" || box.Items[0].Automation != "mailer" ||
			box.Items[0].State != reeve.ItemNeedsAttention {
			t.Fatalf("the inbox: %+v", box.Items)
		}
		var s api.Status
		if h.Want(200, &s, "GET", "/api/status", nil); s.Waiting != box.Waiting() || s.Waiting == 0 {
			t.Errorf("%d wait, and the status says %d", box.Waiting(), s.Waiting)
		}
		h.Want(200, nil, "POST", a.Path("/items/skip"), kit.Call{"item": "x"})
		raw := map[string]json.RawMessage{}
		if h.Want(200, &raw, "GET", "/api/inbox", nil); string(raw["items"]) != "[]" {
			t.Errorf("after the decision: %s", raw["items"])
		}
	})
}

// The inbox shows a question of the planner to those who may answer, until it is answered.
func TestK13_QuestionsAreInTheInbox(t *testing.T) {
	t.Parallel()
	kit.OnBothDatabases(t, func(t *testing.T, cfg host.Config) {
		t.Parallel()
		cfg.Model = kit.ScriptedModel(t, plannerScript)
		a, _ := newPlannedAutomation(t, cfg)
		k := a.Plan("answer my letters")
		var box api.Inbox
		a.Want(200, &box, "GET", "/api/inbox", nil)
		if len(box.Questions) != 1 || box.Questions[0].ID != k.ID || box.Questions[0].Question != "How often?" {
			t.Fatalf("the inbox: %+v", box.Questions)
		}
		var s api.Status
		if a.Want(200, &s, "GET", "/api/status", nil); s.Waiting != box.Waiting() || s.Waiting == 0 {
			t.Errorf("%d wait, and the status says %d", box.Waiting(), s.Waiting)
		}
		var others api.Inbox
		a.Want(200, &others, "GET", "/api/inbox", nil, kit.NewTokenFor(a.Host, "bob", "member")...)
		if len(others.Questions) != 0 {
			t.Errorf("another member sees %+v", others.Questions)
		}
		a.Want(200, nil, "POST", "/api/script-jobs/"+k.ID+"/answer", kit.Call{"answer": "every morning"})
		raw := map[string]json.RawMessage{}
		if a.Want(200, &raw, "GET", "/api/inbox", nil); string(raw["questions"]) != "[]" {
			t.Errorf("after the answer: %s", raw["questions"])
		}
	})
}

func TestK12_List(t *testing.T) {
	t.Parallel()
	a, _ := newMailer(t, `for (let i = 0; i < 150; i++) { try { await Items.withItem('i' + String(149 - i).padStart(3, '0'), 'I', () => { if (i === 7) throw new Error('seven') }) } catch (e) {} }`)
	a.RunOnce()
	other := newAutomation(t, a.Host, "other", `await Items.withItem('i001', 'Other', () => 1)`)
	other.MustComplete()
	other.WantItems(1)
	a.SaveVersion(`
		const short = (l) => [l.items.length, l.total, l.has_more, l.items[0]?.id].join(' ');
		const codes = [];
		for (const bad of [{limit: 0}, {limit: 1001}, {limit: -1}, {offset: -1}, {status: 'x'}, {nope: 1}, 'x']) { try { await Items.list(bad); codes.push('none') } catch (e) { codes.push(e.code) } }
		[short(await Items.list()), short(await Items.list({limit: 1000})), short(await Items.list({limit: 1, offset: 149})), short(await Items.list({status: 'failed'})),
		 short(await Items.list({id: 'i003'})), short(await Items.list({status: 'done', id: 'i142'})), [...new Set(codes)].join()].join('; ')`, false)
	kit.Equal(t, a.MustComplete().Run.Output,
		"100 150 true i000; 150 150 false i000; 1 150 false i149; 1 1 false i142; 1 1 false i003; 0 0 false ; "+
			"VALIDATION_ERROR", "lists")
}

// Items begin in an order that neither their ids nor their titles have, most within one millisecond, and some fail. The
// newest is the last that began: for the script, over REST and page by page.
func TestK12_NewestFirst(t *testing.T) {
	t.Parallel()
	var ids []string
	for i := range 60 {
		ids = append(ids, fmt.Sprintf("i%02d", i*37%60)) // each once
	}
	a, _ := newMailer(t, `for (const id of `+string(kit.MustJSON(ids))+`) {
		try { await Items.withItem(id, 'Item', () => { if (id > 'i54') throw new Error('no') }) } catch (e) {}
	}`)
	a.RunOnce()
	var want string // the last comes first
	for _, id := range ids {
		want = strings.TrimSpace(id + " " + want)
	}
	a.SaveVersion(`const list = await Items.list(), pages = [];
		for (let offset = 0; offset < 60; offset += 7) pages.push(...(await Items.list({ limit: 7, offset })).items);
		[list.items, pages].map((l) => l.map((i) => i.id).join(' ')).join('; ')`, false)
	kit.Equal(t, a.MustComplete().Run.Output, want+"; "+want, "for the script")
	var rest []string
	for more := true; more; {
		var l reeve.ItemList
		a.Want(200, &l, "GET", a.Path(fmt.Sprintf("/items?limit=7&offset=%d", len(rest))), nil)
		for _, v := range l.Items {
			rest = append(rest, v.ID)
		}
		more = l.HasMore
	}
	kit.Equal(t, strings.Join(rest, " "), want, "over REST")
}
