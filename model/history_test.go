package model_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"reeve"
	"reeve/model"
)

// sent returns the body that an adapter sends for a request.
func sent(t interface {
	Fatalf(string, ...any)
	Helper()
}, provider string, r model.Request) (string, error) {
	t.Helper()
	var body string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		b, err := io.ReadAll(q.Body)
		if err == nil {
			body = string(b)
		}
		w.WriteHeader(http.StatusTeapot)
	}))
	defer server.Close()
	r.Model = adapters[provider].model
	m := adapters[provider].open(model.Server{URL: server.URL, Key: secret})
	if _, err := m.Answer(context.Background(), r, nil); body == "" {
		return "", err
	}
	return body, nil
}

// mixed is a conversation with models of several providers and all kinds of defects.
func mixed() []model.Message {
	return []model.Message{
		{Role: model.Assistant, Parts: []model.Part{{Type: model.Text, Text: "Welcome."}}},
		model.NewTextMessage(model.User, "weather?"), model.NewTextMessage(model.User, "in Paris"),
		{Role: model.Assistant, Parts: []model.Part{
			{Type: model.Reasoning, Text: "hm",
				Raw: json.RawMessage(`{"elsewhere":{"type":"thinking","signature":"FOREIGN"}}`)},
			{Type: model.Text, Text: "  "}, call("call_1", "Paris"), {Type: model.ToolCall, ID: "call_1",
				Name: "weather.get", Args: json.RawMessage(`"{city: Rome"`)},
			{Type: model.ToolCall, ID: "an id that is much too long for some of the providers, really",
				Name: "gone/tool", Args: json.RawMessage(`{}`)},
		}},
		{Role: model.User, Parts: []model.Part{{Type: model.Text, Text: "hurry"}, result("call_1", "21")}},
		{Role: model.Assistant, Parts: []model.Part{{Type: model.Reasoning, Text: "only a thought",
			Raw: json.RawMessage(`{"elsewhere":1}`)}}},
		{Role: model.User, Parts: []model.Part{result("call_1", ""), result("call_1", "late and double"),
			result("call_x", "of nobody's call")}},
		{Role: model.Assistant},
		model.NewTextMessage(model.Assistant, "So far, so good."),
	}
}

// TestTextFiles checks that all text attachments are sent to every provider as text.
func TestTextFiles(t *testing.T) {
	for provider := range adapters {
		for _, kind := range []string{"text/plain", "text/csv; charset=utf-8", "application/json", "application/yaml",
			"application/toml", "application/xml"} {
			body, err := sent(t, provider,
				model.Request{Messages: []model.Message{{Role: model.User,
					Parts: []model.Part{{Type: model.Media, Name: "a", MediaType: kind, Data: []byte("some words")}}}}})
			if err != nil || !strings.Contains(body, "some words") {
				t.Errorf("%s, %s: %s, %v", provider, kind, body, err)
			}
		}
	}
}

// TestForeignHistoryIsSendable checks that every provider accepts the answers of all others.
func TestForeignHistoryIsSendable(t *testing.T) {
	for provider := range adapters {
		t.Run(provider, func(t *testing.T) {
			before, err := json.Marshal(mixed())
			if err != nil {
				t.Fatal(err)
			}
			ms := mixed()
			body, err := sent(t, provider, model.Request{Messages: ms, Tools: []model.Tool{weather}})
			if err != nil {
				t.Fatal(err)
			}
			if after, err := json.Marshal(ms); err != nil || string(after) != string(before) {
				t.Error("the caller's messages were changed")
			}
			for _, want := range []string{"21", "hurry", "of nobody's call", "This call has no recorded result",
				"(no output)", "{city: Rome", "gone_tool", "weather_get", "Continue.", "The conversation continues"} {
				if !strings.Contains(body, want) {
					t.Errorf("%q is not in %s", want, body)
				}
			}
			for _, not := range []string{"FOREIGN", "late and double", "only a thought", "much too long", "gone/tool",
				`"  "`} {
				if strings.Contains(body, not) {
					t.Errorf("%q is in %s", not, body)
				}
			}
			checkTurns(t, provider, body)
		})
	}
}

