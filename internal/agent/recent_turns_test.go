package agent

import (
	"fmt"
	"strings"
	"testing"

	"reeve"
	"reeve/internal/store"
	"reeve/model"
)

// renderParts joins the texts of all parts of a request, each truncated.
func renderParts(r model.Request) string {
	var texts []string
	for _, m := range r.Messages {
		for _, p := range m.Parts {
			texts = append(texts, reeve.Truncate(p.Text, 20))
		}
	}
	return strings.Join(texts, "|")
}

// insertNotice stores a notice for the agent between its turns.
func (w *harness) insertNotice(text string) {
	w.t.Helper()
	w.update(func(tx *store.Tx) error {
		return tx.Ledger().AppendMessage(w.t.Context(), reeve.Message{ID: tx.NewID(reeve.PrefixMessage),
			WorkspaceID: home, ThreadID: w.conversation.ThreadID(), AgentID: w.agent.ID,
			Kind: reeve.Observation, Content: text, Metadata: []byte("{}")})
	})
}

func TestL13_RecentTurnsAndNoticesInOrder(t *testing.T) {
	t.Parallel()
	var plan []answerFunc
	for i := range 12 {
		plan = append(plan, textAnswer(fmt.Sprint("answer ", i)))
	}
	tools := []reeve.Tool{newTool("look", reeve.Read, echo)}
	plan[4] = callAnswer("look", `{"text":"x"}`)
	w := newHarness(t, `{"recent_turns":4}`, tools, plan...)
	for i := range 6 { // the fifth turn calls a tool and therefore has two answers
		if i == 5 {
			w.insertNotice("the report is ready")
		}
		w.beginTurn(fmt.Sprint("question ", i))
		w.runUntilIdle()
	}
	want := "question 3|answer 3|question 4||%s|answer 5|[Notice] the report …|question 5|answer 6|question 6"
	w.beginTurn("question 6") // the earlier turns are cached
	w.runUntilIdle()
	cached := w.lastRequest()
	checkWellFormed(t, cached)
	result := cached.Messages[4].Parts[0].Text
	if got := renderParts(cached); got != fmt.Sprintf(want, reeve.Truncate(result, 20)) {
		t.Errorf("the request is\n%s", got)
	}
	w.restart(tools) // a restarted server reads the earlier turns from the store
	w.beginTurn("question 7")
	w.runUntilIdle()
	checkWellFormed(t, w.lastRequest())
	if got := renderParts(w.lastRequest()); got != fmt.Sprintf(
		"question 4||%s|answer 5|[Notice] the report …|question 5|answer 6|question 6|answer 7|question 7",
		reeve.Truncate(result, 20)) {
		t.Errorf("after a restart the request is\n%s", got)
	}
}

func TestL13_LongTurnIsShortened(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a long story ", 4000)
	w := newHarness(t, `{"context_tokens":3000}`, nil, textAnswer("short"), textAnswer(long), textAnswer("three"),
		textAnswer("four"))
	for _, text := range []string{"one", "two", "three"} {
		w.beginTurn(text)
		w.runUntilIdle()
	}
	w.beginTurn("four")
	w.runUntilIdle()
	r := w.lastRequest()
	checkWellFormed(t, r)
	bytes := 0
	for _, m := range r.Messages {
		for _, p := range m.Parts {
			bytes += len(p.Text)
		}
	}
	if got := renderParts(r); got != "one|short|two|a long story a long …|three|three|four" || bytes > 4*3000 {
		t.Errorf("the request has %d bytes: %s", bytes, got)
	}
}

func TestL13_TurnWithPendingCallIsReadAgain(t *testing.T) {
	t.Parallel()
	slow := newTool("slow", reeve.Read, echo)
	slow.Async = true
	w := newHarness(t, `{"max_model_requests":1}`, []reeve.Tool{slow}, callAnswer("slow", `{"text":"late"}`),
		textAnswer("begun"),
		textAnswer("two"), textAnswer("three"))
	w.beginTurn("one") // reaches its limit of moves before the result
	runs, _, err := w.scheduler.Step(t.Context(), 8)
	w.must(err)
	for _, r := range runs {
		w.scheduler.Serve(t.Context(), r)
	}
	w.beginTurn("two")
	runs, _, err = w.scheduler.Step(t.Context(), 8)
	w.must(err)
	for _, r := range runs {
		w.scheduler.Serve(t.Context(), r)
	}
	before := renderParts(w.lastRequest())
	w.runUntilIdle()
	w.beginTurn("three")
	w.runUntilIdle()
	if after := renderParts(w.lastRequest()); strings.Contains(before, "The result of slow") ||
		!strings.Contains(after, "The result of slow") {
		t.Errorf("request before the result:\n%s\nrequest after it:\n%s", before, after)
	}
}
