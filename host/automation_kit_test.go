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
	send, note := Tool("mail_send", reeve.Keyed, act), Tool("mail_note", reeve.Local, act)
	vague := Tool("mail_vague", "", act)
	dynamic := Tool("mail_any", reeve.Keyed, act)
	dynamic.Reads = func(args json.RawMessage) bool { return strings.Contains(string(args), `"to":"read"`) }
	send.Identity = []string{"to"}
	for _, t := range []*reeve.Tool{&send, &note, &vague, &dynamic} {
		t.Pack, t.Parameters = "mail", args
	}
	vague.Tier = reeve.SideEffecting
	look := Tool("mail_list", reeve.Read, func(context.Context, *reeve.Invocation) (any,
		error) {
		return []string{"a", "b", "c"}, nil
	})
	look.Pack = "mail"
	return []reeve.Tool{send, note, vague, dynamic, look}
}

var mailTools = []string{"mail_send", "mail_note", "mail_vague", "mail_any", "mail_list"}

// Automation is an automation under test.
type Automation struct {
	*reevetest.Host
	T    *testing.T
	Name string
}

func automate(t *testing.T, source string) (*Automation, *deeds) {
	t.Helper()
	d := newDeeds()
	h := reevetest.StartWith(t, FastConfig(t), d.tools()...)
	return newAuto(t, h, "mailer", source), d
}

func newAuto(t *testing.T, h *reevetest.Host, name, source string) *Automation {
	t.Helper()
	a := &Automation{Host: h, T: t, Name: name}
	h.Want(201, nil, "POST", "/api/automations", Call{"name": name, "source": source, "tools": mailTools})
	return a
}

func (a *Automation) Path(rest string) string { return "/api/automations/" + a.Name + rest }

func (a *Automation) SaveVersion(source string, fix bool) string {
	a.T.Helper()
	var v reeve.ScriptVersion
	a.Want(201, &v, "POST", a.Path("/versions"), Call{"source": source, "fix": fix})
	return v.Version()
}

// StartRun asks for a run and serves it.
func (a *Automation) StartRun(body Call) reeve.AutomationRun {
	a.T.Helper()
	var asked reeve.AutomationRun
	a.Want(201, &asked, "POST", a.Path("/runs"), body)
	return a.ServeRun(asked)
}

func (a *Automation) ServeRun(asked reeve.AutomationRun) (out reeve.AutomationRun) {
	a.T.Helper()
	var w reeve.Wake
	for range 50 {
		if _, err := a.Step(a.T.Context()); err != nil {
			a.T.Fatal(err)
		}
		a.Want(200, &w, "GET", "/api/wakes/"+url.PathEscape(asked.Wake.RunKey), nil)
		if w.RunID == "" {
			continue
		}
		a.Want(200, &out, "GET", a.Path("/runs/"+w.RunID), nil)
		if out.Run.State != reeve.RunRunning {
			return out
		}
	}
	a.T.Fatalf("the run did not come to an end: %+v", out.Run)
	return out
}

func (a *Automation) RunOnce() reeve.AutomationRun { a.T.Helper(); return a.StartRun(Call{}) }

// MustComplete runs it, which must work.
func (a *Automation) MustComplete() reeve.AutomationRun {
	a.T.Helper()
	r := a.RunOnce()
	if r.Run.State != reeve.RunCompleted {
		a.T.Fatalf("the run is %s: %s %s", r.Run.State, r.Run.Code, r.Run.Message)
	}
	return r
}

// MustFail runs it, which must fail in a way that says something.
func (a *Automation) MustFail(class reeve.FailureClass, says ...string) reeve.AutomationRun {
	a.T.Helper()
	r := a.RunOnce()
	if r.Run.State != reeve.RunFailed || r.Script.Class != class {
		a.T.Fatalf("the run is %s (%s, %s): %s; want a failure of class %s", r.Run.State, r.Run.Code, r.Script.Class,
			r.Run.Message, class)
	}
	for _, s := range says {
		if !strings.Contains(r.Run.Message, s) {
			a.T.Errorf("%q does not say %q", r.Run.Message, s)
		}
	}
	return r
}

func (a *Automation) ListItems(query string) (l reeve.ItemList) {
	a.T.Helper()
	a.Want(200, &l, "GET", a.Path("/items?"+query), nil)
	return l
}

func (a *Automation) GetItem(id string) (v api.ItemHistory) {
	a.T.Helper()
	a.Want(200, &v, "GET", a.Path("/items/"+url.PathEscape(id)), nil)
	return v
}

func (a *Automation) ItemState(id string) reeve.ItemState { a.T.Helper(); return a.GetItem(id).State }

func (a *Automation) WantItems(n int) {
	a.T.Helper()
	if l := a.ListItems(""); l.Total != n {
		a.T.Errorf("there are %d items, want %d: %+v", l.Total, n, l.Items)
	}
}

func Equal[T comparable](t testing.TB, got, want T, what string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// JoinValues joins values for reading.
func JoinValues(values ...any) string { return strings.TrimSpace(fmt.Sprintln(values...)) }
