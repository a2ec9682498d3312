package model_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"reeve"
	"reeve/model"
)

// env returns an environment with the given variables only.
func env(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

// TestDefaultModel checks the order: the config, the first provider with a key, rehearsal.
func TestDefaultModel(t *testing.T) {
	for _, c := range []struct {
		config model.Config
		want   string
	}{
		{model.Config{Env: env()}, "rehearsal"},
		{model.Config{Env: env("OLLAMA_HOST", "10.0.0.1")}, "rehearsal"}, // the models of an Ollama server are unknown
		{model.Config{Env: env("GOOGLE_API_KEY", "k")}, "gemini/gemini-3.5-flash"},
		{model.Config{Env: env("GEMINI_API_KEY", "k", "OPENAI_API_KEY", "k")}, "openai/gpt-6.1-sol"},
		{model.Config{Env: env("OPENAI_API_KEY", "k"), Anthropic: model.Endpoint{Key: "k"}},
			"anthropic/claude-sonnet-5-5"},
		{model.Config{Env: env("OPENAI_API_KEY", "k"), Default: "ollama/qwen3"}, "ollama/qwen3"},
		{model.Config{Env: env("ANTHROPIC_API_KEY", "  ")}, "rehearsal"},
	} {
		p, err := model.Open(c.config)
		if err != nil {
			t.Fatal(err)
		}
		if p.Default() != c.want {
			t.Errorf("got %s, want %s", p.Default(), c.want)
		}
	}
}

// TestNamesOfModels checks the provider and the model that a name selects.
func TestNamesOfModels(t *testing.T) {
	var host, path, body string
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		host, path, body = r.Header.Get("X-Host"), r.URL.Path, string(b)
		w.WriteHeader(http.StatusTeapot)
	}))
	defer provider.Close()
	to, err := url.Parse(provider.URL)
	if err != nil {
		t.Fatal(err)
	}
	p, err := model.Open(model.Config{
		Env: env("ANTHROPIC_API_KEY", "k", "OPENAI_API_KEY", "k", "GEMINI_API_KEY", "k", "OLLAMA_HOST", "0.0.0.0:4000"),
		Servers: map[string]model.Endpoint{"acme": {URL: "https://acme.example/v1"},
			"beta": {URL: "https://beta.example", API: "responses", Key: "k"}},
		Names:  map[string]string{"fast": "acme/meta/llama-3", "dream": "rehearsal"},
		Client: &http.Client{Transport: labelled{redirect{to}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, host, path, model string }{
		{"anthropic/claude-opus-5", "api.anthropic.com", "/v1/messages", "claude-opus-5"},
		{"claude-opus-5", "api.anthropic.com", "/v1/messages", "claude-opus-5"},
		{"", "api.anthropic.com", "/v1/messages", "claude-sonnet-5-5"},
		{"gpt-5.4", "api.openai.com", "/v1/responses", "gpt-5.4"},
		{"openai/o3", "api.openai.com", "/v1/responses", "o3"},
		{"gemini-3.5-flash", "generativelanguage.googleapis.com",
			"/v1beta/models/gemini-3.5-flash:streamGenerateContent", ""},
		{"ollama/qwen3", "127.0.0.1:4000", "/api/chat", "qwen3"},
		{"gemma3:4b", "127.0.0.1:4000", "/api/chat", "gemma3:4b"},
		{"fast", "acme.example", "/v1/chat/completions", "meta/llama-3"},
		{"acme/x", "acme.example", "/v1/chat/completions", "x"},
		{"beta/x", "beta.example", "/responses", "x"},
	} {
		host, path, body = "", "", ""
		_, err := p.Answer(t.Context(), model.Request{Model: c.name, Messages: ask("hi")}, nil)
		if reeve.CodeOf(err) != reeve.ModelFailed || host != c.host || path != c.path || c.model != "" &&
			!strings.Contains(body, `"model":"`+c.model+`"`) {
			t.Errorf("%s: asked %s%s %s, %v", c.name, host, path, body, err)
		}
	}
	if a, err := p.Answer(t.Context(), model.Request{Model: "dream", Messages: ask("hi")}, nil); err != nil ||
		a.Provider != "rehearsal" {
		t.Errorf("dream: %+v, %v", a, err)
	}
	for _, unknown := range []string{"bad", "nobody/x", "acme/", "/", "rehearsals"} {
		_, err := p.Answer(t.Context(), model.Request{Model: unknown, Messages: ask("hi")}, nil)
		if reeve.CodeOf(err) != reeve.NotFound || !strings.Contains(reeve.AsError(err).Hint, "acme") {
			t.Errorf("%s: %v", unknown, err)
		}
	}
	names := p.Names()
	for _, n := range []string{"rehearsal", "fast", "dream", "anthropic/claude-opus-5", "openai/gpt-5"} {
		if !slices.Contains(names, n) {
			t.Errorf("%s is not in %v", n, names)
		}
	}
}

// TestI19_ModelsThatAreCounted checks that CanonicalName returns only names of the config, the script and the price
// table.
func TestI19_ModelsThatAreCounted(t *testing.T) {
	p, err := model.Open(model.Config{Default: "gemma3:4b", Names: map[string]string{"fast": "acme/meta/llama-3"},
		Env:     env("ANTHROPIC_API_KEY", "k"),
		Servers: map[string]model.Endpoint{"acme": {URL: "http://acme.example"}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ asked, provider, answered, want string }{
		{"claude-sonnet-4-5", "anthropic", "claude-sonnet-4-5-20250929", "claude-sonnet-4-5"},
		{"claude-sonnet-4-5", "", "", "claude-sonnet-4-5"}, // no answer
		{"claude-sonnet-4-5", "anthropic", "sonnet", "claude-sonnet-4-5"},
		{"fast", "acme", "meta/llama-3", "meta/llama-3"},
		{"fast", "acme", "llama-3-of-acme", "meta/llama-3"},
		{"", "ollama", "gemma3:4b", "gemma3:4b"},
		{"rehearsal/x", "rehearsal", "x", "rehearsal"},
		{"acme/x", "acme", "x", "other"},
		{"ollama/x", "", "", "other"},
		{"ollama/*", "", "", "other"},
		{"x", "", "", "other"},
	} {
		if got := p.CanonicalName(c.asked, c.provider, c.answered); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

// labelled adds the original host of a request as a header.
type labelled struct{ next http.RoundTripper }

func (l labelled) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-Host", r.URL.Host)
	return l.next.RoundTrip(r)
}

// TestCompatibleBaseURL checks that another OPENAI_BASE_URL selects the Chat API and needs no key.
func TestCompatibleBaseURL(t *testing.T) {
	replay, err := model.OpenReplay("testdata/openai_chat/plain.txtar")
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(replay)
	defer server.Close()
	p, err := model.Open(model.Config{Env: env("OPENAI_BASE_URL", server.URL+"/v1/")})
	if err != nil {
		t.Fatal(err)
	}
	if a, err := p.Answer(t.Context(), model.Request{Model: "gpt-5.4", Messages: ask("hi")}, nil); err != nil ||
		a.Text() != "Hello!" {
		t.Errorf("%+v, %v", a, err)
	}
	if err := replay.Err(); err != nil {
		t.Error(err)
	}
}

// TestMissingKeys checks that errors and Status name the variable of a missing key.
func TestMissingKeys(t *testing.T) {
	p, err := model.Open(model.Config{Env: env()})
	if err != nil {
		t.Fatal(err)
	}
	missing := map[string]string{}
	for _, s := range p.Status() {
		missing[s.Provider] = s.Missing
	}
	for name, variable := range map[string]string{"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY",
		"gemini": "GEMINI_API_KEY"} {
		_, err := p.Answer(t.Context(), model.Request{Model: name + "/x", Messages: ask("hi")}, nil)
		if reeve.CodeOf(err) != reeve.ModelFailed || !strings.Contains(reeve.AsError(err).Hint, variable) ||
			!strings.Contains(missing[name], variable) {
			t.Errorf("%s: %v; %s is missing", name, err, missing[name])
		}
	}
	if missing["ollama"] != "" || missing["rehearsal"] != "" || len(missing) != 5 {
		t.Errorf("missing: %v", missing)
	}
	if slices.ContainsFunc(p.Names(), func(n string) bool { return strings.HasPrefix(n, "anthropic/") }) {
		t.Errorf("models without a key are in %v", p.Names())
	}
}

// TestBadConfig checks that errors locate the mistake.
func TestBadConfig(t *testing.T) {
	for says, c := range map[string]model.Config{
		"ANTHROPIC_API_KEY":                {Default: "claude-opus-5"},
		"no model \"bad\"":                 {Default: "bad"},
		"model.openai.base_url":            {OpenAI: model.Endpoint{URL: "localhost:8080"}},
		"model.servers.a.api":              {Servers: map[string]model.Endpoint{"a": {URL: "http://x", API: "soap"}}},
		"needs a base_url":                 {Servers: map[string]model.Endpoint{"a": {}}},
		"\"openai\" is not a":              {Servers: map[string]model.Endpoint{"openai": {URL: "http://x"}}},
		"\"a/b\" is not a":                 {Servers: map[string]model.Endpoint{"a/b": {URL: "http://x"}}},
		"model.names: a":                   {Names: map[string]string{"a": "nobody/x"}},
		"another alias":                    {Names: map[string]string{"a": "b", "b": "ollama/x"}},
		"cannot read the rehearsal script": {Script: "/no/such/file"},
		"cannot read the price table":      {Prices: "/no/such/file"},
	} {
		c.Env = env()
		_, err := model.Open(c)
		if reeve.CodeOf(err) != reeve.Validation || !strings.Contains(err.Error()+reeve.AsError(err).Hint, says) {
			t.Errorf("got %v, want %q", err, says)
		}
	}
}

// TestCosts checks the price of answers, and that a missing price is logged once.
func TestCosts(t *testing.T) {
	script := filepath.Join(t.TempDir(), "script.yaml")
	prices := filepath.Join(t.TempDir(), "prices.yaml")
	for file, text := range map[string]string{script: "answers: [{when: hi, text: yes, usage: {input: 10, output: 5}}]",
		prices: "rehearsal/dear: {input: 2, output: 3}\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	replay, err := model.OpenReplay("testdata/openai_chat/plain.txtar")
	if err != nil {
		t.Fatal(err)
	}
	replay.Exchanges = append(replay.Exchanges, replay.Exchanges...)
	server := httptest.NewServer(replay)
	defer server.Close()
	var log bytes.Buffer
	p, err := model.Open(model.Config{Env: env(), Script: script, Prices: prices,
		Servers: map[string]model.Endpoint{"acme": {URL: server.URL + "/v1", Key: secret}},
		Log:     slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int64{"rehearsal/dear": 35, "rehearsal": 0} {
		a, err := p.Answer(t.Context(), model.Request{Model: name, Messages: ask("hi")}, nil)
		if err != nil || a.Usage.Micros != want {
			t.Errorf("%s: %+v, %v; want %d", name, a.Usage, err, want)
		}
	}
	for range 2 {
		a, err := p.Answer(t.Context(), model.Request{Model: "acme/gpt-5.4", Messages: ask("hi")}, nil)
		if err != nil || a.Usage.Micros != 0 || a.Usage.Input != 19 {
			t.Errorf("%+v, %v", a.Usage, err)
		}
	}
	if n := strings.Count(log.String(), "acme/gpt-5.4"); n != 1 {
		t.Errorf("said %d times:\n%s", n, log.String())
	}
	if strings.Contains(log.String(), secret) {
		t.Errorf("the key is in the log:\n%s", log.String())
	}
}

// TestManyModelsWithoutAPrice checks that the number of logged models without a price is limited.
func TestManyModelsWithoutAPrice(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write(wire("openai_chat", []string{`"yes"`}, "stop", "5", "5"))
	}))
	defer server.Close()
	var log bytes.Buffer
	p, err := model.Open(model.Config{Env: env(), Servers: map[string]model.Endpoint{"acme": {URL: server.URL}},
		Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		for i := range 150 {
			if _, err := p.Answer(t.Context(), model.Request{Model: fmt.Sprint("acme/", i), Messages: ask("hi")}, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := strings.Count(log.String(), "has no price"); n != 100 {
		t.Errorf("said %d times", n)
	}
}

// TestProvidersRetry checks retries (W08) through Providers.
func TestProvidersRetry(t *testing.T) {
	p, err := model.Open(model.Config{Env: env(), Script: "testdata/clients.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		a, err := p.Answer(t.Context(), model.Request{Model: "flaky", Messages: ask("hi")}, nil)
		if err != nil || a.Text() == "" || time.Since(begun) != time.Second {
			t.Errorf("after %v: %+v, %v", time.Since(begun), a, err)
		}
	})
	if _, err := p.Answer(t.Context(), model.Request{Model: "bad", Messages: ask("hi")}, nil); reeve.CodeOf(err) != reeve.NotFound {
		t.Errorf("bad: %v", err)
	}
}

// TestUnreachable checks that a failed connection is a typed error without secrets of the URL.
func TestUnreachable(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for provider, adapter := range adapters {
		m := adapter.open(model.Server{URL: strings.Replace(gone.URL, "http://", "http://me:hunter2@", 1), Key: secret})
		_, err := m.Answer(t.Context(), model.Request{Model: adapter.model, Messages: ask("hi")}, nil)
		if reeve.CodeOf(err) != reeve.Unavailable || strings.Contains(err.Error(), "hunter2") ||
			strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", provider, err)
		}
	}
}

// TestRedirectsAreNotFollowed checks that another host gets neither the key nor the request, and that the error names
// the target of the redirect.
func TestRedirectsAreNotFollowed(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the other host got %s %v", r.Method, r.Header)
	}))
	defer other.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, strings.Replace(other.URL, "http://", "http://me:hunter2@", 1)+
				"/elsewhere?token=hunter3", status)
		}))
		for provider, adapter := range adapters {
			for _, client := range []*http.Client{nil, {Transport: http.DefaultTransport}} {
				_, err := adapter.open(model.Server{URL: server.URL, Key: secret, Client: client}).
					Answer(t.Context(), model.Request{Model: adapter.model, Messages: ask("hi")}, nil)
				if e := reeve.AsError(err); e.Code != reeve.ModelFailed ||
					!strings.Contains(e.Message, other.URL+"/elsewhere") || !strings.Contains(e.Hint, "base_url") ||
					strings.Contains(e.Message, "hunter") {
					t.Errorf("%s, %d: %v (%s)", provider, status, err, e.Hint)
				}
			}
		}
		server.Close()
	}
	if http.DefaultClient.CheckRedirect != nil {
		t.Error("the default client was changed")
	}
}

