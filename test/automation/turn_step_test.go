package automation_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/model"
	"reeve/test/kit"
)

// An agent's config names an automation that assembles the model request. It gets all input that the built-in assembly
// has, and the model gets its output.
func TestW02_AutomationAssemblesTheRequest(t *testing.T) {
	t.Parallel()
	h, heard, _ := runWithSteps(t, kit.Object{"assembly": "context"}, map[string]string{"context": `
const r = input.request;
const letters = await Mail.list({});
r.system += ' Letters: ' + letters.join(' ') + '. Turns before: ' + input.recent_turns.length + '. Tools: ' + input.tool_ids.join(' ');
r.messages.unshift({ role: 'user', text: 'Before: ' + input.agent }, { role: 'assistant', text: 'Noted.' });
r`})
	c := h.StartConversation("bot")
	kit.WaitForTurn(h, kit.StartTurn(h, c.ID, "first").ID)
	var turn reeve.Turn
	h.Want(http.StatusCreated, &turn, "POST", "/api/conversations/"+c.ID+"/turns",
		kit.Object{"content": "second",
			"attachments": []kit.Object{{"media_type": "text/plain",
				"data": base64.StdEncoding.EncodeToString([]byte("attached"))}}})
	if d := kit.WaitForTurn(h, turn.ID); d.State != reeve.RunCompleted {
		t.Fatalf("%+v", d.Turn)
	}
	asked := heard.Requests[len(heard.Requests)-1]
	if !strings.Contains(asked.System, "I am bot. Letters: a b c. Turns before: 1. Tools:") ||
		!strings.Contains(asked.System, "write_file") {
		t.Errorf("system: %q", asked.System)
	}
	if got := heard.LastPrompt("I am bot"); got != "user: Before: bot | assistant: Noted. | user: first | assistant: You "+
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
	steps := kit.ListChildren(h, turn.ID)
	if len(steps) != 1 || steps[0].State != reeve.RunCompleted || len(steps[0].Ancestors) != 1 ||
		!steps[0].Ancestors[0].OwnRights {
		t.Errorf("%+v", steps)
	}
}

// Fields that the automation leaves out come from the agent. An empty text means no instructions.
func TestW02_AssemblyDefaults(t *testing.T) {
	t.Parallel()
	h, heard, _ := runWithSteps(t, kit.Object{"assembly": "context", "temperature": 0.2, "effort": "high", "max_tokens": 77}, map[string]string{"context": `
const said = input.user_message.parts[0].text, messages = [{ role: 'user', text: said }];
said === 'bare' ? { messages, system: '', effort: 'low', temperature: 0.9, max_tokens: 5 } : { messages }`})
	c := h.StartConversation("bot")
	for said, want := range map[string]model.Request{"plain": {System: "I am bot.", Effort: "high", MaxTokens: 77},
		"bare": {Effort: "low", MaxTokens: 5}} {
		if d := kit.WaitForTurn(h, kit.StartTurn(h, c.ID, said).ID); d.State != reeve.RunCompleted {
			t.Fatalf("%+v", d.Turn)
		}
		cold := map[string]float64{"plain": 0.2, "bare": 0.9}[said]
		if is := heard.Requests[len(heard.Requests)-1]; is.System != want.System || is.Effort != want.Effort ||
			is.MaxTokens != want.MaxTokens || is.Temperature == nil || *is.Temperature != cold || len(is.Tools) == 0 {
			t.Errorf("%s: the model was asked with %q, %q, %d, %v", said, is.System, is.Effort, is.MaxTokens,
				is.Temperature)
		}
	}
}

