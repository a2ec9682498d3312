package httpapi

import (
	"context"
	"io"
	"net/http"
	"time"

	"reeve"
)

// readyTimeout is the time after which a store that does not respond counts as not ready.
const readyTimeout = 3 * time.Second

// readinessHandler reports whether the server can serve requests.
type readinessHandler struct {
	errors errorWriter
	held   func(context.Context) bool  // reports whether the server is held; may be nil
	ready  func(context.Context) error // checks the store; may be nil
}

// ServeHTTP serves GET /readyz.
func (h *readinessHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.ready != nil {
		ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
		defer cancel()
		if err := h.ready(ctx); err != nil {
			h.errors.write(w, r, reeve.Errorf(reeve.Unavailable, "not ready: %s", reeve.AsError(err).Message))
			return
		}
	}
	if h.held != nil && h.held(r.Context()) {
		io.WriteString(w, "ready, held: no work resumes until a person runs reeve resume\n")
		return
	}
	io.WriteString(w, "ready\n")
}