// TestRetryAfter checks seconds, fractions, dates and milliseconds.
func TestRetryAfter(t *testing.T) {
	for header, want := range map[string]time.Duration{
		"Retry-After: 3": 3 * time.Second, "Retry-After: 0.5": 500 * time.Millisecond,
		"Retry-After-Ms: 250": 250 * time.Millisecond, "Retry-After: -1": 0, "Retry-After: soon": 0,
		"Retry-After: " + reeve.Now().Add(2*time.Hour).Format(http.TimeFormat): time.Hour, "Retry-After: " +
			reeve.Now().Add(-time.Hour).Format(http.TimeFormat): 0,
		"Retry-After: 999999": time.Hour, "Retry-After: NaN": 0,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			name, v, _ := strings.Cut(header, ": ")
			w.Header().Set(name, v)
			w.WriteHeader(http.StatusTooManyRequests)
		}))
		for provider, adapter := range adapters {
			_, err := adapter.open(model.Server{URL: server.URL, Key: secret}).
				Answer(t.Context(), model.Request{Model: "x", Messages: ask("hi")}, nil)
			if e := reeve.AsError(err); e.Code != reeve.RateLimited || e.RetryAfter != want {
				t.Errorf("%s, %s: %v, again after %v; want %v", provider, header, err, e.RetryAfter, want)
			}
		}
		server.Close()
	}
}

