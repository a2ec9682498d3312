package model_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"reeve"
	"reeve/model"
)

var fileList = model.Tool{Name: "file_list", Parameters: json.RawMessage(`{"type":"object"}`)}

// TestRehearsalWithoutScript checks that the model calls the tools that the user names, reports results, and otherwise
// repeats the text.
func TestRehearsalWithoutScript(t *testing.T) {
	m := model.Rehearsal(model.Script{})
	for said, want := range map[string]string{
		`file_list {"path":"/"}`:                 `file_list {"path":"/"}`,
		"file_list":                              `file_list {}`,
		`please call file_list {"path":"/"} now`: `file_list {"path":"/"}`,
		"file_list {\"path\":\n \"/\"}\nweather.get {\"city\":\"Paris\"}": `file_list {"path":` + "\n \"/\"}" +
			`; weather.get {"city":"Paris"}`,
		`file_list {"path":"/a"} file_list {"path":"/b"}`: `file_list {"path":"/a"}; file_list {"path":"/b"}`,
		`file_list {path: /}`:                             `file_list "{path: /}"`,
		`what is file_list good for?`:                     "You said: what is file_list good for?",
		`file_lists {"path":"/"}`:                         `You said: file_lists {"path":"/"}`,
		`file_delete {"path":"/"}`:                        `You said: file_delete {"path":"/"}`,
		"hi":                                              "You said: hi",
	} {
		a, err := m.Answer(t.Context(), model.Request{Model: "rehearsal", Messages: ask(said),
			Tools: []model.Tool{fileList, weather}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := []string{}
		for _, c := range a.Calls() {
			got = append(got, c.Name+" "+string(c.Args))
		}
		if a.Stop == model.StopEnd {
			got = append(got, a.Text())
		}
		if s := strings.Join(got, "; "); s != want {
			t.Errorf("%s\ngot  %s\nwant %s", said, s, want)
		}
	}
	long := strings.Repeat("ä", 5000)
	a, err := m.Answer(t.Context(),
		model.Request{Messages: append(ask("x"),
			model.Message{Role: model.User, Parts: []model.Part{result("1", long),
				{Type: model.Result, ID: "2", Name: "file_list", Text: "denied", IsError: true}}})}, nil)
	if err != nil || !strings.HasPrefix(a.Text(), "weather.get says: ää") ||
		!strings.Contains(a.Text(), "file_list failed: denied") || len(a.Text()) > 1200 {
		t.Errorf("got %d bytes: %.80s, %v", len(a.Text()), a.Text(), err)
	}
	if _, err := m.Answer(t.Context(), model.Request{}, nil); reeve.CodeOf(err) != reeve.Validation {
		t.Errorf("nothing asked: %v", err)
	}
}

// TestRehearsalIsDeterministic checks that the same request gets the same answer with the same ids.
func TestRehearsalIsDeterministic(t *testing.T) {
	r := model.Request{Messages: ask("file_list\nfile_list"), Tools: []model.Tool{fileList}}
	var seen []string
	for range 2 {
		var deltas []model.Delta
		a, err := model.Rehearsal(model.Script{}).
			Answer(t.Context(), r, func(d model.Delta) { deltas = append(deltas, d) })
		if err != nil {
			t.Fatal(err)
		}
		if c := a.Calls(); c[0].ID == c[1].ID {
			t.Error("two calls have one id")
		}
		checkDeltas(t, a, deltas)
		raw, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, string(raw)+fmt.Sprint(deltas))
	}
	if seen[0] != seen[1] {
		t.Errorf("%s\nis not\n%s", seen[0], seen[1])
	}
}

// TestClientsScript checks the script used for testing third-party clients.
func TestClientsScript(t *testing.T) {
	s, err := model.ReadScript("testdata/clients.yaml")
	if err != nil {
		t.Fatal(err)
	}
	m := model.Rehearsal(s)
	tool := model.Tool{Name: "get_weather", Description: "w", Parameters: weather.Parameters}
	answer := func(name string, ms []model.Message, tools ...model.Tool) (model.Answer, []model.Delta, error) {
		var deltas []model.Delta
		a, err := m.Answer(t.Context(), model.Request{Model: name, Messages: ms, Tools: tools},
			func(d model.Delta) { deltas = append(deltas, d) })
		return a, deltas, err
	}
	for range 2 {
		a, deltas, err := answer("mock", ask("hi"))
		if err != nil || a.Text() != "Hello, how can I help you today?" || a.Stop != model.StopEnd || len(deltas) < 3 ||
			a.Usage.Input < 1 || a.Usage.Output < 1 {
			t.Errorf("hi: %+v in %d pieces, %v", a, len(deltas), err)
		}
	}
	a, _, err := answer("mock", ask("weather in Paris?"), tool)
	if c := a.Calls(); err != nil || len(c) != 1 || c[0].Name != "get_weather" ||
		string(c[0].Args) != `{"city":"Paris"}` || a.Stop != model.StopTools {
		t.Fatalf("one city: %+v, %v", a, err)
	}
	b, _, err := answer("mock", append(ask("weather in Paris?"), model.Message{Role: model.Assistant, Parts: a.Parts},
		model.Message{Role: model.User,
			Parts: []model.Part{{Type: model.Result, ID: a.Calls()[0].ID, Name: "get_weather", Text: "21"}}}), tool)
	if err != nil || !strings.Contains(b.Text(), "21") || len(b.Calls()) != 0 {
		t.Errorf("after the result: %+v, %v", b, err)
	}
	a, _, err = answer("mock", ask("weather in two cities?"), tool)
	if c := a.Calls(); err != nil || len(c) != 2 || string(c[0].Args)+
		string(c[1].Args) != `{"city":"Paris"}{"city":"Rome"}` || c[0].ID == c[1].ID {
		t.Errorf("two cities: %+v, %v", a, err)
	}
	if _, _, err = answer("bad", ask("hi")); reeve.CodeOf(err) != reeve.NotFound {
		t.Errorf("bad: %v", err)
	}
	for range 2 { // two clients
		_, _, err = answer("flaky", ask("hi"))
		if reeve.CodeOf(err) != reeve.RateLimited || reeve.AsError(err).RetryAfter != time.Second {
			t.Errorf("flaky, first: %v", err)
		}
		if a, _, err := answer("flaky", ask("hi")); err != nil || a.Text() == "" {
			t.Errorf("flaky, second: %v", err)
		}
	}
}

// TestScript checks the fields of a script.
func TestScript(t *testing.T) {
	m := rehearsed(t, `
answers:
  - text: first
  - when: again
    text: each time
  - when: {said: '/^sum \d+/', system: clever}
    think: Let me see.
    text: "{{said}} is hard"
    pieces: 4
    usage: {input: 7, output: 8, cache_read: 1, reasoning: 2}
  - text: second
  - when: {tool: '/^file_/', result: denied}
    text: "no: {{results}}"
  - when: {said: broken}
    calls: [{name: file_list, args: '{"path": oops', id: x1}]
  - when: {said: cut short}
    text: once upon
    stop: length
  - when: {said: no way}
    stop: refused
`)
	for i, c := range []struct {
		said, system, result string
		text                 string
		stop                 model.Stop
		deltas               int
	}{
		{"again", "", "", "first", model.StopEnd, 1}, // an answer without a condition is used first if it is the first
		{"again", "", "", "each time", model.StopEnd, 2},
		{"again", "", "", "each time", model.StopEnd, 2},
		{"sum 12", "be clever", "", "sum 12 is hard", model.StopEnd, 8},
		{"sum 12", "", "", "second", model.StopEnd, 1},
		{"sum 12", "", "", "You said: sum 12", model.StopEnd, 4},
		{"", "", "access denied", "no: access denied", model.StopEnd, 3},
		{"", "", "fine", "file_list says: fine", model.StopEnd, 3},
		{"broken", "", "", "", model.StopTools, 2},
		{"cut short", "", "", "once upon", model.StopLength, 2},
		{"no way", "", "", "", model.StopRefused, 0},
	} {
		r := model.Request{System: c.system, Messages: ask(c.said)}
		if c.result != "" {
			r.Messages = append(ask("again"),
				model.Message{Role: model.User,
					Parts: []model.Part{{Type: model.Result, ID: "1", Name: "file_list", Text: c.result}}})
		}
		n := 0
		a, err := m.Answer(t.Context(), r, func(model.Delta) { n++ })
		if err != nil || a.Text() != c.text || a.Stop != c.stop || n != c.deltas {
			t.Errorf("%d: got %q, %s, %d deltas, %v; want %q, %s, %d", i, a.Text(), a.Stop, n, err, c.text, c.stop,
				c.deltas)
		}
		if c.said == "broken" && string(a.Calls()[0].Args) != `"{\"path\": oops"` {
			t.Errorf("arguments that are no JSON came as %s", a.Calls()[0].Args)
		}
		if c.system != "" && (a.Usage != model.Usage{Input: 7, Output: 8, CacheRead: 1, Reasoning: 2}) {
			t.Errorf("usage %+v", a.Usage)
		}
	}
}

// TestScriptTimes checks delays, and that a hang lasts until the caller cancels.
func TestScriptTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := rehearsed(t, `answers: [{text: a b c, delay: 1s, pace: 100ms}]`)
		begun, times := time.Now(), []time.Duration{}
		if _, err := m.Answer(t.Context(), model.Request{Messages: ask("hi")},
			func(model.Delta) { times = append(times, time.Since(begun)) }); err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(times) != "[1s 1.1s 1.2s]" {
			t.Errorf("pieces came after %v", times)
		}
	})
}

// TestBadScripts checks that the error locates the mistake.
func TestBadScripts(t *testing.T) {
	for text, says := range map[string]string{
		"answers: [{txt: hi}]":                                  "txt",
		"answers: [{text: hi}, {}]":                             "answer 2",
		"answers: [{when: '/(/', text: hi}]":                    "answer 1",
		"answers: [{when: {sad: x}, text: hi}]":                 "sad",
		"answers: [{calls: [{args: {}}]}]":                      "has no name",
		"answers: [{text: hi, stop: never}]":                    "never",
		"answers: [{fail: {status: 200}}]":                      "400 to 599",
		"answers: [{fail: {cut: true, hang: true}}]":            "one of",
		"answers: [{text: hi, delay: soon}]":                    "soon",
		"answers: [{text: hi, fail: {status: 500}, pace: -1s}]": "-1s",
		"just words": "invalid",
	} {
		if _, err := model.ParseScript([]byte(text)); reeve.CodeOf(err) != reeve.Validation ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v, want one with %q", text, err, says)
		}
	}
	if _, err := model.ReadScript("/no/such/file"); reeve.CodeOf(err) != reeve.Validation {
		t.Errorf("no file: %v", err)
	}
}
