package web

import (
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"reeve"
)

func TestGuard_PrivateAddressesAreNotPublic(t *testing.T) {
	for _, s := range []string{
		"0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.255.255.254",
		"168.63.129.16",
		"169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.0.192", "192.0.2.1", "192.88.99.1",
		"192.168.1.1",
		"198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.250", "240.0.0.1",
		"255.255.255.255", "::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254",
		"64:ff9b::127.0.0.1", "64:ff9b::8.8.8.8", "64:ff9b:1::1", "100::1", "2001::1", "2001:2::1", "2001:db8::1",
		"2002:7f00:1::",
		"3fff::1", "5f00::1", "fc00::1", "fd00:ec2::254", "fd12::1", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1",
	} {
		if isPublic(canonicalAddr(netip.MustParseAddr(s))) {
			t.Errorf("%s counts as public", s)
		}
	}
	for _, s := range []string{"1.1.1.1", "8.8.8.8", "172.32.0.1", "100.128.0.1", "198.20.0.1", "::ffff:8.8.8.8",
		"2606:4700::1111", "2a00:1450::1"} {
		if !isPublic(canonicalAddr(netip.MustParseAddr(s))) {
			t.Errorf("%s does not count as public", s)
		}
	}
}

func get(g Guard, u string) (string, error) {
	resp, err := g.Client().Get(u)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return string(b), err
}

func TestGuard_NoSpellingReachesLoopback(t *testing.T) {
	base, got := serve(t, reply(200, "text/plain", "inside"))
	port := base[strings.LastIndexByte(base, ':'):]
	g := Guard{resolver: newResolver(t, func(n string) []string {
		return map[string][]string{"in.test": {"127.0.0.1", "::1"}, "localhost": {"127.0.0.1"}}[strings.ToLower(n)]
	})}
	for _, host := range []string{
		"127.0.0.1", "127.0.0.1.", "127.1", "2130706433", "0177.0.0.1", "0x7f.0.0.1", "0x7f000001", "017700000001",
		"0.0.0.0", "0",
		"localhost", "LOCALHOST", "localhost.", "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]",
		"[::127.0.0.1]",
		"[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[fe80::1%25lo]", "[0:0:0:0:0:0:0:1]", "in.test", "IN.test.",
	} {
		_, err := get(g, "http://"+host+port+"/")
		e := wantCode(t, err, reeve.Denied)
		if strings.Contains(e.Error(), "127.0.0.1") || !strings.Contains(e.Message, "policy") {
			t.Errorf("%s: the error is %q", host, e)
		}
	}
	if got.count() != 0 {
		t.Fatalf("the server received %d requests", got.count())
	}
}

func TestGuard_OnlyHTTP(t *testing.T) {
	for _, u := range []string{"file:///etc/passwd", "ftp://127.0.0.1/", "gopher://127.0.0.1/", "unix:///run/x"} {
		_, err := get(Guard{Allow: []string{"0.0.0.0/0"}}, u)
		wantCode(t, err, reeve.Denied)
	}
}

func TestGuard_Rebinding(t *testing.T) {
	base, got := serve(t, reply(200, "text/plain", "inside"))
	port := base[strings.LastIndexByte(base, ':'):]
	var n atomic.Int32
	g := Guard{Allow: []string{"api.test" + port}, resolver: newResolver(t, func(string) []string {
		if n.Load() == 0 {
			return []string{"127.0.0.1"}
		}
		return []string{"169.254.169.254", "0.0.0.0", "fe80::1"}
	})}
	if body, err := get(g, "http://api.test"+port); err != nil || body != "inside" {
		t.Fatal(body, err)
	}
	n.Store(1)
	_, err := get(g, "http://api.test"+port)
	wantCode(t, err, reeve.Denied) // an allowed name opens private addresses, not link-local ones
	_, err = get(g, "http://other.test"+port)
	wantCode(t, err, reeve.Denied)
	if got.count() != 1 {
		t.Fatalf("%d requests", got.count())
	}
}

func TestGuard_AllowlistOpensOnlyItsEntries(t *testing.T) {
	base, _ := serve(t, reply(200, "text/plain", "inside"))
	other, _ := serve(t, reply(200, "text/plain", "other"))
	port, otherPort := base[strings.LastIndexByte(base, ':'):], other[strings.LastIndexByte(other, ':'):]
	dns := newResolver(t, func(string) []string { return []string{"127.0.0.1"} })
	for _, c := range []struct {
		allow, url string
		ok         bool
	}{
		{"api.test", "http://api.test" + port, true},
		{"API.test.", "http://api.TEST." + port, true},
		{"api.test", "http://api.test" + otherPort, true},
		{"api.test" + port, "http://api.test" + port, true},
		{"api.test" + port, "http://api.test" + otherPort, false},
		{"api.test" + port, "http://x.api.test" + port, false},
		{"api.test", "http://127.0.0.1" + port, false},
		{"127.0.0.1" + port, "http://127.0.0.1" + port, true},
		{"127.0.0.1" + port, "http://[::ffff:127.0.0.1]" + port, true},
		{"127.0.0.1" + port, "http://127.0.0.1" + otherPort, false},
		{"127.0.0.1" + port, "http://api.test" + port, false}, // the address was allowed, not every name for it
		{"127.0.0.0/8", "http://api.test" + port, true},
		{"10.0.0.0/8", "http://api.test" + port, false},
		{"127.0.0.1", "http://2130706433" + port, false},
		{"::1", "http://127.0.0.1" + port, false},
		{"127.0.0.1:99999", "http://127.0.0.1" + port, false},
		{"*", "http://127.0.0.1" + port, false},
	} {
		_, err := get(Guard{Allow: []string{c.allow}, resolver: dns}, c.url)
		if c.ok && err != nil {
			t.Errorf("allow %s, %s: %v", c.allow, c.url, err)
		} else if !c.ok && reeve.CodeOf(err) != reeve.Denied {
			t.Errorf("allow %s, %s: got %v, want DENIED", c.allow, c.url, err)
		}
	}
}

