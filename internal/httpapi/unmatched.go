package httpapi

import (
	"net/http"
	"path"
	"strings"

	"reeve"
)

// checkPath refuses paths that are not clean, such as /a//b. net/http would redirect them, and a proxy might interpret
// them differently.
func (e errorWriter) checkPath(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p := r.URL.Path; p != "/" && path.Clean(p) != strings.TrimSuffix(p, "/") {
			e.writeNoRoute(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (e errorWriter) writeNoRoute(w http.ResponseWriter, r *http.Request) {
	e.write(w, r, reeve.Errorf(reeve.NotFound, "no route %s %s", r.Method, r.URL.Path).Hintf("see /docs"))
}

// handleUnmatched responds to requests that match no route. It lists the methods that the path supports, if any.
func (e errorWriter) handleUnmatched(mux *http.ServeMux) http.HandlerFunc {
	methods := []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}
	return func(w http.ResponseWriter, r *http.Request) {
		var allowed []string
		for _, m := range methods {
			other := *r
			other.Method = m
			if _, pattern := mux.Handler(&other); pattern != "/" {
				allowed = append(allowed, m)
			}
		}
		if len(allowed) == 0 {
			e.writeNoRoute(w, r)
			return
		}
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		err := reeve.Errorf(reeve.Unsupported, "%s does not support %s", r.URL.Path, r.Method).Hintf("use %s",
			strings.Join(allowed, ", "))
		if isV1(r.URL.Path) {
			p, _ := newV1Problem(&v1CodedError{code: "method_not_allowed", err: err})
			writeV1JSON(w, http.StatusMethodNotAllowed, map[string]any{"error": p})
			return
		}
		p := newProblem(r.Context(), err)
		p.Status, p.Title = http.StatusMethodNotAllowed, http.StatusText(http.StatusMethodNotAllowed)
		p.write(w)
	}
}
