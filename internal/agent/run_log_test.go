package agent

import (
	"fmt"
	"strings"
	"testing"

	"reeve"
)

// TestW04_ResultCommittedOutOfOrder checks that a request shows the results that were stored when the model was
// asked, not those with lower ids: of two concurrent results, the one with the lower id may be committed last.
func TestW04_ResultCommittedOutOfOrder(t *testing.T) {
	t.Parallel()
	answer := func(id, more, parts string) reeve.Message {
		return reeve.Message{ID: id, Kind: reeve.Thought,
			Metadata: []byte(`{"type":"answer",` + more + `"answer":{"parts":[` + parts + `]}}`)}
	}
	call := func(id string) reeve.Message {
		return reeve.Message{ID: "msg_" + id, Kind: reeve.Action, Metadata: []byte(`{"ref":"` + id + `"}`)}
	}
	result := func(id, of string) reeve.Message {
		return reeve.Message{ID: id, Kind: reeve.ToolResult, ActionID: "msg_" + of, Content: "what " + of + " found",
			Metadata: []byte(`{"status":"success"}`)}
	}
	userMessage := reeve.Message{ID: "msg_1", Kind: reeve.UserMessage, Metadata: []byte(`{}`)}
	callingAnswer := answer("msg_2", "",
		`{"type":"tool_call","id":"3","name":"far"},{"type":"tool_call","id":"4","name":"far"}`)
	read := func(list ...reeve.Message) (*runLog, string) {
		t.Helper()
		l, err := parseLog(list)
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		for _, m := range l.messages() {
			for _, p := range m.Parts {
				fmt.Fprint(&text, p.Text, "\n")
			}
		}
		return l, text.String()
	}

	l, text := read(userMessage, callingAnswer, call("3"), call("4"), result("msg_6", "4"))
	if got := fmt.Sprint(l.awaitedCalls()); got != "[msg_3]" || !l.hasUnseenResults() ||
		!strings.Contains(text, "what 4 found") {
		t.Errorf("with one result: awaited %s, unseen results %t, text %s", got, l.hasUnseenResults(), text)
	}
	continuingAnswer := answer("msg_7", `"seen":"msg_6","awaits":["msg_3"],`, `{"type":"text","text":"I continue."}`)
	if l, _ = read(userMessage, callingAnswer, call("3"), call("4"), result("msg_6", "4"), continuingAnswer); l.hasUnseenResults() {
		t.Error("a seen result is reported as unseen")
	}
	l, text = read(userMessage, callingAnswer, call("3"), result("msg_5", "3"), call("4"), result("msg_6", "4"),
		continuingAnswer)
	if !l.hasUnseenResults() || strings.Count(text, "what 3 found") != 1 || strings.Count(text, "what 4 found") != 1 ||
		!strings.Contains(text, "Started.") {
		t.Errorf("with both results: unseen results %t, text %s", l.hasUnseenResults(), text)
	}
	finalAnswer := answer("msg_8", `"seen":"msg_7",`, `{"type":"text","text":"Done."}`)
	if l, text = read(userMessage, callingAnswer, call("3"), result("msg_5", "3"), call("4"), result("msg_6", "4"),
		continuingAnswer,
		finalAnswer); l.hasUnseenResults() || strings.Count(text, "what 3 found") != 1 {
		t.Errorf("after the final answer: unseen results %t, text %s", l.hasUnseenResults(), text)
	}
}
