package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"reeve"
	"reeve/reevetest"
	"reeve/test/kit"
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
	send, note := kit.Tool("mail_send", reeve.Keyed, act), kit.Tool("mail_note", reeve.Local, act)
	vague := kit.Tool("mail_vague", "", act)
	dynamic := kit.Tool("mail_any", reeve.Keyed, act)
	dynamic.Reads = func(args json.RawMessage) bool { return strings.Contains(string(args), `"to":"read"`) }
	send.Identity = []string{"to"}
	for _, t := range []*reeve.Tool{&send, &note, &vague, &dynamic} {
		t.Pack, t.Parameters = "mail", args
	}
	vague.Tier = reeve.SideEffecting
	look := kit.Tool("mail_list", reeve.Read, func(context.Context, *reeve.Invocation) (any,
		error) {
		return []string{"a", "b", "c"}, nil
	})
	look.Pack = "mail"
	return []reeve.Tool{send, note, vague, dynamic, look}
}

var mailTools = []string{"mail_send", "mail_note", "mail_vague", "mail_any", "mail_list"}

func automate(t *testing.T, source string) (*kit.Automation, *deeds) {
	t.Helper()
	d := newDeeds()
	h := reevetest.StartWith(t, kit.FastConfig(t), d.tools()...)
	return newAuto(t, h, "mailer", source), d
}

func newAuto(t *testing.T, h *reevetest.Host, name, source string) *kit.Automation {
	t.Helper()
	a := &kit.Automation{Host: h, T: t, Name: name}
	h.Want(201, nil, "POST", "/api/automations", kit.Call{"name": name, "source": source, "tools": mailTools})
	return a
}
