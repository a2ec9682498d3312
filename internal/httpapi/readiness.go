package httpapi

import (
	"context"
	"io"
	"net/http"
	"time"

	"reeve"
)

// readyTimeout is how long the store may take to answer before it counts as not being there.
const readyTimeout = 3 * time.Second

// readinessHandler answers whether the server can serve requests.
type readinessHandler struct {
	errors errorWriter
	held   func(context.Context) bool  // may be nil
	ready  func(context.Context) error // may be nil
}

// ServeHTTP answers GET /readyz.
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
		io.WriteString(w, "ready, held: nothing goes on until a person says reeve resume\n")
		return
	}
	io.WriteString(w, "ready\n")
}
