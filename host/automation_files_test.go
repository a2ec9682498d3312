package host_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/reevetest"
	"reeve/test/kit"
)

// What an automation's script writes is there for its later runs, of whatever version, and for people, in pages.
func TestK32_FilesOfAnAutomationAreFound(t *testing.T) {
	t.Parallel()
	kit.OnBothDatabases(t, func(t *testing.T, cfg host.Config) {
		t.Parallel()
		h := reevetest.StartWith(t, cfg)
		a := &kit.Automation{Host: h, T: t, Name: "tidy"}
		h.Want(201, nil, "POST", "/api/automations", kit.Call{"name": a.Name, "source": `
			for (const day of ['mon', 'tue', 'wed']) {
				await Items.withItem(day, day, async (ctx) => {
					if (!ctx.item.isDone) await Session.writeFile({ path: '/days/' + day + '.md', content: '# ' + day });
				});
			}`})
		if run := a.StartRun(kit.Call{}); run.Run.State != reeve.RunCompleted {
			t.Fatalf("%+v", run.Run)
		}
		var list api.SessionFileList
		var seen []string
		for more := true; more; more = list.Next != "" {
			path := a.Path("/files?limit=2&cursor=" + url.QueryEscape(list.Next))
			list = api.SessionFileList{}
			h.Want(200, &list, "GET", path, nil)
			for _, f := range list.Files {
				seen = append(seen, fmt.Sprint(f.Path, " ", f.Size))
			}
		}
		if got := strings.Join(seen, ", "); got != "/days/mon.md 5, /days/tue.md 5, /days/wed.md 5" {
			t.Errorf("its files: %s", got)
		}
		var f api.SessionFileContent
		h.Want(200, &f, "GET", a.Path("/files/content?path=/days/tue.md"), nil)
		if f.Content != "# tue" || f.Path != "/days/tue.md" {
			t.Errorf("%+v", f)
		}
		h.Want(http.StatusNotFound, nil, "GET", a.Path("/files/content?path=/days/sun.md"), nil)
		h.Want(http.StatusBadRequest, nil, "GET", a.Path("/files?cursor=days"), nil)
		a.SaveVersion(`await Session.readFile({ path: '/days/wed.md' })`, false)
		if run := a.StartRun(kit.Call{}); run.Run.Output != "# wed" {
			t.Errorf("a later run read %q: %s", run.Run.Output, run.Run.Message)
		}
		// of a session of the caller's own
		if res := h.Call("tidy", "read_file", kit.Object{"path": "/days/mon.md"}); !res.IsError {
			t.Errorf("%+v", res)
		}
	})
}

// Items are listed newest first, and completely, also those that one batch entered at the same time.
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

// An item that needs attention waits for a person: the inbox shows it until somebody has decided.
func TestK13_WhatNeedsAttentionIsInTheInbox(t *testing.T) {
	t.Parallel()
	kit.OnBothDatabases(t, func(t *testing.T, cfg host.Config) {
		t.Parallel()
		d := newDeeds()
		h := reevetest.StartWith(t, cfg, d.tools()...)
		a := newAuto(t, h, "mailer",
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

// A question of the planner waits for a person: the inbox shows it, to those who may answer it, until it is answered.
func TestK13_QuestionsAreInTheInbox(t *testing.T) {
	t.Parallel()
	kit.OnBothDatabases(t, func(t *testing.T, cfg host.Config) {
		t.Parallel()
		cfg.Model = kit.ScriptedModel(t, plannerScript)
		a, _ := planning(t, cfg)
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
