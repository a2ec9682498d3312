package chat_test

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

// What the model was asked can be read for every step of a turn: the same messages, instructions and tools, and what
// was left out and why. It survives a restart, and only the turn's user may read it.
func TestW26_RequestsOfATurnCanBeRead(t *testing.T) {
	t.Parallel()
	kit.OnBothDatabases(t, func(t *testing.T, cfg host.Config) {
		heard := &kit.RecordingModel{Model: kit.ScriptedModel(t, `answers:
- {when: {said: /list/}, calls: [{name: file_list, args: {path: /}}]}
- {when: {tool: file_list}, text: no files}
- {when: {said: /./}, text: answered}
`)}
		cfg.Model = heard
		h := reevetest.Run(t, cfg)
		kit.NewPersona(h, "bot", kit.Object{"config": kit.Object{"instructions": "I am bot.", "recent_turns": 2, "summaries": false}}, "file_list")
		ann, ben := kit.NewTokenFor(h, "ann", "member"), kit.NewTokenFor(h, "ben", "member")
		var c reeve.Conversation
		h.Want(http.StatusCreated, &c, "POST", "/api/conversations", kit.Object{"agent": "bot"}, ann...)
		var turn reeve.Turn
		for _, text := range []string{"one", "two", "three", "list the files"} {
			h.Want(http.StatusCreated, &turn, "POST", "/api/conversations/"+c.ID+"/turns", kit.Object{"content": text}, ann...)
			kit.WaitForTurn(h, turn.ID)
		}
		asked := heard.Requests[len(heard.Requests)-2:]
		h.Stop()
		h = reevetest.Run(t, cfg)
		var got api.AskedRequestList
		h.Want(http.StatusOK, &got, "GET", "/api/runs/"+turn.ID+"/requests", nil, ann...)
		if len(got.Requests) != 2 {
			t.Fatalf("got %d requests", len(got.Requests))
		}
		for i, r := range got.Requests {
			var read model.Request
			if err := json.Unmarshal(r.Request, &read); err != nil {
				t.Fatal(err)
			}
			want, have := describeRequest(asked[i]), describeRequest(read)
			if r.Number != i+1 || have != want {
				t.Errorf("request %d is\n%s\nwant\n%s", r.Number, have, want)
			}
			if len(r.LeftOut) != 1 || r.LeftOut[0].What != "turns" || r.LeftOut[0].ID == "" ||
				!strings.Contains(r.LeftOut[0].Why, "recent_turns") {
				t.Errorf("left out: %+v", r.LeftOut)
			}
		}
		for _, headers := range [][]string{ben, nil} {
			if r := h.Do("GET", "/api/runs/"+turn.ID+"/requests", nil, headers...); r.Status != http.StatusNotFound {
				t.Errorf("another user: %d %s", r.Status, r.Body)
			}
		}
	})
}

// describeRequest returns what a request says.
func describeRequest(r model.Request) string {
	var b strings.Builder
	fmt.Fprintln(&b, r.Model, r.System, len(r.Tools), r.MaxTokens)
	for _, m := range r.Messages {
		for _, p := range m.Parts {
			fmt.Fprintln(&b, m.Role, p.Type, p.Name, string(p.Args), p.Text)
		}
	}
	return b.String()
}

// A turn that does not fit is shown shortened or not at all, and the record says so.
func TestW26_OmissionsForLackOfRoomAreNamed(t *testing.T) {
	t.Parallel()
	kit.OnBothDatabases(t, func(t *testing.T, cfg host.Config) {
		cfg.Model = kit.ScriptedModel(t, "answers:\n- {when: {said: /./}, text: answered}\n")
		h := reevetest.Run(t, cfg)
		kit.NewPersona(h, "bot", kit.Object{"config": kit.Object{"instructions": "I am bot.", "context_tokens": 1000, "summaries": false}})
		c := h.StartConversation("bot")
		var last reeve.Turn
		for _, text := range []string{strings.Repeat("much ", 2000), "short", "now"} {
			last = kit.WaitForTurn(h, kit.StartTurn(h, c.ID, text).ID).Turn
		}
		var got api.AskedRequestList
		h.Want(http.StatusOK, &got, "GET", "/api/runs/"+last.ID+"/requests", nil)
		why := fmt.Sprint(got.Requests)
		if len(got.Requests) != 1 || !strings.Contains(why, "context_tokens") {
			t.Errorf("got %s", why)
		}
	})
}

// A turn never waits for a summary, however long that takes, and costs what its window costs. A summary that was
// interrupted is made after a restart.
func TestN12_TurnsDoNotWaitForSummaries(t *testing.T) {
	t.Parallel()
	kit.OnBothDatabases(t, func(t *testing.T, cfg host.Config) {
		const turns = "- {when: {said: /./}, text: answered}\n"
		heard := &kit.RecordingModel{Model: kit.ScriptedModel(t,
			"answers:\n- {when: {system: /maintain the memory/}, text: never, fail: {hang: true}}\n"+turns)}
		cfg.Model = heard
		h := reevetest.Run(t, cfg)
		kit.NewPersona(h, "bot", kit.Object{"config": kit.Object{"instructions": "I am bot.", "recent_turns": 2, "summaries": true}})
		c := h.StartConversation("bot")
		for n := range 8 {
			if d := kit.WaitForTurn(h, kit.StartTurn(h, c.ID, fmt.Sprint("q", n)).ID); d.State != reeve.RunCompleted {
				t.Fatalf("%+v", d.Turn)
			}
			if got := heard.LastPrompt("I am bot"); strings.Count(got, " | ") > 4 {
				t.Errorf("turn %d was told more than its window: %s", n, got)
			}
		}
		kit.Eventually(t, "the summary hangs", func() bool { return heard.LastPrompt(summaryPrompt) != "" })
		h.Stop()
		cfg.Model = kit.ScriptedModel(t, "answers:\n- {when: {system: /maintain the memory/}, text: SUMMARY}\n"+turns)
		h = reevetest.Run(t, cfg)
		if list := waitForSummaries(h, c.ID, 1); list[0].Content != "SUMMARY" {
			t.Errorf("got %+v", list)
		}
	})
}
