package model_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"reeve/model"
)

// TestHalvesOfCharacters checks that a surrogate pair split between two fragments is joined, in deltas too. An unpaired
// surrogate and a NUL become U+FFFD.
func TestHalvesOfCharacters(t *testing.T) {
	for provider, adapter := range adapters {
		for pieces, want := range map[string]string{
			`"Hi \ud83d|\ude00 there"`:       "Hi 😀 there",
			`"\ud83d|\ude00"`:                "😀",
			`"\uD83D|\uDE00\ud83d|\ude00!"`:  "😀😀!",
			`"a\ud83d||\ude00"`:              "a😀",
			`"a\ud83d|b"`:                    "a\uFFFDb",
			`"a\ud83d|\ud83d|\ude00"`:        "a\uFFFD😀",
			`"a\ud83d"`:                      "a\uFFFD",
			`"a|\ude00b"`:                    "a\uFFFDb",
			`"a\ud83db|c"`:                   "a\uFFFDbc",
			`"a\\ud83d|\\ude00"`:             `a\ud83d\ude00`,
			`"a\\\ud83d|\ude00"`:             `a\😀`,
			`"\ud83d\ude00|\u00e4 \ud7ff|é"`: "😀ä \ud7ffé",
			`"a\u0000b"`:                     "a\uFFFDb",
		} {
			list := strings.Split(strings.ReplaceAll(pieces, "|", `"|"`), "|")
			var streamed strings.Builder
			a, err := speaks(provider, wire(provider, list, "stop", "5", "5")).
				Answer(t.Context(), model.Request{Model: adapter.model, Messages: ask("hi")}, func(d model.Delta) {
					if !utf8.ValidString(d.Text) {
						t.Errorf("%s, %s: streams %q", provider, pieces, d.Text)
					}
					streamed.WriteString(d.Text)
				})
			if err != nil || a.Text() != want || streamed.String() != want {
				t.Errorf("%s, %s: %q, streamed %q, %v; want %q", provider, pieces, a.Text(), streamed.String(), err,
					want)
			}
		}
	}
}

// TestHalvesInThoughtsAndArguments checks the same for reasoning and arguments.
func TestHalvesInThoughtsAndArguments(t *testing.T) {
	a, err := speaks("openai_chat", []byte(`data: {"id":"a","choices":[{"index":0,"delta":{"reasoning_content":"hm \ud83d"}}]}

data: {"id":"a","choices":[{"index":0,"delta":{"reasoning_content":"\ude00","tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{\"a\":\"\ud83d"}}]}}]}

data: {"id":"a","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\ude00\"}"}}]},"finish_reason":"tool_calls"}]}

`)).Answer(t.Context(), model.Request{Model: "x", Messages: ask("hi")}, nil)
	if err != nil || len(a.Parts) != 2 || a.Parts[0].Text != "hm 😀" || string(a.Parts[1].Args) != `{"a":"😀"}` {
		t.Errorf("%+v, %v", a, err)
	}
	a, err = speaks("anthropic", []byte(`data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"hm"}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":" \ud83d"}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"\ude00"}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"s1"}}

data: {"type":"content_block_stop","index":0}

data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"fine"}}

data: {"type":"message_stop"}

`)).Answer(t.Context(), model.Request{Model: "x", Messages: ask("hi")}, nil)
	if err != nil || len(a.Parts) != 2 || a.Parts[0].Text != "hm 😀" ||
		string(a.Parts[0].Raw) != `{"anthropic":{"type":"thinking","thinking":"hm 😀","signature":"s1"}}` {
		t.Errorf("%+v, %v", a, err)
	}
}

// TestIDsThatCannotBeKept checks that a call id with control characters or of excessive length is replaced by a
// deterministic one.
func TestIDsThatCannotBeKept(t *testing.T) {
	for id, same := range map[string]bool{`call_1`: true, `tool-7:äö`: true, `a\u0000b`: false, `a\nb`: false,
		strings.Repeat("x", 300): false, ``: false} {
		body := []byte(`data: {"id":"a","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"` + id +
			`","function":{"name":"f\u0000g","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}` + "\n\n")
		var got []string
		for range 2 {
			a, err := speaks("openai_chat", body).Answer(t.Context(), model.Request{Model: "x", Messages: ask("hi")},
				nil)
			if err != nil || len(a.Calls()) != 1 {
				t.Fatalf("%s: %+v, %v", id, a, err)
			}
			got = append(got, a.Calls()[0].ID)
			if strings.ContainsRune(a.Calls()[0].Name, 0) {
				t.Errorf("a tool %q", a.Calls()[0].Name)
			}
		}
		if got[0] != got[1] || (got[0] == id) != same || !same && (!strings.HasPrefix(got[0], "call_") ||
			strings.ContainsRune(got[0], 0)) {
			t.Errorf("%q became %q", id, got)
		}
	}
}
