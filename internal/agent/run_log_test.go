package agent

import (
	"fmt"
	"strings"
	"testing"

	"reeve"
)

// TestW04_ResultCommittedAfterALaterOne checks that a request shows the results that were stored when the model was
// asked, not those with lower ids: of two concurrent results, the one with the lower id may be committed last.
func TestW04_ResultCommittedAfterALaterOne(t *testing.T) {
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
	said := reeve.Message{ID: "msg_1", Kind: reeve.UserMessage, Metadata: []byte(`{}`)}
	asks := answer("msg_2", "", `{"type":"tool_call","id":"3","name":"far"},{"type":"tool_call","id":"4","name":"far"}`)
	read := func(list ...reeve.Message) (*runLog, string) {
		t.Helper()
		l, err := parseLog(list)
		if err != nil {
			t.Fatal(err)
		}
		var told strings.Builder
		for _, m := range l.messages() {
			for _, p := range m.Parts {
				fmt.Fprint(&told, p.Text, "\n")
			}
		}
		return l, told.String()
	}

	l, told := read(said, asks, call("3"), call("4"), result("msg_6", "4"))
	if got := fmt.Sprint(l.awaitedCalls()); got != "[msg_3]" || !l.hasUnseenResults() ||
		!strings.Contains(told, "what 4 found") {
		t.Errorf("one has come: awaited %s, news %t, told %s", got, l.hasUnseenResults(), told)
	}
	goesOn := answer("msg_7", `"seen":"msg_6","awaits":["msg_3"],`, `{"type":"text","text":"I go on."}`)
	if l, _ = read(said, asks, call("3"), call("4"), result("msg_6", "4"), goesOn); l.hasUnseenResults() {
		t.Error("what the model knows is news")
	}
	l, told = read(said, asks, call("3"), result("msg_5", "3"), call("4"), result("msg_6", "4"), goesOn)
	if !l.hasUnseenResults() || strings.Count(told, "what 3 found") != 1 || strings.Count(told, "what 4 found") != 1 ||
		!strings.Contains(told, "Started.") {
		t.Errorf("the other has come: news %t, told %s", l.hasUnseenResults(), told)
	}
	ends := answer("msg_8", `"seen":"msg_7",`, `{"type":"text","text":"Done."}`)
	if l, told = read(said, asks, call("3"), result("msg_5", "3"), call("4"), result("msg_6", "4"), goesOn,
		ends); l.hasUnseenResults() || strings.Count(told, "what 3 found") != 1 {
		t.Errorf("both are known: news %t, told %s", l.hasUnseenResults(), told)
	}
}