// checkTurns checks a body as its provider does: roles alternate (where the provider requires it), all calls have
// results, and no message is empty.
func checkTurns(t interface{ Errorf(string, ...any) }, provider, body string) {
	var b struct{ Messages, Contents, Input []map[string]any }
	if json.Unmarshal([]byte(body), &b) != nil {
		t.Errorf("not JSON: %s", body)
		return
	}
	open, last := map[any]bool{}, any("")
	for _, m := range append(append(b.Messages, b.Contents...), b.Input...) {
		if (provider == "anthropic" || provider == "gemini") && m["role"] == last {
			t.Errorf("two messages of %v in a row: %s", last, body)
		}
		last = m["role"]
		// OpenAI's Responses API does not require results directly after calls.
		if len(open) > 0 && provider != "openai_responses" && last != "user" && last != "tool" {
			t.Errorf("calls %v have no result: %s", open, body)
		}
		walk(m, func(o map[string]any) {
			switch {
			case o["type"] == "tool_use", o["type"] == "function" && o["id"] != nil, o["type"] == "function_call":
				id := o["id"]
				if o["call_id"] != nil {
					id = o["call_id"]
				}
				if open[id] || id == "" {
					t.Errorf("the call id %q is not its own: %s", id, body)
				}
				open[id] = true
			case o["type"] == "text" && strings.TrimSpace(o["text"].(string)) == "":
				t.Errorf("an empty text: %s", body)
			}
		})
		walk(m, func(o map[string]any) {
			for _, k := range []string{"tool_use_id", "tool_call_id"} {
				delete(open, o[k])
			}
			if o["type"] == "function_call_output" {
				delete(open, o["call_id"])
			}
		})
	}
	if len(open) > 0 {
		t.Errorf("calls %v have no result: %s", open, body)
	}
}

func walk(v any, see func(map[string]any)) {
	switch v := v.(type) {
	case map[string]any:
		see(v)
		for _, e := range v {
			walk(e, see)
		}
	case []any:
		for _, e := range v {
			walk(e, see)
		}
	}
}

// TestAnyHistoryIsSendable checks random conversations.
func TestAnyHistoryIsSendable(t *testing.T) {
	id := rapid.SampledFrom([]string{"", "a", "b", "call_1", "with space", strings.Repeat("x", 60)})
	part := rapid.Custom(func(t *rapid.T) model.Part {
		switch rapid.IntRange(0, 4).Draw(t, "type") {
		case 0:
			return model.Part{Type: model.Text, Text: rapid.SampledFrom([]string{"", " ", "hello"}).Draw(t, "text")}
		case 1:
			return model.Part{Type: model.Reasoning, Text: "hm", Raw: json.RawMessage(`{"elsewhere":1}`)}
		case 2:
			return model.Part{Type: model.ToolCall, ID: id.Draw(t, "id"),
				Name: rapid.SampledFrom([]string{"", "weather.get", "weather_get", "9 lives"}).Draw(t, "name"),
				Args: json.RawMessage(rapid.SampledFrom([]string{`{}`, `"no json"`, `[1]`, `null`}).Draw(t, "args"))}
		case 3:
			return model.Part{Type: model.Result, ID: id.Draw(t, "id"), Name: "weather.get",
				Text: rapid.SampledFrom([]string{"", "21"}).Draw(t, "result")}
		default:
			return model.Part{Type: model.Media, MediaType: "image/png",
				Data: []byte(rapid.SampledFrom([]string{"", "png"}).Draw(t, "data"))}
		}
	})
	message := rapid.Custom(func(t *rapid.T) model.Message {
		return model.Message{Role: rapid.SampledFrom([]model.Role{model.User, model.Assistant}).Draw(t, "role"), Parts: rapid.SliceOfN(part, 0, 4).Draw(t, "parts")}
	})
	for provider := range adapters {
		t.Run(provider, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				body, err := sent(t, provider, model.Request{Messages: rapid.SliceOfN(message, 0, 8).
					Draw(t, "messages"), Tools: []model.Tool{weather}})
				if err != nil {
					if reeve.CodeOf(err) != reeve.Validation {
						t.Fatalf("%v", err)
					}
					return // all messages were empty
				}
				checkTurns(t, provider, body)
			})
		})
	}
}

