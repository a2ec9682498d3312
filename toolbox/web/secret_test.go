package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"reeve"
)

// noSecret fails the test if a secret occurs in v in any encoding.
func noSecret(t *testing.T, v any) {
	t.Helper()
	s := fmt.Sprintf("%v %+v %#v", v, v, v)
	if e, ok := v.(error); ok {
		for ; e != nil; e = errors.Unwrap(e) {
			s += fmt.Sprintf("%v %+v", e, e)
		}
	}
	b, _ := json.Marshal(v)
	s += string(b)
	if raw, ok := v.(json.RawMessage); ok {
		s += string(raw)
	}
	if strings.Contains(s, "s3cr3t") {
		t.Errorf("a secret is revealed: %s", s)
	}
}

func TestG21_SecretsAreSentAndRedacted(t *testing.T) {
	for name, echo := range map[string]func(r *http.Request) (int, string, string){
		"text": func(r *http.Request) (int, string, string) {
			return 200, "text/plain", "you said " + r.Header.Get("X-Api-Key")
		},
		"json": func(*http.Request) (int, string, string) {
			return 200, "application/json", `{"s3cr3t/+value":["s3cr3t\/\u002bvalue"]}`
		},
		"url": func(r *http.Request) (int, string, string) { return 200, "text/plain", r.RequestURI },
		"form": func(*http.Request) (int, string, string) {
			return 200, "text/plain", url.QueryEscape(theSecret)
		},
		"error": func(r *http.Request) (int, string, string) {
			return 400, "text/plain", r.Header.Get("X-Api-Key")
		},
		"server error": func(r *http.Request) (int, string, string) { return 500, "text/html", r.URL.RawQuery },
		"type":         func(*http.Request) (int, string, string) { return 200, "image/" + theSecret, "\xff" },
		"over": func(*http.Request) (int, string, string) {
			return 200, "text/plain", strings.Repeat("x", 90) + theSecret + "tail"
		},
		"over, escaped": func(*http.Request) (int, string, string) {
			return 200, "application/json", `"` + strings.Repeat("x", 70) + `s3cr3t\/\u002bvalue` +
				strings.Repeat("x", 90)
		},
		"over, in an escape": func(*http.Request) (int, string, string) {
			return 200, "application/json", `"` + strings.Repeat("x", 88) + `s3cr3t\/\u002bvalue` +
				strings.Repeat("x", 90)
		},
		"html":     func(*http.Request) (int, string, string) { return 404, "text/html", `<p>s3cr3t&#x2F;&#43;value` },
		"redirect": func(r *http.Request) (int, string, string) { return 302, "text/plain", r.RequestURI },
	} {
		base, got := serve(t, func(w http.ResponseWriter, r *http.Request) {
			status, typ, body := echo(r)
			w.Header().Set("Content-Type", typ)
			w.Header().Set("Location", "http://169.254.169.254/?"+r.URL.RawQuery)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		})
		spec := fmt.Sprintf(`{"method":"GET","url":"%s/?key=a${secret:KEY}",
			"headers":{"X-Api-Key":"${secret:KEY}"},"max_response_bytes":100}`, base)
		for _, effect := range []reeve.Effect{reeve.Read, reeve.Unsafe} {
			v, err := run(t, effect, spec, `{}`)
			noSecret(t, v)
			noSecret(t, err)
			r := got.list[got.count()-1]
			if r.Header.Get("X-Api-Key") != theSecret || r.URL.Query().Get("key") != "a"+theSecret {
				t.Errorf("%s: the secret was not sent: %v %s", name, r.Header, r.URL)
			}
		}
		_, err := run(t, reeve.Unsafe, strings.Replace(spec, `"url"`, `"result":"/none","url"`, 1), `{}`)
		noSecret(t, err)
	}
}

func TestG21_ResponsesWithoutSecretsAreUnchanged(t *testing.T) {
	base, _ := serve(t, reply(200, "application/json", `{"b":1.0,"a":12345678901234567890}`))
	v, err := run(t, reeve.Read, fmt.Sprintf(`{"method":"GET","url":"%s","headers":{"X-A":"${secret:KEY}"}}`, base),
		`{}`)
	if raw, _ := v.(json.RawMessage); err != nil || string(raw) != `{"b":1.0,"a":12345678901234567890}` {
		t.Errorf("%s %v", v, err)
	}
}

func TestG06_UnusableSecrets(t *testing.T) {
	base, got := serve(t, reply(200, "text/plain", ""))
	for name, c := range map[string]struct {
		value string
		err   error
		code  reeve.Code
	}{
		"not set":  {"", reeve.Errorf(reeve.NotFound, "x"), reeve.Unauthenticated},
		"empty":    {"\n", nil, reeve.Unauthenticated},
		"short":    {"abc", nil, reeve.Unauthenticated},
		"newline":  {"s3cr3t\r\nX-Evil: 1", nil, reeve.Unauthenticated},
		"down":     {"s3cr3t", errors.New("vault said s3cr3t"), reeve.Unavailable},
		"canceled": {"", context.Canceled, reeve.Canceled},
	} {
		b := localBuilder()
		b.Secrets = func(context.Context, string, string) (string, error) { return c.value, c.err }
		_, err := mustBuild(t, b, reeve.Unsafe,
			fmt.Sprintf(`{"method":"POST","url":"%s","headers":{"X-A":"${secret:KEY}"}}`, base)).
			Handler(t.Context(), call(`{}`))
		noSecret(t, wantCode(t, err, c.code))
		if got.count() != 0 {
			t.Fatalf("%s: the request was sent", name)
		}
	}
}

func TestG06_ErrorsNameNoHost(t *testing.T) {
	b := localBuilder()
	b.Guard.resolver = newResolver(t, func(string) []string { return nil })
	_, err := mustBuild(t, b, reeve.Read, `{"method":"GET","url":"http://internal-api.test/v1"}`).
		Handler(t.Context(), call(`{}`))
	if e := wantCode(t, err, reeve.Unavailable); strings.Contains(e.Error(), "internal-api") {
		t.Error(e)
	}
}
