package host_test

import (
	"net/http"
	"testing"
	"time"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/reevetest"
)

// finished waits for the last run of an automation to end.
func finished(h *reevetest.Host, name string) (last reeve.AutomationRun) {
	h.T.Helper()
	for deadline := time.Now().Add(reevetest.Timeout); ; time.Sleep(10 * time.Millisecond) {
		var list api.AutomationRunList
		h.Want(http.StatusOK, &list, "GET", "/api/automations/"+name+"/runs?limit=1", nil)
		if len(list.Runs) == 1 {
			if last = list.Runs[0]; last.Run.ID != "" && last.Run.State.IsFinal() {
				return last
			}
		}
		if time.Now().After(deadline) {
			h.T.Fatalf("the run is %+v", last)
		}
	}
}

// TestW19_AScriptAsksAnAgent: a script asks agents and waits for them, each once for each item, however often it starts
// again; what goes wrong is thrown with its code.
func TestW19_AScriptAsksAnAgent(t *testing.T) {
	t.Parallel()
	d := newDeeds()
	cfg := host.Config{Dir: t.TempDir()}
	cfg.Models.Default, cfg.Models.Script = "rehearsal", scriptFile(t, `- {when: {system: I am writer, said: rain}, text: "It pours."}
- {when: {system: I am writer, said: fog}, text: '{"line": "Grey."}'}
- {when: {system: I am broken}, fail: {status: 400, message: broken}}
`)
	h := reevetest.Run(t, cfg, d.tools()...)
	persona(h, "writer", nil)
	persona(h, "broken", nil)
	h.Want(http.StatusCreated, nil, "POST", "/api/automations", call{"name": "poet", "tools": []string{"delegate", "mail_send"}, "source": `
const failed = {};
for (const id of ['rain', 'fog']) {
  await Items.withItem(id, id, async (ctx) => {
    if (ctx.item.isDone) return;
    const answer = await Agents.delegate({ agent: 'writer', input: 'a line about ' + id });
    await Mail.send({ to: id, text: ': ' + (answer.line ?? answer) });
  });
}
await Items.withItem('both', 'both', async (ctx) => {
  if (ctx.item.isDone) return;
  const [a, b] = await Promise.all([Agents.delegate({ agent: 'writer', input: 'rain' }), Agents.delegate({ agent: 'writer', input: 'fog' })]);
  await Mail.send({ to: 'both', text: ': ' + a + b.line });
});
await Items.withItem('wrong', 'wrong', async (ctx) => {
  if (ctx.item.isDone) return;
  for (const agent of ['nobody', 'broken', 'poet']) {
    try { await Agents.delegate({ agent, input: 'hello' }); } catch (e) { failed[agent] = e.code; }
  }
});
JSON.stringify(failed)`})
	h.Want(http.StatusCreated, nil, "POST", "/api/automations/poet/runs", call{})
	run := finished(h, "poet")
	if run.Run.State != reeve.RunCompleted ||
		run.Run.Output != `{"nobody":"NOT_FOUND","broken":"MODEL_FAILED","poet":"UNSUPPORTED"}` {
		t.Errorf("%s: %s %s", run.Run.State, run.Run.Output, run.Run.Message)
	}
	if got := d.String(); got != "map[both: It pours.Grey.:1 fog: Grey.:1 rain: It pours.:1]" {
		t.Errorf("done: %s", got)
	}
	if n := len(children(h, run.Run.ID)); n != 5 {
		t.Errorf("it asked %d times", n)
	}
	h.Want(http.StatusCreated, nil, "POST", "/api/automations/poet/runs", call{})
	if again := finished(h, "poet"); len(children(h, again.Run.ID)) != 0 && again.Run.ID != run.Run.ID {
		t.Errorf("run again, it asked %d times", len(children(h, again.Run.ID)))
	}
}

// TestW19_OnlyInsideAnItem: to ask an agent changes something, and so belongs into an item.
func TestW19_OnlyInsideAnItem(t *testing.T) {
	t.Parallel()
	h := talkerIn(t, t.TempDir(), "- {text: hi}\n")
	persona(h, "writer", nil)
	h.Want(http.StatusCreated, nil, "POST", "/api/automations", call{"name": "poet", "tools": []string{"delegate"},
		"source": `await Agents.delegate({ agent: 'writer', input: 'hello' })`})
	h.Want(http.StatusCreated, nil, "POST", "/api/automations/poet/runs", call{})
	if run := finished(h, "poet"); run.Run.State != reeve.RunFailed || run.Run.Code != reeve.Conflict ||
		len(children(h, run.Run.ID)) != 0 {
		t.Errorf("%+v", run.Run)
	}
}