// TestW23_AHistoryOfManyParts checks that the memory for a long history grows linearly, because a client may send very
// many parts and calls.
func TestW23_AHistoryOfManyParts(t *testing.T) {
	const n = 20_000
	words := strings.Repeat("word ", 20)
	var said, results []model.Part
	for range n {
		said = append(said, model.Part{Type: model.Text, Text: words})
	}
	for i := range n {
		id := "call_" + strconv.Itoa(i)
		said = append(said, model.Part{Type: model.ToolCall, ID: id, Name: "look", Args: json.RawMessage("{}")})
		results = append(results, model.Part{Type: model.Result, ID: id, Name: "look", Text: "seen"})
	}
	r := model.Request{Messages: []model.Message{model.NewTextMessage(model.User, "go"),
		{Role: model.Assistant, Parts: said}, {Role: model.User, Parts: results}}}
	for provider := range adapters {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		body, err := sent(t, provider, r)
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; err != nil || len(body) < n*len(words) || took > 1<<30 {
			t.Errorf("%s was sent %d bytes, which took %d MB: %v", provider, len(body), took>>20, err)
		}
	}
}

func TestMediaThatCannotBeSent(t *testing.T) {
	for provider := range adapters {
		_, err := sent(t, provider,
			model.Request{Messages: []model.Message{{Role: model.User,
				Parts: []model.Part{{Type: model.Media, Name: "a.zip", MediaType: "application/zip",
					Data: []byte("PK")}}}}})
		if reeve.CodeOf(err) != reeve.Unsupported || !strings.Contains(reeve.AsError(err).Hint, "accepts") {
			t.Errorf("%s: %v", provider, err)
		}
	}
}

// TestEarlierMediaThatCannotBeSent checks that a text replaces an earlier attachment that the model does not accept.
func TestEarlierMediaThatCannotBeSent(t *testing.T) {
	video := model.Part{Type: model.Media, Name: "a.mp4", MediaType: "video/mp4", Data: []byte("moov")}
	before := []model.Message{{Role: model.User, Parts: []model.Part{video, {Type: model.Text, Text: "what is this?"}}},
		model.NewTextMessage(model.Assistant, "[This turn ended without an answer.]")}
	for provider := range adapters {
		body, err := sent(t, provider, model.Request{Messages: append(before, ask("hi")...)})
		if told := strings.Contains(body, "(The file a.mp4 is omitted: this model does not accept its type.)"); err != nil ||
			told == (provider == "gemini") || !strings.Contains(body, "what is this?") {
			t.Errorf("%s: %s, %v", provider, body, err)
		}
	}
}

// TestFiles checks how each provider gets a PDF file.
func TestFiles(t *testing.T) {
	want := map[string]string{
		"anthropic":        `{"source":{"data":"JVBERg==","media_type":"application/pdf","type":"base64"},"title":"a.pdf","type":"document"}`,
		"openai_chat":      `{"file":{"file_data":"data:application/pdf;base64,JVBERg==","filename":"a.pdf"},"type":"file"}`,
		"openai_responses": `{"file_data":"data:application/pdf;base64,JVBERg==","filename":"a.pdf","type":"input_file"}`,
		"gemini":           `{"inlineData":{"mimeType":"application/pdf","data":"JVBERg=="}}`,
	}
	for provider, w := range want {
		body, err := sent(t, provider,
			model.Request{Messages: []model.Message{{Role: model.User,
				Parts: []model.Part{{Type: model.Media, Name: "a.pdf", MediaType: "application/pdf",
					Data: []byte("%PDF")}}}}})
		if err != nil || !strings.Contains(body, w) {
			t.Errorf("%s sent %s, %v\nwant %s", provider, body, err, w)
		}
	}
}
