package host_test

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/model"
	"reeve/reevetest"
)

// stepper runs a Reeve whose model is overheard, with automations that can send mail, by name and source, and an agent
// bot with this config.
func stepper(t *testing.T, config object, scripts map[string]string) (*reevetest.Host, *eavesdropper, *deeds) {
	t.Helper()
	script, err := model.ParseScript([]byte("answers:\n- {text: 'You said it.', when: {said: /./}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	d, heard := newDeeds(), &eavesdropper{Model: model.Rehearsal(script)}
	h := reevetest.Run(t, host.Config{Dir: t.TempDir(), Model: heard}, d.tools()...)
	for name, source := range scripts {
		h.Want(http.StatusCreated, nil, "POST", "/api/automations", call{"name": name, "source": source,
			"tools": mailTools})
	}
	config["instructions"] = "I am bot."
	h.Want(http.StatusCreated, nil, "POST", "/api/agents", object{"name": "bot", "config": config})
	return h, heard, d
}

// TestW02_AnAutomationAssembles: an agent's config may name an automation that makes what the model is asked. It is
// given all that the built-in way has, and what it gives is what the model gets.
func TestW02_AnAutomationAssembles(t *testing.T) {
	t.Parallel()
	h, heard, _ := stepper(t, object{"assembly": "context"}, map[string]string{"context": `
const r = input.request;
const letters = await Mail.list({});
r.system += ' Letters: ' + letters.join(' ') + '. Turns before: ' + input.recent_turns.length + '. Tools: ' + input.tool_ids.join(' ');
r.messages.unshift({ role: 'user', text: 'Before: ' + input.agent }, { role: 'assistant', text: 'Noted.' });
r`})
	c := h.StartConversation("bot")
	over(h, speak(h, c.ID, "first").ID)
	var turn reeve.Turn
	h.Want(http.StatusCreated, &turn, "POST", "/api/conversations/"+c.ID+"/turns",
		object{"content": "second",
			"attachments": []object{{"media_type": "text/plain",
				"data": base64.StdEncoding.EncodeToString([]byte("attached"))}}})
	if d := over(h, turn.ID); d.State != reeve.RunCompleted {
		t.Fatalf("%+v", d.Turn)
	}
	asked := heard.asked[len(heard.asked)-1]
	if !strings.Contains(asked.System, "I am bot. Letters: a b c. Turns before: 1. Tools:") ||
		!strings.Contains(asked.System, "write_file") {
		t.Errorf("system: %q", asked.System)
	}
	if got := heard.last("I am bot"); got != "user: Before: bot | assistant: Noted. | user: first | assistant: You "+
		"said it. | user:  | user: second" {
		t.Errorf("the model was told %s", got)
	}
	whole := false
	for _, m := range asked.Messages {
		for _, p := range m.Parts {
			whole = whole || p.Type == model.Media && string(p.Data) == "attached" && p.URL == ""
		}
	}
	if !whole || len(asked.Tools) == 0 {
		t.Errorf("what was attached, or the tools, did not come through: %+v", asked)
	}
	steps := children(h, turn.ID)
	if len(steps) != 1 || steps[0].State != reeve.RunCompleted || len(steps[0].Ancestors) != 1 ||
		!steps[0].Ancestors[0].OwnRights {
		t.Errorf("%+v", steps)
	}
}

// TestW02_WhatAnAssemblyLeavesOut: what the automation does not say is the agent's own, and an empty text is no
// instructions.
func TestW02_WhatAnAssemblyLeavesOut(t *testing.T) {
	t.Parallel()
	h, heard, _ := stepper(t, object{"assembly": "context", "temperature": 0.2, "effort": "high", "max_tokens": 77}, map[string]string{"context": `
const said = input.user_message.parts[0].text, messages = [{ role: 'user', text: said }];
said === 'bare' ? { messages, system: '', effort: 'low', temperature: 0.9, max_tokens: 5 } : { messages }`})
	c := h.StartConversation("bot")
	for said, want := range map[string]model.Request{"plain": {System: "I am bot.", Effort: "high", MaxTokens: 77},
		"bare": {Effort: "low", MaxTokens: 5}} {
		if d := over(h, speak(h, c.ID, said).ID); d.State != reeve.RunCompleted {
			t.Fatalf("%+v", d.Turn)
		}
		cold := map[string]float64{"plain": 0.2, "bare": 0.9}[said]
		if is := heard.asked[len(heard.asked)-1]; is.System != want.System || is.Effort != want.Effort ||
			is.MaxTokens != want.MaxTokens || is.Temperature == nil || *is.Temperature != cold || len(is.Tools) == 0 {
			t.Errorf("%s: the model was asked with %q, %q, %d, %v", said, is.System, is.Effort, is.MaxTokens,
				is.Temperature)
		}
	}
}

// TestW09_AnAssemblyThatFails: after three tries, or at once if trying again would change nothing, the turn fails with
// its code, and no model is asked.
func TestW09_AnAssemblyThatFails(t *testing.T) {
	t.Parallel()
	h, heard, _ := stepper(t, object{}, map[string]string{
		"throws":   `throw new Error('no letters today')`,
		"words":    `'just words'`,
		"nothing":  `({ messages: [] })`,
		"misspelt": `({ mesages: [{ role: 'user', text: 'hi' }] })`,
		"greedy":   `({ messages: [{ role: 'user', text: 'hi' }], tools: [{ name: 'shell_exec', parameters: {} }] })`,
	})
	c := h.StartConversation("bot")
	for name, want := range map[string]struct {
		says string
		runs int
	}{"throws": {"no letters today", 3}, "words": {"returned no valid request", 1}, "nothing": {"no messages", 1},
		"misspelt": {"mesages", 1}, "greedy": {"shell_exec", 1}, "absent": {"not found", 0},
		"bot": {"not found", 0}} {
		h.Want(http.StatusOK, nil, "PATCH", "/api/agents/bot", object{"config": object{"assembly": name}})
		d := over(h, speak(h, c.ID, "hello").ID)
		if d.State != reeve.RunFailed || d.Code != reeve.AssemblyFailed || !strings.Contains(d.Message, want.says) ||
			d.ModelRequests != 0 {
			t.Errorf("%s: %+v", name, d.Turn)
		}
		if n := len(children(h, d.ID)); n != want.runs {
			t.Errorf("%s was run %d times, want %d", name, n, want.runs)
		}
	}
	if len(heard.asked) != 0 {
		t.Errorf("the model was asked %d times", len(heard.asked))
	}
}

// TestK17_AStepThatAPauseEnded is not carried on with when the automation is resumed: whoever waited for it has been
// told.
func TestK17_AStepThatAPauseEnded(t *testing.T) {
	t.Parallel()
	h, _, d := stepper(t, object{"assembly": "context"}, map[string]string{"context": `
await Items.withItem('a', 'A', async ({ item }) => { await Mail.send({ to: 'one' }); await Mail.send({ to: 'two' }) });
input.request`})
	d.hook = func(string) { h.Want(http.StatusOK, nil, "POST", "/api/automations/context/pause", nil) }
	turn := over(h, speak(h, h.StartConversation("bot").ID, "hello").ID)
	equal(t, spoken(turn.State, turn.Code, d), "failed CONTEXT_ASSEMBLY_FAILED map[one:1]", "the turn")
	var m reeve.Automation
	h.Want(http.StatusOK, &m, "GET", "/api/automations/context", nil)
	equal(t, m.PausedRun, "", "what is to be carried on with")
	h.Want(http.StatusOK, nil, "POST", "/api/automations/context/resume", nil)
	var l api.WakeList
	h.Want(http.StatusOK, &l, "GET", "/api/agents/context/wakes", nil)
	equal(t, len(l.Wakes), 0, "wakes of the automation")
}

// TestW22_AnAutomationTakesNotes: an automation takes notes of each turn once; one that fails only flags the turn.
func TestW22_AnAutomationTakesNotes(t *testing.T) {
	t.Parallel()
	h, _, d := stepper(t, object{"extraction": "notes"}, map[string]string{"notes": `
await Items.withItem(input.turn_id, input.input, async (ctx) => {
  if (ctx.item.isDone) return;
  if (input.input === 'bad') throw new Error('I cannot note that');
  await Mail.send({ to: input.input, text: ': ' + input.transcript.map((m) => m.text).join() });
});`})
	c := h.StartConversation("bot")
	for _, text := range []string{"one", "two", "bad"} {
		turn := over(h, speak(h, c.ID, text).ID)
		if turn.State != reeve.RunCompleted || turn.Issues.ExtractionFailed != (text == "bad") {
			t.Errorf("%s: %+v", text, turn.Turn)
		}
		if n, want := len(children(h, turn.ID)), map[bool]int{true: 3, false: 1}[text == "bad"]; n != want {
			t.Errorf("%s: %d runs, want %d", text, n, want)
		}
	}
	if got := d.String(); got != "map[one: You said it.:1 two: You said it.:1]" {
		t.Errorf("noted: %s", got)
	}
}