// After three attempts, or at once if a retry is useless, the turn fails with the error code, and no model is asked.
func TestW09_FailingAssemblyFailsTheTurn(t *testing.T) {
	t.Parallel()
	h, heard, _ := runWithSteps(t, kit.Object{}, map[string]string{
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
		h.Want(http.StatusOK, nil, "PATCH", "/api/agents/bot", kit.Object{"config": kit.Object{"assembly": name}})
		d := kit.WaitForTurn(h, kit.StartTurn(h, c.ID, "hello").ID)
		if d.State != reeve.RunFailed || d.Code != reeve.AssemblyFailed || !strings.Contains(d.Message, want.says) ||
			d.ModelRequests != 0 {
			t.Errorf("%s: %+v", name, d.Turn)
		}
		if n := len(kit.ListChildren(h, d.ID)); n != want.runs {
			t.Errorf("%s was run %d times, want %d", name, n, want.runs)
		}
	}
	if len(heard.Requests) != 0 {
		t.Errorf("the model was asked %d times", len(heard.Requests))
	}
}

// A step that a pause ended does not continue after a resume, because its caller already has an error.
func TestK17_StepEndedByAPauseIsNotResumed(t *testing.T) {
	t.Parallel()
	h, _, d := runWithSteps(t, kit.Object{"assembly": "context"}, map[string]string{"context": `
await Items.withItem('a', 'A', async ({ item }) => { await Mail.send({ to: 'one' }); await Mail.send({ to: 'two' }) });
input.request`})
	d.hook = func(string) { h.Want(http.StatusOK, nil, "POST", "/api/automations/context/pause", nil) }
	turn := kit.WaitForTurn(h, kit.StartTurn(h, h.StartConversation("bot").ID, "hello").ID)
	kit.Equal(t, kit.JoinValues(turn.State, turn.Code, d), "failed CONTEXT_ASSEMBLY_FAILED map[one:1]", "the turn")
	var m reeve.Automation
	h.Want(http.StatusOK, &m, "GET", "/api/automations/context", nil)
	kit.Equal(t, m.PausedRun, "", "what is to be carried on with")
	h.Want(http.StatusOK, nil, "POST", "/api/automations/context/resume", nil)
	var l api.WakeList
	h.Want(http.StatusOK, &l, "GET", "/api/agents/context/wakes", nil)
	kit.Equal(t, len(l.Wakes), 0, "wakes of the automation")
}

// An automation takes notes of each turn once. One that fails only flags the turn.
func TestW22_AnAutomationTakesNotes(t *testing.T) {
	t.Parallel()
	h, _, d := runWithSteps(t, kit.Object{"extraction": "notes"}, map[string]string{"notes": `
await Items.withItem(input.turn_id, input.input, async (ctx) => {
  if (ctx.item.isDone) return;
  if (input.input === 'bad') throw new Error('I cannot note that');
  await Mail.send({ to: input.input, text: ': ' + input.transcript.map((m) => m.text).join() });
});`})
	c := h.StartConversation("bot")
	for _, text := range []string{"one", "two", "bad"} {
		turn := kit.WaitForTurn(h, kit.StartTurn(h, c.ID, text).ID)
		if turn.State != reeve.RunCompleted || turn.Issues.ExtractionFailed != (text == "bad") {
			t.Errorf("%s: %+v", text, turn.Turn)
		}
		if n, want := len(kit.ListChildren(h, turn.ID)), map[bool]int{true: 3, false: 1}[text == "bad"]; n != want {
			t.Errorf("%s: %d runs, want %d", text, n, want)
		}
	}
	if got := d.String(); got != "map[one: You said it.:1 two: You said it.:1]" {
		t.Errorf("noted: %s", got)
	}
}

// Notes that an automation returns are stored.
func TestW22_NotesOfAnAutomationAreStored(t *testing.T) {
	t.Parallel()
	h, heard, _ := runWithSteps(t, kit.Object{"extraction": "notes", "notes": true},
		map[string]string{"notes": `({ notes: [input.input + ' was said'] })`})
	kit.WaitForTurn(h, kit.StartTurn(h, h.StartConversation("bot").ID, "garden").ID)
	if got := fmt.Sprint(kit.ListNotes(h, "?agent=bot")); got != "[garden was said]" {
		t.Errorf("the notes are %s", got)
	}
	kit.WaitForTurn(h, kit.StartTurn(h, h.StartConversation("bot").ID, "hello").ID)
	if got := heard.LastPrompt("I am bot"); got != "user: [Your earlier notes, which may be relevant]\n- garden was "+
		"said | user: hello" {
		t.Errorf("the model was told %s", got)
	}
}
