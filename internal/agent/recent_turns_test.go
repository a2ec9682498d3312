package agent

import (
	"fmt"
	"strings"
	"testing"

	"reeve"
	"reeve/internal/store"
	"reeve/model"
)

// told renders the parts of a request.
func told(r model.Request) string {
	var said []string
	for _, m := range r.Messages {
		for _, p := range m.Parts {
			said = append(said, reeve.Truncate(p.Text, 20))
		}
	}
	return strings.Join(said, "|")
}

// notice stores a notice for the agent between its turns.
func (w *world) notice(text string) {
	w.t.Helper()
	w.update(func(tx *store.Tx) error {
		return tx.Ledger().AppendMessage(w.t.Context(), reeve.Message{ID: tx.NewID(reeve.PrefixMessage),
			WorkspaceID: home, ThreadID: w.conv.ThreadID(), AgentID: w.agent.ID,
			Kind: reeve.Observation, Content: text, Metadata: []byte("{}")})
	})
}

func TestL13_RecentTurnsAndNoticesInOrder(t *testing.T) {
	t.Parallel()
	var plan []func(model.Request) (model.Answer, error)
	for i := range 12 {
		plan = append(plan, says(fmt.Sprint("answer ", i)))
	}
	tools := []reeve.Tool{tool("look", reeve.Read, echo)}
	plan[4] = calls("look", `{"text":"x"}`)
	w := newWorld(t, `{"recent_turns":4}`, tools, plan...)
	for i := range 6 { // the fifth calls a tool, and so takes two answers
		if i == 5 {
			w.notice("the report is ready")
		}
		w.say(fmt.Sprint("question ", i))
		w.work()
	}
	want := "question 3|answer 3|question 4||%s|answer 5|[Notice] the report …|question 5|answer 6|question 6"
	w.say("question 6") // what came before is known
	w.work()
	warm := w.last()
	wellFormed(t, warm)
	result := warm.Messages[4].Parts[0].Text
	if got := told(warm); got != fmt.Sprintf(want, reeve.Truncate(result, 20)) {
		t.Errorf("the model was told\n%s", got)
	}
	w.start(tools) // and by a server that knows nothing yet, it is told the same, one turn later
	w.say("question 7")
	w.work()
	wellFormed(t, w.last())
	if got := told(w.last()); got != fmt.Sprintf(
		"question 4||%s|answer 5|[Notice] the report …|question 5|answer 6|question 6|answer 7|question 7",
		reeve.Truncate(result, 20)) {
		t.Errorf("a server that has just started told the model\n%s", got)
	}
}

func TestL13_LongTurnIsShortened(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a long story ", 4000)
	w := newWorld(t, `{"context_tokens":3000}`, nil, says("short"), says(long), says("three"), says("four"))
	for _, text := range []string{"one", "two", "three"} {
		w.say(text)
		w.work()
	}
	w.say("four")
	w.work()
	r := w.last()
	wellFormed(t, r)
	bytes := 0
	for _, m := range r.Messages {
		for _, p := range m.Parts {
			bytes += len(p.Text)
		}
	}
	if got := told(r); got != "one|short|two|a long story a long …|three|three|four" || bytes > 4*3000 {
		t.Errorf("of %d bytes the model was told %s", bytes, got)
	}
}

func TestL13_UnsettledTurnIsReadAgain(t *testing.T) {
	t.Parallel()
	slow := tool("slow", reeve.Read, echo)
	slow.Async = true
	w := newWorld(t, `{"max_model_requests":1}`, []reeve.Tool{slow}, calls("slow", `{"text":"late"}`), says("begun"),
		says("two"), says("three"))
	w.say("one") // comes to its limit of moves before the result
	runs, _, err := w.room.Step(t.Context(), 8)
	w.must(err)
	for _, r := range runs {
		w.room.Serve(t.Context(), r)
	}
	w.say("two")
	runs, _, err = w.room.Step(t.Context(), 8)
	w.must(err)
	for _, r := range runs {
		w.room.Serve(t.Context(), r)
	}
	before := told(w.last())
	w.work()
	w.say("three")
	w.work()
	if after := told(w.last()); strings.Contains(before, "The result of slow") ||
		!strings.Contains(after, "The result of slow") {
		t.Errorf("before the result the model was told\n%s\nand after it\n%s", before, after)
	}
}
