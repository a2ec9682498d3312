package web

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"

	"reeve"
)

func TestG10_LookupStatusDecides(t *testing.T) {
	var status atomic.Int32
	var body atomic.Value
	status.Store(200)
	body.Store(`{"data":{"id":"x"}}`)
	base, got := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(int(status.Load()))
		_, _ = io.WriteString(w, body.Load().(string))
	})
	spec := `{"method":"POST","url":"%s/","result":"/data/id","verify":{"method":%q,
		"url":"%s/ops/{operation_id}/{id}","headers":{"X-Api-Key":"${secret:KEY}"}%s}}`
	verify := func(method, more string) (reeve.Outcome, string) {
		t.Helper()
		tool := mustBuild(t, localBuilder(), reeve.Verifiable, fmt.Sprintf(spec, base, method, base, more))
		o, v, err := tool.Verify(t.Context(), call(`{"id":"a/b"}`))
		if err != nil {
			t.Fatal(err)
		}
		noSecret(t, v)
		b, _ := json.Marshal(v)
		return o, string(b)
	}
	if o, v := verify("GET", ""); o != reeve.Applied || v != `"x"` {
		t.Error(o, v)
	}
	r := got.list[0]
	if r.Method != "GET" || r.RequestURI != "/ops/op_1/a%2Fb" || r.Header.Get("X-Api-Key") != theSecret ||
		r.Header.Get("Idempotency-Key") != "" {
		t.Error(r.Method, r.RequestURI, r.Header)
	}
	if o, v := verify("HEAD", ""); o != reeve.Applied || v != `{"status":200,"content_type":"application/json"}` {
		t.Error(o, v)
	}
	body.Store(`{"other":"` + theSecret + `"}`)
	if o, v := verify("GET", ""); o != reeve.Applied || v != `{"other":"[REDACTED]"}` {
		t.Error(o, v) // the status is the proof
	}
	for s, want := range map[int]reeve.Outcome{404: reeve.NotApplied, 201: reeve.CannotTell, 410: reeve.CannotTell,
		401: reeve.CannotTell, 500: reeve.CannotTell, 429: reeve.CannotTell} {
		status.Store(int32(s))
		if o, v := verify("GET", ""); o != want || v != "null" {
			t.Error(s, o, v)
		}
	}
	for s, want := range map[int]reeve.Outcome{202: reeve.Applied, 410: reeve.NotApplied, 200: reeve.CannotTell,
		404: reeve.CannotTell} {
		status.Store(int32(s))
		if o, _ := verify("GET", `,"applied":[202],"not_applied":[410]`); o != want {
			t.Error(s, o)
		}
	}
}

// TestG10_RedirectedLookupCannotTell checks that a redirect is not followed. Its target, such as a login page, proves
// nothing about the operation.
func TestG10_RedirectedLookupCannotTell(t *testing.T) {
	var there atomic.Int32
	base, got := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/elsewhere" {
			w.WriteHeader(int(there.Load()))
			return
		}
		http.Redirect(w, r, "/elsewhere", http.StatusFound)
	})
	for _, c := range []struct {
		there int
		more  string
		want  reeve.Outcome
	}{{200, "", reeve.CannotTell}, {404, "", reeve.CannotTell}, {404, `,"applied":[302]`, reeve.Applied},
		{200, `,"not_applied":[302]`, reeve.NotApplied}} {
		there.Store(int32(c.there))
		tool := mustBuild(t, localBuilder(), reeve.Verifiable,
			fmt.Sprintf(`{"method":"POST","url":"%s/","verify":{"url":"%s/ops/{operation_id}"%s}}`, base, base, c.more))
		if o, _, err := tool.Verify(t.Context(), call(`{}`)); o != c.want || err != nil {
			t.Error(c, o, err)
		}
	}
	for _, r := range got.list {
		if r.RequestURI == "/elsewhere" {
			t.Error("a look-up followed a redirect")
		}
	}
}

func TestG10_NoResponseCannotTell(t *testing.T) {
	base := listen(t, func(c net.Conn) { readRequest(c); reset(c) })
	tool := mustBuild(t, localBuilder(), reeve.Verifiable,
		fmt.Sprintf(`{"method":"POST","url":"%s","verify":{"url":"%s/{operation_id}"}}`, base, base))
	o, v, err := tool.Verify(t.Context(), call(`{}`))
	if o != reeve.CannotTell || v != nil || reeve.CodeOf(err) != reeve.Unavailable {
		t.Error(o, v, err)
	}
}
