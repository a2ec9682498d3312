package httpapi

import (
	"net/http"
	"slices"
)

// What pages of other origins may ask for, and may read besides the body: all that the API takes and gives. They may
// send whatever headers they like: libraries add their own, which nobody here reads. Browsers send no cookies along, as
// nothing here says that they may: who calls shows a token.
const (
	corsMethods = "GET, POST, PUT, PATCH, DELETE"
	corsExposed   = "Allow, Content-Disposition, Retry-After, X-Request-Id, " + replayHeader
	corsMaxAge  = "600" // seconds that a browser remembers it
)

// handleCORS tells a browser that a page of an allowed origin may read the answer. When the browser only asks whether it may
// send the request, it is answered, and that is all.
func (g *originGuard) handleCORS(w http.ResponseWriter, r *http.Request) (answered bool) {
	origin := r.Header.Get("Origin")
	if !slices.Contains(g.origins, origin) {
		return false
	}
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", origin)
	h.Add("Vary", "Origin")
	h.Set("Access-Control-Expose-Headers", corsExposed)
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	h.Set("Access-Control-Allow-Methods", corsMethods)
	if asked := r.Header.Get("Access-Control-Request-Headers"); asked != "" {
		h.Set("Access-Control-Allow-Headers", asked)
	}
	h.Set("Access-Control-Max-Age", corsMaxAge)
	w.WriteHeader(http.StatusNoContent)
	return true
}
