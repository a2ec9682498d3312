package chat_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"

	"reeve/host"
	"reeve/model"
	"reeve/reevetest"
	"reeve/test/kit"
)

// jsonModel is a model that records its requests and answers in JSON.
type jsonModel struct {
	mu    sync.Mutex
	asked []model.Request
}

func (l *jsonModel) Answer(_ context.Context, r model.Request, _ func(model.Delta)) (model.Answer, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked = append(l.asked, r)
	return model.Answer{Provider: "test", Model: r.Model, Stop: model.StopEnd,
		Parts: []model.Part{{Type: model.Text, Text: `{"city":"Paris"}`}}}, nil
}

func TestW23_AnAnswerInJSON(t *testing.T) {
	t.Parallel()
	l := &jsonModel{}
	h := reevetest.Run(t, host.Config{Dir: t.TempDir(), Model: l})
	h.Agent("bot")
	shape := kit.Object{"type": "object", "properties": kit.Object{"city": kit.Object{"type": "string"}}}
	chat := kit.Object{"model": "bot", "messages": []kit.Object{{"role": "user", "content": "which city?"}}}
	respond := kit.Object{"model": "bot", "input": "which city?"}
	with := func(body kit.Object, key string, v any) kit.Object {
		out := kit.Object{key: v}
		for k, v := range body {
			out[k] = v
		}
		return out
	}
	for name, c := range map[string]struct {
		path string
		body kit.Object
		want string
	}{
		"no format": {"/v1/chat/completions", chat, ""},
		"text":      {"/v1/chat/completions", with(chat, "response_format", kit.Object{"type": "text"}), ""},
		"any JSON":  {"/v1/chat/completions", with(chat, "response_format", kit.Object{"type": "json_object"}), `{}`},
		"a shape": {"/v1/chat/completions",
			with(chat, "response_format",
				kit.Object{"type": "json_schema", "json_schema": kit.Object{"name": "place", "strict": true,
					"schema": shape}}),
			`{"name":"place","schema":{"properties":{"city":{"type":"string"}},"type":"object"},"strict":true}`},
		"a shape of response": {"/v1/responses",
			with(respond, "text", kit.Object{"format": kit.Object{"type": "json_schema", "name": "place",
				"schema": shape}}),
			`{"name":"place","schema":{"properties":{"city":{"type":"string"}},"type":"object"}}`},
		"only a verbosity": {"/v1/responses", with(respond, "text", kit.Object{"verbosity": "medium"}), ""},
	} {
		h.Want(http.StatusOK, nil, "POST", c.path, c.body)
		l.mu.Lock()
		got := ""
		if f := l.asked[len(l.asked)-1].Format; f != nil {
			text, err := json.Marshal(f)
			if err != nil {
				t.Fatal(err)
			}
			got = string(text)
		}
		l.mu.Unlock()
		if got != c.want {
			t.Errorf("%s: the model was told %s, want %s", name, got, c.want)
		}
	}
	asked := len(l.asked)
	for _, bad := range []any{kit.Object{"type": "yaml"}, kit.Object{"type": "json_schema"},
		kit.Object{"type": "json_schema", "json_schema": kit.Object{"name": "x", "schema": "y"}}, "json"} {
		h.Want(http.StatusBadRequest, nil, "POST", "/v1/chat/completions", with(chat, "response_format", bad))
	}
	if len(l.asked) != asked {
		t.Error("a format that makes no sense reached the model")
	}
}

func TestW23_BoundsOfAnAnswer(t *testing.T) {
	t.Parallel()
	l := &jsonModel{}
	h := reevetest.Run(t, host.Config{Dir: t.TempDir(), Model: l})
	h.Agent("bot")
	for name, c := range map[string]struct {
		path, field string
		value       any
	}{
		"below nothing":         {"/v1/chat/completions", "max_tokens", -1},
		"nothing":               {"/v1/chat/completions", "max_completion_tokens", 0},
		"nothing of a response": {"/v1/responses", "max_output_tokens", 0},
		"too free":              {"/v1/chat/completions", "temperature", 99},
		"too free a response":   {"/v1/responses", "temperature", -0.1},
		"a text":                {"/v1/chat/completions", "stream", "yes"},
		"a response of nobody":  {"/v1/responses", "previous_response_id", "resp_none"},
	} {
		var got struct {
			Error struct{ Message, Type, Param, Code string }
		}
		body := kit.Object{"model": "bot", c.field: c.value}
		if c.path == "/v1/responses" {
			body["input"] = "hi"
		} else {
			body["messages"] = []kit.Object{{"role": "user", "content": "hi"}}
		}
		h.Want(http.StatusBadRequest, &got, "POST", c.path, body)
		if e := got.Error; e.Param != c.field || e.Type != "invalid_request_error" || e.Code == "model_not_found" ||
			strings.Contains(e.Message, "Go ") || strings.Contains(e.Message, "v1") {
			t.Errorf("%s: %+v", name, e)
		}
	}
	if len(l.asked) != 0 {
		t.Error("what makes no sense reached the model")
	}
	h.Want(http.StatusOK, nil, "POST", "/v1/chat/completions",
		kit.Object{"model": "bot", "messages": []kit.Object{{"role": "user", "content": "hi"}}, "max_tokens": 7,
			"temperature": 0})
	if r := l.asked[0]; r.MaxTokens != 7 || r.Temperature == nil || *r.Temperature != 0 {
		t.Errorf("the model was asked for %+v", r)
	}
}

// Under /v1 an Idempotency-Key has no effect, so that an answer never reaches a caller without a valid token.
func TestW23_IdempotencyKeyIsIgnoredForOpenAI(t *testing.T) {
	t.Parallel()
	h := reevetest.Run(t, host.Config{Dir: t.TempDir(), Model: &jsonModel{}})
	h.Agent("bot")
	for path, body := range map[string]kit.Object{
		"/v1/chat/completions": {"model": "bot", "messages": []kit.Object{{"role": "user", "content": "which city?"}}},
		"/v1/responses":        {"model": "bot", "input": "which city?"},
	} {
		h.Want(http.StatusOK, nil, "POST", path, body, "Idempotency-Key", "k")
		if r := h.Do("POST", path, body, "Idempotency-Key", "k", "Authorization", "Bearer wrong"); r.Status != http.StatusUnauthorized {
			t.Errorf("%s without a token: %d %s", path, r.Status, r.Body)
		}
	}
}
