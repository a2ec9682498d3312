package web_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/fstest"

	"reeve/web"
)

// Assets are cached for good, and sent in the best form that the client accepts.
func TestC25_AssetsAreCompressedAndCached(t *testing.T) {
	t.Parallel()
	console := web.New(fstest.MapFS{"index.html": {Data: []byte("page")}, "assets/a-1.js": {Data: []byte("plain")},
		"assets/a-1.js.br": {Data: []byte("brotli")}, "assets/a-1.js.gz": {Data: []byte("zipped")},
		"favicon.svg": {Data: []byte("<svg/>")}, "secret": {Data: []byte("no extension")}})
	get := func(path, accept string) (*httptest.ResponseRecorder, bool) {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, nil)
		r.Header.Set("Accept-Encoding", accept)
		return w, console.ServeFile(w, r)
	}
	for accept, want := range map[string][2]string{"": {"plain", ""}, "gzip, deflate, br": {"brotli", "br"},
		"gzip": {"zipped", "gzip"}, "br;q=0, gzip;q=0.5": {"zipped", "gzip"}, "identity": {"plain", ""}} {
		w, ok := get("/assets/a-1.js", accept)
		if !ok || w.Body.String() != want[0] || w.Header().Get("Content-Encoding") != want[1] ||
			w.Header().Get("Vary") != "Accept-Encoding" ||
			w.Header().Get("Cache-Control") != "public, max-age=31536000, immutable" ||
			w.Header().Get("Content-Type") != "text/javascript; charset=utf-8" {
			t.Errorf("%q: %s %v", accept, w.Body, w.Header())
		}
	}
	if w, ok := get("/favicon.svg", "br"); !ok || w.Header().Get("Cache-Control") != "no-cache" {
		t.Errorf("%v %v", ok, w.Header())
	}
	for _, path := range []string{"/assets/a-1.js.br", "/secret", "/assets", "/missing.js", "/../web.go"} {
		if w, ok := get(path, ""); ok {
			t.Errorf("%s is served: %s", path, w.Body)
		}
	}
}
