package httpapi

import (
	"crypto/subtle"
	"net/http"

	"reeve"
)

// metricsHandler serves the metrics. They count all workspaces together, so reading them takes a server token, or the
// token that the configuration has for it.
type metricsHandler struct {
	auth    *authenticator
	errors  errorWriter
	metrics http.Handler
	token   string // reads the metrics and nothing else; empty: only server tokens do
}

// ServeHTTP writes the metrics.
func (h *metricsHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := h.authorize(r, bearerToken(r)); err != nil {
		h.errors.write(w, r, err)
		return
	}
	h.metrics.ServeHTTP(w, r)
}

func (h *metricsHandler) authorize(r *http.Request, token string) error {
	if h.token != "" && subtle.ConstantTimeCompare([]byte(token), []byte(h.token)) == 1 {
		return nil
	}
	c, err := h.auth.verifyToken(r, token)
	if err == nil && !c.Server {
		err = reeve.Errorf(reeve.Forbidden, "the metrics count all workspaces together, and take a server token").
			Hintf("use the token in owner.token of the data directory, or the server's metrics_token")
	}
	return err
}