func TestGuard_AllowlistIsValidated(t *testing.T) {
	ok := Guard{Allow: []string{"a.test", "a.test:80", "10.0.0.1", "10.0.0.1:80", "[::1]:80", "::1", "[::1]",
		"10.0.0.0/8", "fd00::/8"}}
	if err := ok.Validate(); err != nil {
		t.Fatal(err)
	}
	wrong := Guard{Allow: []string{"", "*", "a b", "a.test:0", "a.test:http", "10.0.0.0/99", "::ffff:127.0.0.0/104",
		"http://a.test", "0x7f.1"}}
	if e := wantCode(t, wrong.Validate(), reeve.Validation); len(e.Fields) != len(wrong.Allow) {
		t.Fatalf("%+v", e.Fields)
	}
}

func TestGuard_RedirectsAreGuarded(t *testing.T) {
	inside, got := serve(t, reply(200, "text/plain", "inside"))
	var target atomic.Value
	outside, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, target.Load().(string), http.StatusFound)
	})
	g := Guard{Allow: []string{strings.TrimPrefix(outside, "http://")}}
	for _, u := range []string{inside, "http://169.254.169.254/", "http://[::1]/", "file:///etc/passwd",
		strings.Replace(inside, "127.0.0.1", "localhost", 1)} {
		target.Store(u)
		_, err := get(g, outside)
		wantCode(t, err, reeve.Denied)
	}
	if got.count() != 0 {
		t.Fatal("a redirect reached a private address")
	}
}

func TestGuard_RedirectsEnd(t *testing.T) {
	var hops atomic.Int32
	base, got := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if hops.Add(-1) >= 0 {
			http.Redirect(w, r, "/again", http.StatusFound)
		}
	})
	g := Guard{Allow: []string{"127.0.0.1"}}
	hops.Store(5)
	if _, err := get(g, base); err != nil || got.count() != 6 {
		t.Fatal(err, got.count())
	}
	hops.Store(6)
	_, err := get(g, base)
	wantCode(t, err, reeve.ToolFailed)
}

func TestGuard_CredentialsStayAtOrigin(t *testing.T) {
	var home, away atomic.Value
	foreign, atForeign := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/back" {
			http.Redirect(w, r, home.Load().(string)+"/end", http.StatusFound)
		}
	})
	base, atHome := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/same":
			http.Redirect(w, r, "/end", http.StatusFound)
		case "/away":
			http.Redirect(w, r, away.Load().(string), http.StatusFound)
		}
	})
	home.Store(base)
	send := func(path string) {
		r, _ := http.NewRequest("GET", base+path+"?key="+theSecret, nil)
		for _, h := range []string{"Authorization", "Cookie", "X-Custom", "Accept"} {
			r.Header.Set(h, "v")
		}
		resp, err := Guard{Allow: []string{"127.0.0.1"}}.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
	}
	send("/same")
	if last := atHome.list[len(atHome.list)-1]; last.Header.Get("Authorization") != "v" ||
		last.Header.Get("X-Custom") != "v" || last.Header.Get("Referer") != "" {
		t.Fatalf("same origin: %v", last.Header)
	}
	away.Store(foreign + "/x")
	send("/away")
	away.Store(foreign + "/back")
	send("/away")
	for _, r := range append(slices.Clone(atForeign.list), atHome.list[len(atHome.list)-1]) {
		for _, h := range []string{"Authorization", "Cookie", "X-Custom", "Referer"} {
			if r.Header.Get(h) != "" {
				t.Errorf("%s: header %s was sent", r.URL, h)
			}
		}
		if r.Header.Get("Accept") != "v" {
			t.Error("header Accept was not sent")
		}
	}
	if len(atForeign.list) != 2 {
		t.Fatal("the foreign server was not reached")
	}
}

func TestGuard_OtherMethodsAreNotRedirected(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		base, got := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/again", status) })
		resp, err := Guard{Allow: []string{"127.0.0.1"}}.Client().PostForm(base, url.Values{"a": {"b"}})
		if err != nil || resp.StatusCode != status || got.count() != 1 {
			t.Fatal(err, got.count())
		}
		_ = resp.Body.Close()
	}
}

func TestGuard_NoProxy(t *testing.T) {
	// net/http reads the environment once per process, so a test cannot set a proxy and see it ignored.
	if tr, ok := (Guard{}).Transport().(schemeFilter).next.(*http.Transport); !ok || tr.Proxy != nil {
		t.Fatal("the transport has a proxy")
	}
}

func TestGuard_ForbiddenInAnyZone(t *testing.T) {
	for _, s := range []string{"fe80::1%eth0", "fe80::1", "::ffff:169.254.169.254", "169.254.169.254", "fd00:ec2::254",
		"100.100.100.200", "0.0.0.0", "::"} {
		if !isForbidden(canonicalAddr(netip.MustParseAddr(s))) {
			t.Errorf("an allowed name may resolve to %s", s)
		}
	}
	for _, s := range []string{"127.0.0.1", "::1", "10.0.0.1", "fd12::1"} {
		if isForbidden(canonicalAddr(netip.MustParseAddr(s))) {
			t.Errorf("no allowed name may resolve to %s", s)
		}
	}
}
