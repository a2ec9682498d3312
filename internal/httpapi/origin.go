package httpapi

import (
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"reeve"
)

// originGuard refuses requests that a web page of another origin could make a browser send.
type originGuard struct {
	errors  errorWriter
	hosts   []string
	origins []string
}

// check refuses an unknown Host, which protects against DNS rebinding, and an unknown Origin.
func (g *originGuard) check(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !g.isKnownHost(r.Host) {
			g.errors.write(w, r, reeve.Errorf(reeve.Forbidden, "the host %q is not allowed", r.Host).
				Hintf("add it to hosts in reeve.yaml"))
			return
		}
		if o := r.Header.Get("Origin"); o != "" && !g.isKnownOrigin(o, r.Host) {
			g.errors.write(w, r, reeve.Errorf(reeve.Forbidden, "the origin %q is not allowed", o).
				Hintf("add it to origins in reeve.yaml"))
			return
		}
		if g.handleCORS(w, r) {
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (g *originGuard) isKnownHost(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	name = strings.Trim(strings.ToLower(name), "[]")
	isEntry := func(entry string) bool {
		return strings.EqualFold(strings.Trim(entry, "[]"), name) || strings.EqualFold(entry, host)
	}
	if name == "localhost" || slices.ContainsFunc(g.hosts, isEntry) {
		return true
	}
	ip := net.ParseIP(name)
	return ip != nil && ip.IsLoopback()
}

func (g *originGuard) isKnownOrigin(origin, host string) bool {
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" {
		return false // also for the opaque origin "null"
	}
	return strings.EqualFold(u.Host, host) || slices.Contains(g.origins, origin)
}
