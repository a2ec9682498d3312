package model_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"reeve"
	"reeve/model"
)

// TestCancelInMidStream checks that a cancelled request returns Canceled at once and no answer.
func TestCancelInMidStream(t *testing.T) {
	for provider, adapter := range adapters {
		t.Run(provider, func(t *testing.T) {
			replay, err := model.OpenReplay(filepath.Join("testdata", provider, "cut.txtar"))
			if err != nil {
				t.Fatal(err)
			}
			x := replay.Exchanges[0]
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", x.ResponseHeader.Get("Content-Type"))
				if _, err := w.Write(x.ResponseBody); err != nil {
					return
				}
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done() // a provider that hangs
			}))
			defer server.Close()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			m := adapter.open(model.Server{URL: server.URL, Key: secret})
			a, err := m.Answer(ctx, model.Request{Model: adapter.model, Messages: ask("hi")},
				func(model.Delta) { cancel() })
			if reeve.CodeOf(err) != reeve.Canceled || len(a.Parts) > 0 {
				t.Errorf("got %+v, %v", a, err)
			}
		})
	}
}

// transport returns the same response body for every request.
type transport struct {
	kind string
	body []byte
}

func (s transport) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {s.kind}},
		Body: io.NopCloser(strings.NewReader(string(s.body))), Request: r}, nil
}

// FuzzAnswers checks that any response yields a storable answer or a typed error.
func FuzzAnswers(f *testing.F) {
	for provider := range adapters {
		files, err := filepath.Glob(filepath.Join("testdata", provider, "*.txtar"))
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			replay, err := model.OpenReplay(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(provider, replay.Exchanges[0].ResponseBody)
		}
	}
	f.Fuzz(func(t *testing.T, provider string, body []byte) {
		adapter, ok := adapters[provider]
		if !ok {
			return
		}
		m := adapter.open(model.Server{Key: secret,
			Client: &http.Client{Transport: transport{"text/event-stream", body}}})
		a, err := m.Answer(t.Context(), model.Request{Model: adapter.model, Messages: ask("hi"),
			Tools: []model.Tool{weather}}, nil)
		var e *reeve.Error
		if err != nil && !errors.As(err, &e) {
			t.Fatalf("not typed: %v", err)
		}
		if err == nil {
			if _, err := json.Marshal(a); err != nil {
				t.Fatalf("cannot be stored: %v", err)
			}
			for _, c := range a.Calls() {
				if c.ID == "" || c.Name == "" {
					t.Fatalf("a call without id or name: %+v", c)
				}
			}
		}
	})
}
