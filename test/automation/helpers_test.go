package automation_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"reeve"
	"reeve/host"
	"reeve/model"
	"reeve/reevetest"
	"reeve/test/kit"
)

var mailTools = []string{"mail_send", "mail_note", "mail_vague", "mail_any", "mail_list"}

// threeItems is a script that processes three items.
const threeItems = `
for (const id of ['a', 'b', 'c']) {
  await Items.withItem(id, 'Letter ' + id, async (ctx) => {
    if (ctx.item.isDone) return;
    await Mail.send({ to: id });
  });
}`

const (
	scheduleSeven = `scripts_schedule {"automation": "letters", "cadence_type": "cron", "cadence_value": "0 7 * * *"}`
	scheduleEight = `scripts_schedule {"automation": "letters", "cadence_type": "cron", "cadence_value": "0 8 * * *"}`
)

// goodScript is what the planner of these tests writes; badScript is what it tries first.
const (
	goodScript = `for (const id of await Mail.list({})) await Items.withItem('mail:' + id, 'Letter ' + id, async (ctx) => { if (ctx.item.isDone) return; await Mail.send({ to: id }) }); 'all answered'`
	badScript  = `for (const id of await Mail.list({})) await Mail.send({ to: id })`
)

// plannerScript is a model script that looks, tries, is corrected, asks, saves, schedules and reports.
const plannerScript = `
answers:
  - when: {said: "/The user answered: every morning/", system: You are the planner}
    calls: [{name: scripts_eval, args: {source: "` + badScript + `"}}]
  - when: {said: answer my letters, system: You are the planner}
    calls: [{name: scripts_eval, args: {source: "await getDocs('Mail') + await getDocs('Scripts')"}}]
  - when: {tool: scripts_eval, result: "outside Items.withItem"}
    calls: [{name: scripts_eval, args: {source: "` + goodScript + `"}}]
  - when: {tool: scripts_eval, result: "/Mutation: call it inside.*Scripts.history/"}
    calls: [{name: scripts_ask, args: {question: "How often?"}}]
  - when: {tool: scripts_eval, result: "/mail:a.*mail_send/"}
    calls: [{name: scripts_save, args: {source: "` + goodScript + `", comment: "Answers every letter once."}}, {name: scripts_schedule, args: {cadence_type: cron, cadence_value: "0 7 * * *", timezone: Europe/Vienna}}]
  - {when: {tool: scripts_schedule}, text: "Every morning at seven, each letter gets an answer."}
  - {when: {tool: scripts_ask}, text: "I wait for your answer."}
  - {when: {tool: scripts_save}, text: "Saved."}
`

// effectLog counts effects by their text.
type effectLog struct {
	mu   sync.Mutex
	done map[string]int
	fail map[string]bool // what is refused
	hook func(string)    // called before it is done
}

func newEffectLog() *effectLog { return &effectLog{done: map[string]int{}, fail: map[string]bool{}} }

// record counts an effect, or fails if it is refused.
func (d *effectLog) record(what string) error {
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

// refuse sets whether an effect is refused.
func (d *effectLog) refuse(what string, yes bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fail[what] = yes
}

func (d *effectLog) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return fmt.Sprint(d.done)
}

// tools returns the tools of the test scripts: mail_list is a read, mail_send is keyed with the identity to, mail_note
// is local.
func (d *effectLog) tools() []reeve.Tool {
	args := json.RawMessage(`{"type":"object","properties":{"to":{"type":"string","minLength":1},"text":{"type":"string"}},"required":["to"],"additionalProperties":false}`)
	act := func(_ context.Context, inv *reeve.Invocation) (any, error) {
		var in struct{ To, Text string }
		if err := json.Unmarshal(inv.Args, &in); err != nil {
			return nil, err
		}
		return map[string]string{"sent": in.To}, d.record(in.To + in.Text)
	}
	send, note := kit.Tool("mail_send", reeve.Keyed, act), kit.Tool("mail_note", reeve.Local, act)
	vague := kit.Tool("mail_vague", "", act)
	dynamic := kit.Tool("mail_any", reeve.Keyed, act)
	dynamic.IsRead = func(args json.RawMessage) bool { return strings.Contains(string(args), `"to":"read"`) }
	send.Identity = []string{"to"}
	for _, t := range []*reeve.Tool{&send, &note, &vague, &dynamic} {
		t.Pack, t.Parameters = "mail", args
	}
	vague.Tier = reeve.SideEffecting
	look := kit.Tool("mail_list", reeve.Read, func(context.Context, *reeve.Invocation) (any, error) {
		return []string{"a", "b", "c"}, nil
	})
	look.Pack = "mail"
	return []reeve.Tool{send, note, vague, dynamic, look}
}

