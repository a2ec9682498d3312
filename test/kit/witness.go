package kit

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"sync"
	"testing"
)

// Witness is an HTTP server that counts effects by idempotency key and fails as a test wants.
type Witness struct {
	*httptest.Server
	mu      sync.Mutex
	effects map[string]int // by key: how often it was really done
	seen    []string       // the key of every request
	// Before decides what happens instead of the effect, after what happens instead of the answer; nil means nothing
	// special.
	Before, After func(n int, w http.ResponseWriter, r *http.Request) (handled bool)
	Reached       chan string // every key, once its effect is done
}

// NewWitness starts a witness that runs until the test ends.
func NewWitness(t testing.TB) *Witness {
	w := &Witness{effects: map[string]int{}, Reached: make(chan string, 1000)}
	w.Server = httptest.NewServer(http.HandlerFunc(w.serve))
	t.Cleanup(func() { w.CloseClientConnections(); w.Close() })
	return w
}

// CountRequests returns the number of requests with a key.
func (w *Witness) CountRequests(key string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, k := range w.seen {
		if k == key {
			n++
		}
	}
	return n
}

// serve handles a request: GET looks up an operation, everything else is an effect.
func (w *Witness) serve(out http.ResponseWriter, r *http.Request) {
	key := r.Header.Get("Idempotency-Key")
	_, _ = io.Copy(io.Discard, r.Body) // or the server would not see that the other side hangs up
	if r.Method == http.MethodGet {    // a look-up
		w.mu.Lock()
		n := w.effects[filepath.Base(r.URL.Path)]
		w.mu.Unlock()
		if n == 0 {
			out.WriteHeader(http.StatusNotFound)
			return
		}
		fmt.Fprintf(out, "found %d", n)
		return
	}
	w.mu.Lock()
	w.seen = append(w.seen, key)
	n := len(w.seen)
	w.mu.Unlock()
	if w.Before != nil && w.Before(n, out, r) {
		return
	}
	w.mu.Lock()
	if w.effects[key] == 0 {
		w.effects[key] = 1
	}
	w.mu.Unlock()
	w.Reached <- key
	if w.After != nil && w.After(n, out, r) {
		return
	}
	fmt.Fprint(out, "done")
}

// Count returns the number of effects and of requests.
func (w *Witness) Count() (effects, requests int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range w.effects {
		effects += n
	}
	return effects, len(w.seen)
}

// Keys returns the idempotency key of every request, in order.
func (w *Witness) Keys() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.seen)
}

// Forget removes all effects, like a server that lost its data.
func (w *Witness) Forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.effects)
}

// CloseConnection closes the connection of a response without an answer.
func CloseConnection(w http.ResponseWriter) {
	if c, _, err := w.(http.Hijacker).Hijack(); err == nil {
		_ = c.Close()
	}
}
