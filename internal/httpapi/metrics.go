package httpapi

import (
	"crypto/subtle"
	"net/http"

	"reeve"
)

// metricsHandler serves the metrics. They cover all workspaces, so a caller needs a server token or the configured
// metrics token.
type metricsHandler struct {
	auth    *authenticator
	errors  errorWriter
	metrics http.Handler
	token   string // may read the metrics and nothing else. Default: only server tokens may read them
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
	c, err := h.auth.verify(r, secret{reeve.BearerToken, token})
	if err == nil && !c.Server {
		err = reeve.Errorf(reeve.Forbidden, "the metrics cover all workspaces and need a server token").
			Hintf("use the token in owner.token of the server's data directory, or the configured metrics_token")
	}
	return err
}
