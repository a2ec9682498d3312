package memory_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/model"
	"reeve/reevetest"
	"reeve/test/kit"
)

// getRequest returns the bytes of text in the first request of a turn, and what the request left out.
func getRequest(h *reevetest.Host, turn string) (bytes int, leftOut map[string]string) {
	h.T.Helper()
	var list api.AskedRequestList
	h.Want(http.StatusOK, &list, "GET", "/api/runs/"+turn+"/requests", nil)
	var r model.Request
	if err := json.Unmarshal(list.Requests[0].Request, &r); err != nil {
		h.T.Fatal(err)
	}
	for _, m := range r.Messages {
		for _, p := range m.Parts {
			bytes += len(p.Text)
		}
	}
	leftOut = map[string]string{}
	for _, o := range list.Requests[0].LeftOut {
		leftOut[o.What] += o.Why + "; "
	}
	return bytes, leftOut
}

// Notes, the agent's state, a summary and earlier turns fit into context_tokens together. What does not fit is named.
func TestL13_L31_EverythingShownFitsIntoTheWindow(t *testing.T) {
	t.Parallel()
	kit.OnBothDatabases(t, func(t *testing.T, cfg host.Config) {
		cfg.Model = kit.ScriptedModel(t, "answers:\n- {when: {system: /take notes/}, text: '{\"notes\": []}'}\n"+
			"- {when: {system: /maintain the memory/}, text: "+strings.Repeat("SUMMARY ", 900)+"}\n"+
			"- {when: {said: /./}, text: "+strings.Repeat("fine ", 50)+"}\n")
		cfg.Memory = host.MemoryConfig{Encoder: "off"}
		h := reevetest.Run(t, cfg)
		const window = 1000
		h.Want(http.StatusCreated, nil, "POST", "/api/agents", kit.Object{"name": "bot",
			"config": kit.Object{"notes": true, "context_tokens": window, "recent_turns": 3, "summaries": true}})
		h.Want(http.StatusOK, nil, "PUT", "/api/agents/bot/state", kit.Object{"revision": 0, "slots": kit.Object{
			"primary_goal": strings.Repeat("win ", 900), "preferences": kit.Object{"tone": strings.Repeat("dry ", 100)},
			"extension": kit.Object{"org.gym": kit.Object{"plan": strings.Repeat("run ", 500)}}}})
		for i := range 12 {
			newNote(h, fmt.Sprint(i, strings.Repeat(" long fact", 200)))
		}
		c := h.StartConversation("bot")
		var last string
		for i := range 6 {
			last = kit.StartTurn(h, c.ID, fmt.Sprint("long question ", i)).ID
			kit.WaitForTurn(h, last)
		}
		kit.Eventually(t, "a summary", func() bool {
			var list api.SummaryList
			h.Want(http.StatusOK, &list, "GET", "/api/agents/bot/summaries", nil)
			return len(list.Summaries) > 0 && list.Summaries[0].State == "done"
		})
		last = kit.StartTurn(h, c.ID, "the last long question").ID
		kit.WaitForTurn(h, last)
		bytes, leftOut := getRequest(h, last)
		if bytes > 4*window+500 {
			t.Errorf("the request has %d bytes", bytes)
		}
		for what, why := range map[string]string{"notes": "those after it do not fit", "state": "at most a quarter",
			"summary": "its end: it takes"} {
			if !strings.Contains(leftOut[what], why) {
				t.Errorf("left out of %s: %q", what, leftOut[what])
			}
		}
	})
}

// A request says that notes are left out only if there are more than it shows.
func TestW26_NotesAreLeftOutOnlyIfThereAreMore(t *testing.T) {
	t.Parallel()
	h := reevetest.Run(t, host.Config{Dir: t.TempDir(), Model: kit.ScriptedModel(t,
		"answers:\n- {when: {system: /take notes/}, text: '{\"notes\": []}'}\n- {when: {said: /./}, text: fine}\n")})
	h.Want(http.StatusCreated, nil, "POST", "/api/agents", kit.Object{"name": "bot", "config": kit.Object{"notes": true}})
	say := func() string {
		t.Helper()
		d := kit.WaitForTurn(h, kit.StartTurn(h, h.StartConversation("bot").ID, "boats?").ID)
		if d.State != reeve.RunCompleted {
			t.Fatalf("%+v", d.Turn)
		}
		_, leftOut := getRequest(h, d.ID)
		return leftOut["notes"]
	}
	for i := range 8 {
		newNote(h, fmt.Sprint("boats, number ", i))
	}
	if why := say(); why != "" {
		t.Errorf("all notes are shown, but %q", why)
	}
	for i := range 5 {
		newNote(h, fmt.Sprint("boats, next number ", i))
	}
	if why := say(); !strings.Contains(why, "only the 8 notes") {
		t.Errorf("notes are missing, but %q", why)
	}
}
