package httpapi

import (
	"net/http"
	"regexp"
	"strings"
)

// Console holds the files of the web console.
type Console interface {
	// ServeFile responds with the file of the request's path. It returns false if there is none.
	ServeFile(w http.ResponseWriter, r *http.Request) bool
	// ServePage responds with the console's page, which shows the view of any path.
	ServePage(w http.ResponseWriter, r *http.Request)
}

// consolePages serves the console at every path that no other route uses.
type consolePages struct {
	console   Console // nil: "/" redirects to /docs
	unmatched http.HandlerFunc
}

// serverPaths matches the paths that never show the console.
var serverPaths = regexp.MustCompile(`^/(api|docs|v1|mcp|openapi[^/]*|healthz|readyz|metrics|assets)(/|$)`)

// socketPaths matches the paths of WebSockets, where a browser may also be sent by hand.
var socketPaths = regexp.MustCompile(`^/(conversations/[^/]+|automations/[^/]+/runs/[^/]+)$`)

// ServeHTTP serves a file of the console, or its page to a browser that opens a path.
func (p *consolePages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	isRead := r.Method == http.MethodGet || r.Method == http.MethodHead
	switch {
	case p.console == nil && isRead && r.URL.Path == "/":
		http.Redirect(w, r, "/docs", http.StatusFound)
	case p.console == nil || !isRead:
		p.unmatched(w, r)
	case r.URL.Path == "/" || isNavigation(r) && !serverPaths.MatchString(r.URL.Path):
		if r.URL.Path == "/" || !p.console.ServeFile(w, r) {
			p.console.ServePage(w, r)
		}
	case !p.console.ServeFile(w, r):
		p.unmatched(w, r)
	}
}

// serveNavigations shows the console to a browser that opens the path of a WebSocket.
func (p *consolePages) serveNavigations(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.console != nil && r.Method == http.MethodGet && r.Header.Get("Upgrade") == "" && isNavigation(r) &&
			socketPaths.MatchString(r.URL.Path) {
			p.console.ServePage(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isNavigation reports whether a browser wants a page.
func isNavigation(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "text/html")
}
