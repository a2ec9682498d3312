package model_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reeve"
	"reeve/model"
)

// TestRecorder checks that a recording replays, including streams and failed connections, and contains no keys and
// account ids.
func TestRecorder(t *testing.T) {
	body := strings.Repeat("aB3dE5gH7jK9", 10) // the body of keys in the providers' formats
	openaiKey, anthropicKey, googleKey := "sk-"+"proj-"+body, "sk-"+"ant-api03-"+body, "AI"+"za"+body[:35]
	replies := []func(w http.ResponseWriter){
		func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/x-ndjson")
			w.Header().Set("Set-Cookie", "session=COOKIE")
			w.Header().Set("Openai-Organization", "acme-inc")
			_, _ = io.WriteString(w, `{"message":{"content":"your key is `+openaiKey+
				`, of org-0123456789abcdef"},"user":"me@example.com"}`+"\n")
			_ = http.NewResponseController(w).Flush()
			_, _ = io.WriteString(w, `{"done":true,"done_reason":"stop"}`+"\n")
		},
		func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "3")
			http.Error(w, `{"error":"busy"}`, http.StatusTooManyRequests)
		},
		func(w http.ResponseWriter) {
			_, _ = io.WriteString(w, `{"message":{"content":"half"}}`+"\n")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		},
	}
	n := 0
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n++
		if r.Header.Get("Authorization") != "Bearer "+secret {
			t.Error("the provider did not get the key")
		}
		replies[n-1](w)
	}))
	defer provider.Close()
	file := filepath.Join(t.TempDir(), "recording.txtar")
	m := model.Ollama(model.Server{URL: provider.URL, Key: secret,
		Client: &http.Client{Transport: &model.Recorder{File: file}}})
	r := model.Request{Model: "qwen3", Messages: ask("my key is " + anthropicKey + " and " + googleKey),
		System: "say Bearer abcdef0123456789"}
	type outcome struct {
		text string
		code reeve.Code
	}
	play := func(m model.Model) []outcome {
		var all []outcome
		for range replies {
			a, err := m.Answer(t.Context(), r, nil)
			all = append(all, outcome{a.Text(), reeve.CodeOf(err)})
		}
		return all
	}
	real := play(m)
	if real[0].code != "" || real[1].code != reeve.RateLimited || real[2].code != reeve.Unavailable {
		t.Fatalf("the provider gave %v", real)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{secret, "sk-", "AIza", "COOKIE", "acme-inc", "org-0123", "me@example",
		"abcdef0123456789", "Authorization", provider.Listener.Addr().String()} {
		if strings.Contains(string(data), s) {
			t.Errorf("%q is in the recording:\n%s", s, data)
		}
	}
	replay, err := model.OpenReplay(file)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(replay)
	defer server.Close()
	again := play(model.Ollama(model.Server{URL: server.URL, Key: "another"}))
	if again[0].text != "your key is [REDACTED], of org-ID" || again[1] != real[1] || again[2] != real[2] {
		t.Errorf("replayed %v, recorded %v", again, real)
	}
	if err := replay.Err(); err != nil {
		t.Error(err)
	}
}

// TestReplayChecks checks that Replay reports different, additional and missing requests.
func TestReplayChecks(t *testing.T) {
	for name, c := range map[string]struct {
		ask   []string
		wants string
	}{
		"the same": {[]string{`{"a":1}`}, ""}, "in other words": {[]string{`{ "a" : 1 }`}, ""},
		"another": {[]string{`{"a":2}`}, "differs from"},
		"more":    {[]string{`{"a":1}`, `{"a":1}`}, "not in the recording"}, "none": {nil, "0 of 1"},
	} {
		xs, err := model.ParseExchanges(
			[]byte("-- 1 request --\nPOST /v1\nContent-Type: application/json\n\n{\n  \"a\": 1\n}\n-- 1 response " +
				"--\n200\nContent-Type: text/plain\n\nfine\n"))
		if err != nil {
			t.Fatal(err)
		}
		replay := &model.Replay{Exchanges: xs}
		server := httptest.NewServer(replay)
		for _, body := range c.ask {
			res, err := http.Post(server.URL+"/v1", "application/json", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			if err := res.Body.Close(); err != nil {
				t.Error(err)
			}
		}
		server.Close()
		if err := replay.Err(); err == nil && c.wants != "" || err != nil &&
			(c.wants == "" || !strings.Contains(err.Error(), c.wants)) {
			t.Errorf("%s: got %v, want %q", name, err, c.wants)
		}
	}
}

// TestBadRecordings checks the errors of invalid recordings.
func TestBadRecordings(t *testing.T) {
	for _, data := range []string{"", "-- 1 request --\nPOST /\n\n{}\n",
		"-- 1 request --\n\n{}\n-- 1 response --\n200\n\nx\n",
		"-- 1 request --\nPOST /\n\n{}\n-- 1 response --\nfine\n\nx\n"} {
		if _, err := model.ParseExchanges([]byte(data)); reeve.CodeOf(err) != reeve.Validation {
			t.Errorf("%q: %v", data, err)
		}
	}
	if _, err := model.OpenReplay("/no/such/file"); reeve.CodeOf(err) != reeve.NotFound {
		t.Errorf("no file: %v", err)
	}
}

// TestRecordingsAreClean checks that no recording in testdata contains a secret.
func TestRecordingsAreClean(t *testing.T) {
	files, err := filepath.Glob("testdata/*/*.txtar")
	if err != nil || len(files) < 80 {
		t.Fatalf("%d recordings, %v", len(files), err)
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := model.ParseExchanges(data); err != nil {
			t.Errorf("%s: %v", f, err)
		}
		for _, s := range []string{"sk-ant", "sk-proj", "AIza", "Authorization", "X-Api-Key", "Cookie"} {
			if strings.Contains(string(data), s) {
				t.Errorf("%s has %q in it", f, s)
			}
		}
	}
}
