package chat_test

import (
	"fmt"
	"net/http"
	seq "slices"
	"strings"
	"testing"
	"time"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/internal/store/storetest"
	"reeve/reevetest"
	"reeve/test/kit"
)

const summaryPrompt = "You maintain the memory"

// waitForSummaries waits until a conversation has n summaries, and returns them.
func waitForSummaries(h *reevetest.Host, conversation string, n int) (list []reeve.Message) {
	h.T.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; {
		var page api.MessageList
		h.Want(http.StatusOK, &page, "GET", "/api/conversations/"+conversation+"/messages?limit=500", nil)
		list = list[:0]
		for _, m := range page.Messages {
			if m.Kind == reeve.Summary {
				list = append(list, m)
			}
		}
		if len(list) >= n {
			return list
		}
		if time.Now().After(deadline) {
			h.T.Fatalf("%d summaries, want %d", len(list), n)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Turns that no longer fit are summarized in the background, each part once. The summary precedes the recent turns.
func TestL13_OlderTurnsAreSummarized(t *testing.T) {
	t.Parallel()
	kit.OnBothDatabases(t, func(t *testing.T, cfg host.Config) {
		heard := &kit.RecordingModel{Model: kit.ScriptedModel(t, `answers:
- {when: {system: /maintain the memory/, said: /Summary of earlier turns/}, text: SECOND}
- {when: {system: /maintain the memory/}, text: FIRST}
- {when: {said: /./}, text: answered}
`)}
		cfg.Model = heard
		h := reevetest.Run(t, cfg)
		h.Want(http.StatusCreated, nil, "POST", "/api/agents",
			kit.Object{"name": "bot", "config": kit.Object{"instructions": "I am bot.", "recent_turns": 4,
				"summaries": true}})
		c := h.StartConversation("bot")
		say := func(n int) {
			if d := kit.WaitForTurn(h, kit.StartTurn(h, c.ID, fmt.Sprint("q", n)).ID); d.State != reeve.RunCompleted {
				t.Fatalf("%+v", d.Turn)
			}
		}
		for n := range 6 { // q0 to q5: with q5 the first is no longer shown
			say(n)
		}
		if list := waitForSummaries(h, c.ID, 1); list[0].Content != "FIRST" || list[0].RunID != "" {
			t.Errorf("%+v", list)
		}
		if got := heard.LastPrompt(summaryPrompt); got != "user: Later turns:\n\nPerson: q0\nAgent: "+
			"answered\n\nPerson: q1\nAgent: answered\n\nPerson: q2\nAgent: answered\n\nPerson: q3\nAgent: answered\n" {
			t.Errorf("it was made of %q", got)
		}
		say(6)
		want := "user: [Summary of the earlier conversation]\nFIRST | user: q2 | assistant: answered | user: q3 | " +
			"assistant: answered | user: q4 | assistant: answered | user: q5 | assistant: answered | user: q6"
		if got := heard.LastPrompt("I am bot"); got != want {
			t.Errorf("the model was told %s", got)
		}
		for n := 7; n < 10; n++ { // q9: q4 is neither shown nor in the words
			say(n)
		}
		list := waitForSummaries(h, c.ID, 2)
		if len(list) != 2 || list[1].Content != "SECOND" {
			t.Errorf("%+v", list)
		}
		if got := heard.LastPrompt(summaryPrompt); !strings.Contains(got,
			"Summary of earlier turns:\nFIRST\n\nLater turns:\n\nPerson: q4\n") ||
			strings.Contains(got, "q3") {
			t.Errorf("the second was made of %q", got)
		}
		say(10)
		if got := heard.LastPrompt("I am bot"); !strings.HasPrefix(got,
			"user: [Summary of the earlier conversation]\nSECOND | user: q6 |") {
			t.Errorf("the model was told %s", got)
		}
	})
}

// Without budget, or with a model that fails, turns continue unchanged and no summary is invented.
func TestL13_SummariesCostAndFailWithoutHarm(t *testing.T) {
	t.Parallel()
	kit.OnBothDatabases(t, func(t *testing.T, cfg host.Config) {
		heard := &kit.RecordingModel{Model: kit.ScriptedModel(t, `answers:
- {when: {system: /maintain the memory/}, fail: {status: 400, message: I will not}}
- {when: {said: /./}, text: answered}
`)}
		cfg.Model = heard
		h := reevetest.Run(t, cfg)
		h.Want(http.StatusCreated, nil, "POST", "/api/agents",
			kit.Object{"name": "bot", "config": kit.Object{"instructions": "I am bot.", "recent_turns": 1,
				"summaries": true}})
		c := h.StartConversation("bot")
		for n := range 5 {
			if d := kit.WaitForTurn(h, kit.StartTurn(h, c.ID, fmt.Sprint("q", n)).ID); d.State != reeve.RunCompleted {
				t.Fatalf("%+v", d.Turn)
			}
		}
		kit.Eventually(t, "the model is asked for a summary", func() bool { return heard.LastPrompt(summaryPrompt) != "" })
		if got := heard.LastPrompt("I am bot"); got != "user: q3 | assistant: answered | user: q4" ||
			heard.LastPrompt(summaryPrompt) == "" {
			t.Errorf("the model was told %s", got)
		}
		if list := waitForSummaries(h, c.ID, 0); len(list) != 0 {
			t.Errorf("%+v", list)
		}
	})
}

// The server can record neither the result nor the retry. It retries when the database is back.
func TestL14_SummaryIsRetriedAfterADatabaseFailure(t *testing.T) {
	t.Parallel()
	cfg := kit.FastConfig(t)
	cfg.Database, cfg.SecretKey = storetest.PostgresURL(t), strings.Repeat("ab", 32)
	cfg.Model = kit.ScriptedModel(t,
		"answers:\n- {when: {system: /maintain the memory/}, text: IN SHORT}\n- {when: {said: /./}, "+
			"text: answered}\n")
	h := reevetest.StartWith(t, cfg)
	h.Want(http.StatusCreated, nil, "POST", "/api/agents",
		kit.Object{"name": "bot", "config": kit.Object{"recent_turns": 1, "summaries": true}})
	c := h.StartConversation("bot")
	away := kit.ExecPostgres(t, cfg.Database, `CREATE TABLE away (yes INT)`, `INSERT INTO away VALUES (1)`,
		`CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			IF NEW.owner = '' AND EXISTS (SELECT 1 FROM away) THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF;
			RETURN NEW; END $$`,
		`CREATE TRIGGER lose BEFORE UPDATE ON summaries FOR EACH ROW EXECUTE FUNCTION lose()`)
	var failed error
	for n := 0; n < 5 && failed == nil; n++ {
		h.Want(http.StatusCreated, nil, "POST", "/api/conversations/"+c.ID+"/turns",
			kit.Object{"content": fmt.Sprint("q", n)})
		for more := 1; more > 0 && failed == nil; {
			more, failed = h.Step(t.Context())
		}
	}
	if failed == nil {
		t.Fatal("the database was to fail")
	}
	if _, err := away.Exec(t.Context(), `DELETE FROM away`); err != nil {
		t.Fatal(err)
	}
	h.RunUntilIdle(t.Context())
	var page api.MessageList
	h.Want(http.StatusOK, &page, "GET", "/api/conversations/"+c.ID+"/messages?limit=500", nil)
	if !seq.ContainsFunc(page.Messages, func(m reeve.Message) bool {
		return m.Kind == reeve.Summary && m.Content == "IN SHORT"
	}) {
		t.Error("it was not made when the database was there again")
	}
}
