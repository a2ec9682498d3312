package web

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"reeve"
)

// TestFetch_TimeoutAndTruncation checks the errors for a server that never responds, that stops in the middle of the
// body, that is unreachable and that is not allowed.
func TestFetch_TimeoutAndTruncation(t *testing.T) {
	t.Parallel()
	done := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/half" {
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("half"))
			return
		}
		<-done
	}))
	defer s.Close()
	defer close(done)
	f := NewFetcher(Guard{Allow: []string{strings.TrimPrefix(s.URL, "http://"), "127.0.0.1:1"}})
	for address, want := range map[string]reeve.Code{s.URL + "/": reeve.Timeout, s.URL + "/half": reeve.Unavailable,
		"http://127.0.0.1:1/": reeve.Unavailable, "http://127.0.0.1:2/": reeve.Denied} {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		_, err := f.Fetch(ctx, address, 1000)
		cancel()
		if reeve.CodeOf(err) != want || strings.Contains(err.Error(), "127.0.0.1") {
			t.Errorf("%s: %v, want %s", address, err, want)
		}
	}
}
