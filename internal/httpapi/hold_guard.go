package httpapi

import (
	"net/http"
	"regexp"
	"strings"

	"reeve"
	"reeve/internal/store"
)

// allowedWhileHeld matches the routes that may be posted to while the server is held: resume, stop, sign-in and calls.
// The gate refuses calls that change something.
var allowedWhileHeld = regexp.MustCompile(`^/api/(resume|stop|session$|console/links$|agents/[^/]+/calls(/|$))`)

// holdGuard refuses requests that change something while the server is held.
type holdGuard struct {
	db     *store.DB
	errors errorWriter
}

// check refuses a change while the server is held. It runs before an Idempotency-Key is claimed.
func (g *holdGuard) check(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		isRead := r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions
		if isRead || !strings.HasPrefix(r.URL.Path, "/api/") || allowedWhileHeld.MatchString(r.URL.Path) {
			next.ServeHTTP(w, r)
			return
		}
		var hold *reeve.Hold
		err := g.db.View(r.Context(), func(snap *store.Snap) (err error) {
			hold, err = snap.System().Hold(r.Context())
			return err
		})
		if err == nil && hold != nil {
			err = hold.Err()
		}
		if err != nil {
			g.errors.write(w, r, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}
