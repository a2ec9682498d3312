package web

import (
	"io"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
)

const (
	page       = "index.html"
	hashedDir  = "assets/" // files whose names contain a hash of their content
	pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; " +
		"font-src 'self'; connect-src 'self'; media-src 'self' blob:; frame-ancestors 'none'; base-uri 'none'; " +
		"form-action 'self'"
)

// contentTypes maps extensions to content types. The table of the operating system may differ between machines.
var contentTypes = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
	".json": "application/json", ".map": "application/json", ".webmanifest": "application/manifest+json",
	".txt": "text/plain; charset=utf-8", ".svg": "image/svg+xml", ".png": "image/png", ".ico": "image/x-icon",
	".jpg": "image/jpeg", ".webp": "image/webp", ".woff2": "font/woff2", ".wasm": "application/wasm",
}

// encodings are the compressed forms of a file, the best first.
var encodings = []struct{ name, suffix string }{{"br", ".br"}, {"gzip", ".gz"}}

// Console serves the files of a build.
type Console struct{ files fs.FS }

// New returns a console of these files.
func New(files fs.FS) *Console { return &Console{files} }

// ServePage responds with the console's page, which shows the view of any path. Browsers must ask for it each time.
func (c *Console) ServePage(w http.ResponseWriter, r *http.Request) {
	if !c.serve(w, r, page) {
		http.NotFound(w, r)
	}
}

// ServeFile responds with the file of the request's path. It returns false if there is none.
func (c *Console) ServeFile(w http.ResponseWriter, r *http.Request) bool {
	name := strings.TrimPrefix(r.URL.Path, "/")
	return fs.ValidPath(name) && contentTypes[path.Ext(name)] != "" && c.serve(w, r, name)
}

// serve responds with a file in the best encoding that the client accepts.
func (c *Console) serve(w http.ResponseWriter, r *http.Request, name string) bool {
	f, size := c.open(name)
	if f == nil {
		return false
	}
	h := w.Header()
	for _, e := range encodings {
		compressed, n := c.open(name + e.suffix)
		if compressed == nil {
			continue
		}
		if h.Set("Vary", "Accept-Encoding"); !accepts(r, e.name) || h.Get("Content-Encoding") != "" {
			_ = compressed.Close()
			continue
		}
		_ = f.Close()
		f, size = compressed, n
		h.Set("Content-Encoding", e.name)
	}
	defer func() { _ = f.Close() }()
	setPolicy(h)
	h.Set("Content-Type", contentTypes[path.Ext(name)])
	h.Set("Content-Length", strconv.FormatInt(size, 10))
	switch {
	case strings.HasPrefix(name, hashedDir):
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	case name == page:
		h.Set("Cache-Control", "no-store")
	default:
		h.Set("Cache-Control", "no-cache")
	}
	if r.Method != http.MethodHead {
		_, _ = io.Copy(w, f) // fails only if the client has disconnected
	}
	return true
}

// open opens a file. It returns nil if there is none.
func (c *Console) open(name string) (fs.File, int64) {
	f, err := c.files.Open(name)
	if err != nil {
		return nil, 0
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		_ = f.Close()
		return nil, 0
	}
	return f, info.Size()
}

// setPolicy sets the headers that keep other origins out of the console, and the console from other origins.
func setPolicy(h http.Header) {
	h.Set("Content-Security-Policy", pagePolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// accepts reports whether the client accepts an encoding.
func accepts(r *http.Request, encoding string) bool {
	for _, part := range strings.Split(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		name, parameter, _ := strings.Cut(strings.TrimSpace(part), ";")
		if !strings.EqualFold(strings.TrimSpace(name), encoding) {
			continue
		}
		weight, hasWeight := strings.CutPrefix(strings.ReplaceAll(parameter, " ", ""), "q=")
		q, err := strconv.ParseFloat(weight, 64)
		return !hasWeight || err == nil && q > 0
	}
	return false
}
