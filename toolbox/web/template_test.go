package web

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"reeve"
)

func TestI10_ParsesTemplates(t *testing.T) {
	for _, s := range []string{
		"http://a.test", "https://a.test/", "https://a.test:8443/v1/users/{id}/x",
		"http://[::1]:80/{id}.json?q={n}&key=${secret:KEY}",
		"http://a.test?q=a{n}b", "http://a.test/a%20b/$x/{id}-{n}", "http://a.test/?a&b=",
	} {
		if _, err := parseTemplate(s); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
	for _, s := range []string{
		"", "a.test", "ftp://a.test", "HTTP://a.test", "//a.test", "http://", "http:///x", "http://{id}/",
		"http://a.{id}.test/", "http://a.test:{n}/",
		"{id}://a.test", "http://u:p@a.test/", "http://a.test@b.test/", "http://${secret:KEY}.test/",
		"http://a.test/${secret:KEY}",
		"http://a.test/#x", "http://a.test/{id}#x", `http://a.test\@b.test/`, "http://a.test/../x",
		"http://a.test/%2e%2E/x", "http://a.test/a%2f../x",
		"http://a.test/./x", "http://a.test/{id", "http://a.test/id}", "http://a.test/{}", "http://a.test/{a b}",
		"http://a.test/{{id}}",
		"http://a.test/?{id}=1", "http://a.test/?=1", "http://a.test/?q=${secret:}", "http://a.test/?q=${secret:a b}",
		"http://a.test/?q=${secret:KEY",
		"http://a.test/a b", "http://a.test/%zz", "http://a.test/\n", "http://a.test:0/", "http://a.test:99999/",
		"http://a_\u00e9.test/", "http://a.test%2eb/",
	} {
		if _, err := parseTemplate(s); err == nil {
			t.Errorf("%q was accepted", s)
		}
	}
}

func TestI10_ArgumentsCannotChangeTheURL(t *testing.T) {
	tpl, err := parseTemplate("https://a.test/users/{id}/file-{n}.json?q={q}&fixed=1")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ id, n, q, want string }{
		{`"1"`, `2`, `"x"`, "https://a.test/users/1/file-2.json?q=x&fixed=1"},
		{`"a/b?c#d"`, `true`, `"a&b=c#d"`, "https://a.test/users/a%2Fb%3Fc%23d/file-true.json?q=a%26b%3Dc%23d&fixed=1"},
		{`"%2e%2e"`, `1.5`, `""`, "https://a.test/users/%252e%252e/file-1.5.json?q=&fixed=1"},
		{`"@evil.test"`, `"../x"`, `null`, "https://a.test/users/%40evil.test/file-..%2Fx.json?fixed=1"},
		{`"@evil.test:80"`, `"é"`, `"é +"`,
			"https://a.test/users/%40evil.test%3A80/file-%C3%A9.json?q=%C3%A9%20%2B&fixed=1"},
		{`"x"`, `".."`, `null`, "https://a.test/users/x/file-...json?fixed=1"},
		{`".."`, `1`, `1`, ""}, {`"."`, `1`, `1`, ""}, {`"a/../b"`, `1`, `1`, ""}, {`"..\\b"`, `1`, `1`, ""},
		{`""`, `1`, `1`, ""},
		{`null`, `1`, `1`, ""}, {`{}`, `1`, `1`, ""}, {`[1]`, `1`, `1`, ""}, {`"x\u0000"`, `1`, `1`, ""},
		{`"x\r\nHost: y"`, `1`, `1`, ""},
		{`"x"`, `1`, `[1]`, ""}, {`"x"`, `1`, `{}`, ""},
	} {
		u, err := tpl.expand(arguments{"id": json.RawMessage(c.id), "n": json.RawMessage(c.n),
			"q": json.RawMessage(c.q)}, nil, nil)
		if c.want == "" {
			if reeve.CodeOf(err) != reeve.Validation || len(reeve.AsError(err).Fields) != 1 {
				t.Errorf("%+v: got %v, %v", c, u, err)
			}
		} else if err != nil || u.String() != c.want {
			t.Errorf("%+v: got %v, %v", c, u, err)
		}
	}
}

func FuzzExpand(f *testing.F) {
	for _, s := range []string{"x", "..", "../..", "a/../b", "//evil.test", "@evil.test", "?a=b", "#x", "a&b=c",
		"%2e%2e%2f", "\\..\\", "\x00", "é", "{id}", "${secret:KEY}", "[::1]", ":80"} {
		f.Add(s, s)
	}
	tpl, err := parseTemplate("https://api.test:8443/v1/{a}/x-{b}.json/{a}{b}?one={a}&two=k{b}&key=${secret:KEY}&last")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		ja, _ := json.Marshal(a)
		jb, _ := json.Marshal(b)
		var va, vb string // as decoded from JSON, which replaces bytes that are not UTF-8 by U+FFFD
		_ = json.Unmarshal(ja, &va)
		_ = json.Unmarshal(jb, &vb)
		u, err := tpl.expand(arguments{"a": ja, "b": jb}, map[string]string{"KEY": b}, nil)
		if err != nil {
			if reeve.CodeOf(err) != reeve.Validation {
				t.Fatalf("%q %q: %v", a, b, err)
			}
			return
		}
		again, err := url.Parse(u.String())
		if err != nil {
			t.Fatal(err)
		}
		if again.Scheme != "https" || again.Host != "api.test:8443" || again.User != nil || again.Fragment != "" ||
			strings.Contains(u.String(), "#") {
			t.Fatalf("%q %q changed the origin: %s", a, b, u)
		}
		raw := strings.Split(again.EscapedPath(), "/")
		want := []string{"", "v1", va, "x-" + vb + ".json", va + vb}
		if len(raw) != len(want) {
			t.Fatalf("%q %q changed the path: %s", a, b, u)
		}
		for i, s := range raw {
			if d, err := url.PathUnescape(s); err != nil || d != want[i] {
				t.Fatalf("segment %d is %q, want %q", i, d, want[i])
			}
		}
		for _, s := range strings.FieldsFunc(again.Path, func(r rune) bool { return r == '/' || r == '\\' }) {
			if s == "." || s == ".." {
				t.Fatalf("%q %q adds a dot segment: %s", a, b, u)
			}
		}
		if clean := again.JoinPath(); clean.Path != again.Path {
			t.Fatalf("cleaning changes the path: %q and %q", clean.Path, again.Path)
		}
		q, err := url.ParseQuery(again.RawQuery)
		if err != nil || len(q) != 4 || len(q["one"]) != 1 || q.Get("one") != va || q.Get("two") != "k"+vb ||
			q.Get("key") != b || q.Get("last") != "" {
			t.Fatalf("%q %q changed the query: %s", a, b, u)
		}
	})
}
