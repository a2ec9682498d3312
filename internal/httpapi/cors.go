package httpapi

import (
	"net/http"
	"slices"
)

// CORS settings for pages of allowed origins. They may use every method of the API and read every header that it sets.
// They may send any request header, because client libraries add headers of their own. Cookies are not allowed; callers
// authenticate with a token.
const (
	corsMethods = "GET, POST, PUT, PATCH, DELETE"
	corsExposed = "Allow, Content-Disposition, Retry-After, X-Request-Id, " + replayHeader
	corsMaxAge  = "600" // seconds that a browser may cache a preflight response
)

// handleCORS sets the CORS headers for a page of an allowed origin. It responds to a preflight request itself, and then
// returns true.
func (g *originGuard) handleCORS(w http.ResponseWriter, r *http.Request) (handled bool) {
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
	if requested := r.Header.Get("Access-Control-Request-Headers"); requested != "" {
		h.Set("Access-Control-Allow-Headers", requested)
	}
	h.Set("Access-Control-Max-Age", corsMaxAge)
	w.WriteHeader(http.StatusNoContent)
	return true
}
