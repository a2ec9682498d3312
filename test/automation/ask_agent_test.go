package automation_test

import (
	"net/http"
	"testing"

	"reeve"
	"reeve/host"
	"reeve/reevetest"
	"reeve/test/kit"
)

// A script asks agents and waits for them, once per item, however often the script starts again. Errors are thrown with
// their code.
func TestW19_AScriptAsksAnAgent(t *testing.T) {
	t.Parallel()
	d := newEffectLog()
	cfg := host.Config{Dir: t.TempDir()}
	cfg.Models.Default, cfg.Models.Script = "rehearsal", kit.WriteScript(t, `- {when: {system: I am writer, said: rain}, text: "It pours."}
- {when: {system: I am writer, said: fog}, text: '{"line": "Grey."}'}
- {when: {system: I am broken}, fail: {status: 400, message: broken}}
`)
	h := reevetest.Run(t, cfg, d.tools()...)
	kit.NewPersona(h, "writer", nil)
	kit.NewPersona(h, "broken", nil)
	h.Want(http.StatusCreated, nil, "POST", "/api/automations", kit.Call{"name": "poet", "tools": []string{"delegate", "mail_send"}, "source": `
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
    try { await Agents.delegate({ agent, input: 'hello' }); } catch (e) { failed[agent] = e.code; await ctx.ignore(e); }
  }
});
JSON.stringify(failed)`})
	h.Want(http.StatusCreated, nil, "POST", "/api/automations/poet/runs", kit.Call{})
	run := kit.WaitForAutomationRun(h, "poet")
	if run.Run.State != reeve.RunCompleted ||
		run.Run.Output != `{"nobody":"NOT_FOUND","broken":"MODEL_FAILED","poet":"UNSUPPORTED"}` {
		t.Errorf("%s: %s %s", run.Run.State, run.Run.Output, run.Run.Message)
	}
	if got := d.String(); got != "map[both: It pours.Grey.:1 fog: Grey.:1 rain: It pours.:1]" {
		t.Errorf("done: %s", got)
	}
	if n := len(kit.ListChildren(h, run.Run.ID)); n != 5 {
		t.Errorf("it asked %d times", n)
	}
	h.Want(http.StatusCreated, nil, "POST", "/api/automations/poet/runs", kit.Call{})
	if again := kit.WaitForAutomationRun(h, "poet"); len(kit.ListChildren(h, again.Run.ID)) != 0 &&
		again.Run.ID != run.Run.ID {
		t.Errorf("run again, it asked %d times", len(kit.ListChildren(h, again.Run.ID)))
	}
}

// Asking an agent is a change, so it is allowed only inside an item.
func TestW19_AgentsAreAskedOnlyInsideAnItem(t *testing.T) {
	t.Parallel()
	h := kit.RunScriptedIn(t, t.TempDir(), "- {text: hi}\n")
	kit.NewPersona(h, "writer", nil)
	h.Want(http.StatusCreated, nil, "POST", "/api/automations", kit.Call{"name": "poet", "tools": []string{"delegate"},
		"source": `await Agents.delegate({ agent: 'writer', input: 'hello' })`})
	h.Want(http.StatusCreated, nil, "POST", "/api/automations/poet/runs", kit.Call{})
	if run := kit.WaitForAutomationRun(h, "poet"); run.Run.State != reeve.RunFailed || run.Run.Code != reeve.Conflict ||
		len(kit.ListChildren(h, run.Run.ID)) != 0 {
		t.Errorf("%+v", run.Run)
	}
}