// newMailer starts a host with an automation named mailer and the tools of an effectLog.
func newMailer(t *testing.T, source string) (*kit.Automation, *effectLog) {
	t.Helper()
	d := newEffectLog()
	h := reevetest.StartWith(t, kit.FastConfig(t), d.tools()...)
	return newAutomation(t, h, "mailer", source), d
}

// newAutomation creates an automation with the tools of an effectLog.
func newAutomation(t *testing.T, h *reevetest.Host, name, source string) *kit.Automation {
	t.Helper()
	a := &kit.Automation{Host: h, T: t, Name: name}
	h.Want(201, nil, "POST", "/api/automations", kit.Call{"name": name, "source": source, "tools": mailTools})
	return a
}

// runWithUnknownOutcome runs a script with a call of unknown outcome.
func runWithUnknownOutcome(t *testing.T) (*kit.Automation, *effectLog) {
	t.Helper()
	d := newEffectLog()
	lost := kit.Tool("mail_lose", reeve.Unsafe, func(context.Context, *reeve.Invocation) (any, error) {
		_ = d.record("lost")
		return nil, reeve.Errorf(reeve.Timeout, "no answer")
	})
	lost.Pack = "mail"
	h := reevetest.StartWith(t, kit.FastConfig(t), append(d.tools(), lost)...)
	a := &kit.Automation{Host: h, T: t, Name: "mailer"}
	h.Want(201, nil, "POST", "/api/automations", kit.Call{"name": a.Name, "tools": append([]string{"mail_lose"}, mailTools...), "source": `
		await Items.withItem('a', 'A', async () => { await Mail.send({ to: 'before' }); try { await Mail.lose({}) } catch (e) {} await Mail.send({ to: 'after' }) })`})
	r := a.RunOnce()
	kit.Equal(t, kit.JoinValues(r.Run.State, a.ItemState("a"), d), "parked processing map[before:1 lost:1]",
		"nobody can tell")
	if n := len(kit.GetInbox(h).Unknown); n != 1 {
		t.Fatalf("the inbox has %d", n)
	}
	return a, d
}

// countLockWaits returns how many sessions of the database wait for a lock.
func countLockWaits(t *testing.T, c *pgx.Conn) (n int) {
	if err := c.QueryRow(t.Context(),
		`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`).
		Scan(&n); err != nil {
		t.Error(err)
	}
	return n
}

// newPlannedAutomation starts a host with an automation named letters that has no script yet.
func newPlannedAutomation(t *testing.T, cfg host.Config) (*kit.Automation, *effectLog) {
	t.Helper()
	if cfg.Model == nil && cfg.Models.Default == "" {
		cfg.Model = kit.ScriptedModel(t, "answers: []") // it makes the calls that it is told to make
	}
	d := newEffectLog()
	h := reevetest.StartWith(t, cfg, d.tools()...)
	a := &kit.Automation{Host: h, T: t, Name: "letters"}
	h.Want(201, nil, "POST", "/api/automations", kit.Call{"name": a.Name, "tools": mailTools})
	return a, d
}

// runWithSteps runs a host whose model records its requests, with automations by name and source, and an agent bot with
// a config.
func runWithSteps(t *testing.T, config kit.Object,
	scripts map[string]string) (*reevetest.Host, *kit.RecordingModel, *effectLog) {
	t.Helper()
	script, err := model.ParseScript([]byte("answers:\n- {text: 'You said it.', when: {said: /./}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	d, heard := newEffectLog(), &kit.RecordingModel{Model: model.Rehearsal(script)}
	h := reevetest.Run(t, host.Config{Dir: t.TempDir(), Model: heard}, d.tools()...)
	for name, source := range scripts {
		h.Want(http.StatusCreated, nil, "POST", "/api/automations", kit.Call{"name": name, "source": source,
			"tools": mailTools})
	}
	config["instructions"] = "I am bot."
	h.Want(http.StatusCreated, nil, "POST", "/api/agents", kit.Object{"name": "bot", "config": config})
	return h, heard, d
}
