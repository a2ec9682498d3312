package embed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"reeve"
)

const testKey = "sk-test-0123456789abcdefghij"

// server answers as OpenAI does, with vectors of three dimensions that depend on the text.
type server struct {
	*httptest.Server
	mu       sync.Mutex
	requests []openaiRequest
}

func startServer(t *testing.T) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in openaiRequest
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(body, &in)
		}
		if err != nil || r.Method != "POST" || r.URL.Path != "/v1/embeddings" || r.Header.Get("Authorization") != "Bearer "+testKey ||
			r.Header.Get("Content-Type") != "application/json" {
			http.Error(w, "a wrong request", http.StatusBadRequest)
			return
		}
		s.mu.Lock()
		s.requests = append(s.requests, in)
		s.mu.Unlock()
		var data []map[string]any
		for i := len(in.Input) - 1; i >= 0; i-- { // an order of its own
			data = append(data, map[string]any{"object": "embedding", "index": i, "embedding": vectorOf(in.Input[i])})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"object": "list", "data": data, "model": in.Model,
			"usage": map[string]int{"prompt_tokens": 5, "total_tokens": 5}})
	}))
	t.Cleanup(s.Close)
	return s
}

func vectorOf(text string) []float64 { return []float64{float64(len(text)), 3, -4} }

func (s *server) encoder(t *testing.T, c OpenAIConfig) *OpenAI {
	t.Helper()
	c.BaseURL, c.Key, c.Model, c.Client = s.URL+"/v1", testKey, "text-embedding-3-small", s.Client()
	o, err := NewOpenAI(c)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestOpenAIEncodesInBatches(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	o := s.encoder(t, OpenAIConfig{Batch: 4})
	var e Encoder = o
	if e.Model() != "text-embedding-3-small" || e.Dimensions() != 0 {
		t.Errorf("%s, %d", e.Model(), e.Dimensions())
	}
	texts := []string{"", "a", "bc", "<d&e>", "日本", "caf\xe9", "g\x00", strings.Repeat("h", 9), "i", strings.Repeat("語", 1<<20)}
	vectors, err := e.Encode(t.Context(), texts)
	if err != nil {
		t.Fatal(err)
	}
	if len(vectors) != len(texts) || e.Dimensions() != 3 || len(s.requests) != 3 {
		t.Fatalf("%d vectors of %d dimensions in %d requests", len(vectors), e.Dimensions(), len(s.requests))
	}
	var sent []string
	for _, r := range s.requests {
		if len(r.Input) > 4 || r.Format != "float" {
			t.Errorf("%d texts as %s", len(r.Input), r.Format)
		}
		sent = append(sent, r.Input...)
	}
	if sent[0] != " " || len(sent[9]) > maxTextBytes || len(sent[9]) < maxTextBytes-3 {
		t.Errorf("%q and %d bytes were sent", sent[0], len(sent[9]))
	}
	for i, v := range vectors {
		want := vectorOf(sent[i])
		length := math.Hypot(want[0], 5)
		if len(v) != 3 || math.Abs(float64(v[0])-want[0]/length) > 1e-6 || math.Abs(float64(v[2])+4/length) > 1e-6 {
			t.Errorf("text %d has the vector %v, %v expected", i, v, want)
		}
	}
	if v, err := e.Encode(t.Context(), nil); err != nil || len(v) != 0 || len(s.requests) != 3 {
		t.Errorf("%v, %v, %d requests", v, err, len(s.requests))
	}
}

func TestOpenAIRequestsAreOfLimitedSize(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	texts := make([]string, 50)
	for i := range texts {
		texts[i] = strings.Repeat("x", 20<<10)
	}
	if _, err := s.encoder(t, OpenAIConfig{}).Encode(t.Context(), texts); err != nil {
		t.Fatal(err)
	}
	if n := len(s.requests); n != 5 {
		t.Errorf("1 MB was sent in %d requests", n)
	}
}

func TestOpenAIIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	o := s.encoder(t, OpenAIConfig{Batch: 2})
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			v, err := o.Encode(t.Context(), []string{"a", "bb", strings.Repeat("c", i)})
			if err != nil || len(v) != 3 {
				t.Errorf("%v, %v", v, err)
			}
		})
	}
	group.Wait()
}