// TestOddErrors checks error bodies of proxies and compatible servers. The status decides the error code, and the
// quoted body is short and without the key.
func TestOddErrors(t *testing.T) {
	for _, body := range []string{"", "Bad Gateway", "<html><body>nginx " + strings.Repeat("x", 5000) +
		"</body></html>", `{"error":"plain words"}`, `{"detail":[{"msg":"field required"}]}`,
		`{"error":{"code":42,"message":"a number"}}`, `{"error":null}`, `[]`, `"text"`, `{"message":"key ` + secret +
			` is wrong"}`} {
		for status, want := range map[int]reeve.Code{400: reeve.ModelFailed, 404: reeve.ModelFailed,
			413: reeve.ModelFailed, 422: reeve.ModelFailed, 408: reeve.Unavailable, 500: reeve.Unavailable,
			502: reeve.Unavailable, 524: reeve.Unavailable} {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(status)
				if _, err := io.WriteString(w, body); err != nil {
					t.Error(err)
				}
			}))
			for provider, adapter := range adapters {
				_, err := adapter.open(model.Server{URL: server.URL, Key: secret}).
					Answer(t.Context(), model.Request{Model: "x", Messages: ask("hi")}, nil)
				if reeve.CodeOf(err) != want || len(err.Error()) > 800 || strings.Contains(err.Error(), secret) {
					t.Errorf("%s, %d %s: %v; want %s", provider, status, body, err, want)
				}
			}
			server.Close()
		}
	}
}

// TestNotAStream checks that a response that is not a stream is a permanent error, not a truncated stream.
func TestNotAStream(t *testing.T) {
	for _, kind := range []string{"application/json", "text/html; charset=utf-8"} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			if _, err := io.WriteString(w, `{"please":"log in"}`+"\n"); err != nil {
				t.Error(err)
			}
		}))
		for provider, adapter := range adapters {
			_, err := adapter.open(model.Server{URL: server.URL, Key: secret}).
				Answer(t.Context(), model.Request{Model: "x", Messages: ask("hi")}, nil)
			// Ollama streams lines of JSON, whatever their content type.
			if reeve.CodeOf(err) != reeve.ModelFailed && provider != "ollama" {
				t.Errorf("%s, %s: %v", provider, kind, err)
			}
		}
		server.Close()
	}
}
