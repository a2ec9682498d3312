package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
)

// deeds counts what was done, by what was said.
type deeds struct {
	mu   sync.Mutex
	done map[string]int
	fail map[string]bool // what is refused
	hook func(string)    // called before it is done
}

func newDeeds() *deeds { return &deeds{done: map[string]int{}, fail: map[string]bool{}} }

func (d *deeds) do(what string) error {
	if d.hook != nil {
		d.hook(what)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fail[what] {
		return reeve.Errorf(reeve.ToolFailed, "%s was refused", what)
	}
	d.done[what]++
	return nil
}

func (d *deeds) refuse(what string, yes bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fail[what] = yes
}

func (d *deeds) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return fmt.Sprint(d.done)
}

// tools are what scripts of tests call: look changes nothing, send is keyed and its identity is to, note is local.
func (d *deeds) tools() []reeve.Tool {
	args := json.RawMessage(`{"type":"object","properties":{"to":{"type":"string","minLength":1},"text":{"type":"string"}},"required":["to"],"additionalProperties":false}`)
	act := func(_ context.Context, inv *reeve.Invocation) (any, error) {
		var in struct{ To, Text string }
		if err := json.Unmarshal(inv.Args, &in); err != nil {
			return nil, err
		}
		return map[string]string{"sent": in.To}, d.do(in.To + in.Text)
	}
	send, note := tool("mail_send", reeve.Keyed, act), tool("mail_note", reeve.Local, act)
	vague := tool("mail_vague", "", act)
	dynamic := tool("mail_any", reeve.Keyed, act)
	dynamic.IsRead = func(args json.RawMessage) bool { return strings.Contains(string(args), `"to":"read"`) }
	send.Identity = []string{"to"}
	for _, t := range []*reeve.Tool{&send, &note, &vague, &dynamic} {
		t.Pack, t.Parameters = "mail", args
	}
	vague.Tier = reeve.SideEffecting
	look := tool("mail_list", reeve.Read, func(context.Context, *reeve.Invocation) (any,
		error) {
		return []string{"a", "b", "c"}, nil
	})
	look.Pack = "mail"
	return []reeve.Tool{send, note, vague, dynamic, look}
}

var mailTools = []string{"mail_send", "mail_note", "mail_vague", "mail_any", "mail_list"}

// auto is an automation under test.
type auto struct {
	*reevetest.Host
	t    *testing.T
	name string
}

func automate(t *testing.T, source string) (*auto, *deeds) {
	t.Helper()
	d := newDeeds()
	h := reevetest.StartWith(t, quick(t), d.tools()...)
	return newAuto(t, h, "mailer", source), d
}

func newAuto(t *testing.T, h *reevetest.Host, name, source string) *auto {
	t.Helper()
	a := &auto{Host: h, t: t, name: name}
	h.Want(201, nil, "POST", "/api/automations", call{"name": name, "source": source, "tools": mailTools})
	return a
}

func (a *auto) at(rest string) string { return "/api/automations/" + a.name + rest }

func (a *auto) save(source string, fix bool) string {
	a.t.Helper()
	var v reeve.ScriptVersion
	a.Want(201, &v, "POST", a.at("/versions"), call{"source": source, "fix": fix})
	return v.Version()
}

// start asks for a run and serves it.
func (a *auto) start(body call) reeve.AutomationRun {
	a.t.Helper()
	var asked reeve.AutomationRun
	a.Want(201, &asked, "POST", a.at("/runs"), body)
	return a.served(asked)
}

func (a *auto) served(asked reeve.AutomationRun) (out reeve.AutomationRun) {
	a.t.Helper()
	var w reeve.Wake
	for range 50 {
		if _, err := a.Step(a.t.Context()); err != nil {
			a.t.Fatal(err)
		}
		a.Want(200, &w, "GET", "/api/wakes/"+url.PathEscape(asked.Wake.RunKey), nil)
		if w.RunID == "" {
			continue
		}
		a.Want(200, &out, "GET", a.at("/runs/"+w.RunID), nil)
		if out.Run.State != reeve.RunRunning {
			return out
		}
	}
	a.t.Fatalf("the run did not come to an end: %+v", out.Run)
	return out
}

func (a *auto) run() reeve.AutomationRun { a.t.Helper(); return a.start(call{}) }

// completes runs it, which must work.
func (a *auto) completes() reeve.AutomationRun {
	a.t.Helper()
	r := a.run()
	if r.Run.State != reeve.RunCompleted {
		a.t.Fatalf("the run is %s: %s %s", r.Run.State, r.Run.Code, r.Run.Message)
	}
	return r
}

// fails runs it, which must fail in a way that says something.
func (a *auto) fails(class reeve.FailureClass, says ...string) reeve.AutomationRun {
	a.t.Helper()
	r := a.run()
	if r.Run.State != reeve.RunFailed || r.Script.Class != class {
		a.t.Fatalf("the run is %s (%s, %s): %s; want a failure of class %s", r.Run.State, r.Run.Code, r.Script.Class,
			r.Run.Message, class)
	}
	for _, s := range says {
		if !strings.Contains(r.Run.Message, s) {
			a.t.Errorf("%q does not say %q", r.Run.Message, s)
		}
	}
	return r
}

func (a *auto) items(query string) (l reeve.ItemList) {
	a.t.Helper()
	a.Want(200, &l, "GET", a.at("/items?"+query), nil)
	return l
}

func (a *auto) item(id string) (v api.ItemHistory) {
	a.t.Helper()
	a.Want(200, &v, "GET", a.at("/items/"+url.PathEscape(id)), nil)
	return v
}

func (a *auto) state(id string) reeve.ItemState { a.t.Helper(); return a.item(id).State }

func (a *auto) wantItems(n int) {
	a.t.Helper()
	if l := a.items(""); l.Total != n {
		a.t.Errorf("there are %d items, want %d: %+v", l.Total, n, l.Items)
	}
}

func equal[T comparable](t testing.TB, got, want T, what string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// spoken joins values for reading.
func spoken(values ...any) string { return strings.TrimSpace(fmt.Sprintln(values...)) }