func TestOpenAIErrors(t *testing.T) {
	t.Parallel()
	vector := `{"index":%d,"embedding":[1,2,3]}`
	one := fmt.Sprintf(vector, 0)
	for name, c := range map[string]struct {
		status  int
		header  string // Retry-After
		body    string
		code    reeve.Code
		after   time.Duration
		message string
	}{
		"401":               {401, "", `{"error":{"message":"Incorrect API key provided: ` + testKey + `","code":"invalid_api_key"}}`, reeve.ModelFailed, 0, "refused the API key"},
		"403":               {403, "", ``, reeve.ModelFailed, 0, "refused the API key"},
		"404":               {404, "", `{"error":{"message":"model not found","code":null}}`, reeve.ModelFailed, 0, "model not found"},
		"429":               {429, "7", `{"error":{"message":"slow down","code":"rate_limit_exceeded"}}`, reeve.RateLimited, 7 * time.Second, "slow down"},
		"429 without time":  {429, "", `{}`, reeve.RateLimited, 0, "too many"},
		"no money":          {429, "7", `{"error":{"message":"quota","code":"insufficient_quota"}}`, reeve.ModelFailed, 0, "payment"},
		"500":               {500, "", `oops`, reeve.Unavailable, 0, "oops"},
		"503":               {503, "2", `{"error":"loading the model"}`, reeve.Unavailable, 2 * time.Second, "loading the model"},
		"400":               {400, "", `{"error":{"message":"too long"}}`, reeve.ModelFailed, 0, "too long"},
		"redirect":          {302, "", ``, reeve.ModelFailed, 0, "redirected"},
		"no JSON":           {200, "", `<html>`, reeve.ModelFailed, 0, "invalid"},
		"nothing":           {200, "", ``, reeve.ModelFailed, 0, "invalid"},
		"another form":      {200, "", `{"embeddings":[[1,2,3]]}`, reeve.ModelFailed, 0, "0 vectors for 2"},
		"null":              {200, "", `null`, reeve.ModelFailed, 0, "0 vectors"},
		"too few":           {200, "", `{"data":[` + one + `]}`, reeve.ModelFailed, 0, "1 vectors for 2"},
		"too many":          {200, "", `{"data":[` + one + `,` + one + `,` + one + `]}`, reeve.ModelFailed, 0, "3 vectors for 2"},
		"twice":             {200, "", `{"data":[` + one + `,` + one + `]}`, reeve.ModelFailed, 0, "twice"},
		"index":             {200, "", `{"data":[` + one + `,` + fmt.Sprintf(vector, 2) + `]}`, reeve.ModelFailed, 0, "out of range"},
		"negative index":    {200, "", `{"data":[` + one + `,` + fmt.Sprintf(vector, -1) + `]}`, reeve.ModelFailed, 0, "out of range"},
		"empty":             {200, "", `{"data":[{"index":0,"embedding":[]},{"index":1}]}`, reeve.ModelFailed, 0, "empty"},
		"different lengths": {200, "", `{"data":[` + one + `,{"index":1,"embedding":[1,2]}]}`, reeve.ModelFailed, 0, "2 dimensions instead of 3"},
		"text for a number": {200, "", `{"data":[{"index":0,"embedding":"AACAPw=="},` + fmt.Sprintf(vector, 1) + `]}`, reeve.ModelFailed, 0, "invalid"},
		"infinite":          {200, "", `{"data":[{"index":0,"embedding":[1e99,1,1]},` + fmt.Sprintf(vector, 1) + `]}`, reeve.ModelFailed, 0, "invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var requests atomic.Int64
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				requests.Add(1)
				if c.header != "" {
					w.Header().Set("Retry-After", c.header)
				}
				w.Header().Set("Location", "/v1/elsewhere")
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			}))
			t.Cleanup(s.Close)
			o, err := NewOpenAI(OpenAIConfig{BaseURL: s.URL + "/v1/", Key: testKey, Model: "m", Client: s.Client()})
			if err != nil {
				t.Fatal(err)
			}
			v, err := o.Encode(t.Context(), []string{"a", "b"})
			e := reeve.AsError(err)
			if v != nil || e.Code != c.code || e.RetryAfter != c.after || !strings.Contains(e.Message, c.message) ||
				strings.Contains(err.Error()+e.Hint, testKey) {
				t.Errorf("%v, %v, hint %q, retry after %v", v, err, e.Hint, e.RetryAfter)
			}
			if requests.Load() != 1 || o.Dimensions() != 0 {
				t.Errorf("%d requests, %d dimensions", requests.Load(), o.Dimensions())
			}
		})
	}
}

func TestOpenAIDimensionsMustNotChange(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	if _, err := s.encoder(t, OpenAIConfig{Dimensions: 3}).Encode(t.Context(), []string{"a"}); err != nil {
		t.Error(err)
	}
	_, err := s.encoder(t, OpenAIConfig{Dimensions: 1536}).Encode(t.Context(), []string{"a"})
	if reeve.CodeOf(err) != reeve.ModelFailed || !strings.Contains(err.Error(), "3 dimensions instead of 1536") {
		t.Error(err)
	}
}

func TestOpenAIEndsWithItsContext(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		arrived <- struct{}{}
		<-r.Context().Done()
	}))
	t.Cleanup(s.Close)
	o, err := NewOpenAI(OpenAIConfig{BaseURL: s.URL, Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-arrived
		cancel()
	}()
	if _, err := o.Encode(ctx, []string{"a"}); reeve.CodeOf(err) != reeve.Canceled || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	go func() { <-arrived }()
	if _, err := o.Encode(ctx, []string{"a"}); reeve.CodeOf(err) != reeve.Timeout {
		t.Error(err)
	}
}

func TestOpenAIConnectionFails(t *testing.T) {
	t.Parallel()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	cut := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, `{"data":[`)
	}))
	t.Cleanup(cut.Close)
	for _, address := range []string{gone.URL, cut.URL} {
		o, err := NewOpenAI(OpenAIConfig{BaseURL: address, Model: "m"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := o.Encode(t.Context(), []string{"a"}); reeve.CodeOf(err) != reeve.Unavailable || strings.Contains(err.Error(), address) {
			t.Error(err)
		}
	}
}

func TestOpenAIConfig(t *testing.T) {
	t.Parallel()
	for _, c := range []OpenAIConfig{{}, {Model: "m", BaseURL: "localhost:11434"}, {Model: "m", BaseURL: "ftp://host"},
		{Model: "m", BaseURL: "http://"}, {Model: "m", BaseURL: "http://a b"}, {Model: "m", Dimensions: -1}} {
		if _, err := NewOpenAI(c); reeve.CodeOf(err) != reeve.Validation {
			t.Errorf("%+v: %v", c, err)
		}
	}
	o, err := NewOpenAI(OpenAIConfig{Model: "m"})
	if err != nil || o.address != "https://api.openai.com/v1/embeddings" || http.DefaultClient.CheckRedirect != nil {
		t.Errorf("%+v, %v", o, err)
	}
}
