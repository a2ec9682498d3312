package host_test

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"testing"

	"reeve/host"
	"reeve/model"
	"reeve/reevetest"
)

// scribe is a model that notes what it is asked, and answers in JSON.
type scribe struct {
	mu    sync.Mutex
	asked []model.Request
}

func (l *scribe) Answer(_ context.Context, r model.Request, _ func(model.Delta)) (model.Answer, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked = append(l.asked, r)
	return model.Answer{Provider: "test", Model: r.Model, Stop: model.StopEnd, Parts: []model.Part{{Type: model.Text, Text: `{"city":"Paris"}`}}}, nil
}

func TestW23_AnAnswerInJSON(t *testing.T) {
	l := &scribe{}
	h := reevetest.Run(t, host.Config{Dir: t.TempDir(), Mind: l})
	h.Agent("bot")
	shape := object{"type": "object", "properties": object{"city": object{"type": "string"}}}
	chat := object{"model": "bot", "messages": []object{{"role": "user", "content": "which city?"}}}
	respond := object{"model": "bot", "input": "which city?"}
	with := func(body object, key string, v any) object {
		out := object{key: v}
		for k, v := range body {
			out[k] = v
		}
		return out
	}
	for name, c := range map[string]struct {
		path string
		body object
		want string
	}{
		"no format":           {"/v1/chat/completions", chat, ""},
		"text":                {"/v1/chat/completions", with(chat, "response_format", object{"type": "text"}), ""},
		"any JSON":            {"/v1/chat/completions", with(chat, "response_format", object{"type": "json_object"}), `{}`},
		"a shape":             {"/v1/chat/completions", with(chat, "response_format", object{"type": "json_schema", "json_schema": object{"name": "place", "strict": true, "schema": shape}}), `{"name":"place","schema":{"properties":{"city":{"type":"string"}},"type":"object"},"strict":true}`},
		"a shape of response": {"/v1/responses", with(respond, "text", object{"format": object{"type": "json_schema", "name": "place", "schema": shape}}), `{"name":"place","schema":{"properties":{"city":{"type":"string"}},"type":"object"}}`},
		"only a verbosity":    {"/v1/responses", with(respond, "text", object{"verbosity": "low"}), ""},
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
	for _, bad := range []any{object{"type": "yaml"}, object{"type": "json_schema"}, object{"type": "json_schema", "json_schema": object{"name": "x", "schema": "y"}}, "json"} {
		h.Want(http.StatusBadRequest, nil, "POST", "/v1/chat/completions", with(chat, "response_format", bad))
	}
	if len(l.asked) != asked {
		t.Error("a format that makes no sense reached the model")
	}
}
