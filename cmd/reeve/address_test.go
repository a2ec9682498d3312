package main

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/client"
)

// TestO11_IDPrecedesName checks that an id is found before a category whose name looks like that id.
func TestO11_IDPrecedesName(t *testing.T) {
	list := api.CategoryList{Categories: []reeve.Category{{Record: reeve.Record{ID: "cat_2"}, Name: "cat_1"},
		{Record: reeve.Record{ID: "cat_1"}, Name: "Gym"}}}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Request-Id", "req_1")
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(list)
	}))
	defer s.Close()
	c, err := client.New(client.Config{URL: s.URL, Token: "t", Workspace: "default"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for name, want := range map[string]string{"cat_1": "cat_1", "cat_2": "cat_2", " gym ": "cat_1", "": "",
		"CAT_1": "cat_2"} {
		if got, err := resolveCategory(t.Context(), c, name); err != nil || got != want {
			t.Errorf("%q: got %q, %v, want %q", name, got, err, want)
		}
	}
}

func TestResolveAddress(t *testing.T) {
	dir, other := dataDir(t, "http://127.0.0.1:7410/", "owner-secret\n"),
		dataDir(t, "https://reeve.example", "other-secret")
	wide := dataDir(t, "http://[::]:7410", "wide-secret")
	home := t.TempDir()
	if err := os.Rename(dir, filepath.Join(home, ".reeve")); err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(home, ".reeve")
	for name, tt := range map[string]struct {
		flags address
		env   map[string]string
		want  address
	}{
		"the home directory": {want: address{"http://127.0.0.1:7410", "owner-secret", "default", dir}},
		"the environment's directory": {env: map[string]string{"REEVE_DIR": other},
			want: address{"https://reeve.example", "other-secret", "default", other}},
		"the flag's directory": {flags: address{dir: other}, env: map[string]string{"REEVE_DIR": dir},
			want: address{"https://reeve.example", "other-secret", "default", other}},
		"the environment": {env: map[string]string{"REEVE_URL": "http://e", "REEVE_TOKEN": "t", "REEVE_WORKSPACE": "w"}, want: address{"http://e", "t", "w", dir}},
		"flags before the environment": {flags: address{url: "http://f", token: "ft", workspace: "fw"},
			env:  map[string]string{"REEVE_URL": "http://e", "REEVE_TOKEN": "t", "REEVE_WORKSPACE": "w"},
			want: address{"http://f", "ft", "fw", dir}},
		"its own address": {flags: address{url: "http://127.0.0.1:7410"},
			want: address{"http://127.0.0.1:7410", "owner-secret", "default", dir}},
		"its own address, spelt differently": {flags: address{url: "HTTP://LocalHost:7410/"},
			want: address{"http://127.0.0.1:7410", "owner-secret", "default", dir}},
		"its own address, as a variable": {env: map[string]string{"REEVE_URL": "http://127.0.0.1:7410/"},
			want: address{"http://127.0.0.1:7410", "owner-secret", "default", dir}},
		"its own default port": {flags: address{url: "https://reeve.example:443", dir: other},
			want: address{"https://reeve.example", "other-secret", "default", other}},
		"a server on every address": {flags: address{url: "http://localhost:7410", dir: wide},
			want: address{"http://[::]:7410", "wide-secret", "default", wide}},
		"an explicit token": {flags: address{url: "http://elsewhere.example", token: "ft"},
			want: address{"http://elsewhere.example", "ft", "default", dir}},
	} {
		t.Run(name, func(t *testing.T) {
			a := &app{flags: tt.flags, environment: environment{env: func(k string) string { return tt.env[k] },
				home: func() (string, error) { return home, nil }}}
			got, err := a.resolveAddress()
			if err != nil || got != tt.want {
				t.Errorf("got %+v, %v; want %+v", got, err, tt.want)
			}
		})
	}
}

func TestResolveAddressWithoutHome(t *testing.T) {
	a := &app{environment: environment{env: func(string) string { return "" },
		home: func() (string, error) { return "", errors.New("no home") }}}
	if _, err := a.resolveAddress(); reeve.CodeOf(err) != reeve.Validation {
		t.Errorf("got %v", err)
	}
	a.flags = address{url: "http://a", token: "t"}
	if _, err := a.resolveAddress(); err != nil {
		t.Errorf("with an address: %v", err)
	}
}

// TestOwnerTokenIsSentOnlyToItsServer checks that no command sends the token of a data directory to another address
// than that of the directory's server. The command fails before it makes a request.
func TestOwnerTokenIsSentOnlyToItsServer(t *testing.T) {
	var requests atomic.Int64
	otherServer := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
	defer otherServer.Close()
	own := dataDir(t, "http://127.0.0.1:1", "owner-secret")
	down := dataDir(t, "", "owner-secret")
	if err := os.Remove(filepath.Join(down, "server.json")); err != nil {
		t.Fatal(err)
	}
	ipv6URL := strings.Replace(otherServer.URL, "127.0.0.1", "[::1]", 1) // the same port on IPv6
	_, port, err := net.SplitHostPort(strings.TrimPrefix(otherServer.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		dir, url string
		env      bool
		args     []string
	}{
		"another port":            {dir: own, url: otherServer.URL},
		"set by the variable":     {dir: own, url: otherServer.URL, env: true},
		"another name":            {dir: own, url: strings.Replace(otherServer.URL, "127.0.0.1", "localhost", 1)},
		"the server is down":      {dir: down, url: otherServer.URL},
		"no directory":            {dir: filepath.Join(down, "none"), url: otherServer.URL},
		"another scheme":          {dir: dataDir(t, "https://127.0.0.1:"+port, "owner-secret"), url: otherServer.URL},
		"another loopback":        {dir: dataDir(t, ipv6URL, "owner-secret"), url: otherServer.URL},
		"an address as user name": {dir: own, url: "http://127.0.0.1:1@127.0.0.1:" + port},
		"a damaged address":       {dir: dataDir(t, "http://%zz", "owner-secret"), url: otherServer.URL},
		"a backup":                {dir: own, url: otherServer.URL, args: []string{"backup", filepath.Join(t.TempDir(), "copy.db")}},
		"a completion":            {dir: own, url: otherServer.URL, args: []string{"__complete", "call", ""}},
		"a check-up":              {dir: own, url: otherServer.URL, args: []string{"doctor"}},
	} {
		t.Run(name, func(t *testing.T) {
			args, env := tt.args, map[string]string{"REEVE_DIR": tt.dir}
			if args == nil {
				args = []string{"tools"}
			}
			if env["REEVE_URL"] = tt.url; !tt.env {
				delete(env, "REEVE_URL")
				args = append([]string{"--url", tt.url}, args...)
			}
			var out strings.Builder
			code := run(t.Context(), args, environment{in: strings.NewReader(""), out: &out, err: &out,
				env:  func(k string) string { return env[k] },
				home: func() (string, error) { return "", errors.New("no home") }})
			if requests.Load() != 0 || strings.Contains(out.String(), "owner-secret") {
				t.Errorf("the other server got %d requests; %s", requests.Swap(0), out.String())
			}
			if args[len(args)-1] == "" { // completion reports no errors
				return
			}
			if code != exitFailed || !strings.Contains(out.String(), "no token for http://") ||
				!strings.Contains(out.String(), "hint: set --token or REEVE_TOKEN") {
				t.Errorf("exit code %d: %s", code, out.String())
			}
		})
	}
}

// TestOwnerTokenIsNotSentToStaleAddress checks that the address file of a killed server is not used,
// because another program may listen at the address by now.
func TestOwnerTokenIsNotSentToStaleAddress(t *testing.T) {
	var requests atomic.Int64
	otherServer := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
	defer otherServer.Close()
	dir := staleDataDir(t, otherServer.URL, "owner-secret")
	for want, args := range map[string][]string{"is no longer running": {"tools"},
		"no token for": {"--url", otherServer.URL, "tools"}} {
		var out strings.Builder
		code := run(t.Context(), args, environment{in: strings.NewReader(""), out: &out, err: &out,
			env: func(k string) string { return map[string]string{"REEVE_DIR": dir}[k] }})
		if code != exitFailed || requests.Load() != 0 || !strings.Contains(out.String(), want) {
			t.Errorf("%v: exit code %d, %d requests: %s", args, code, requests.Load(), out.String())
		}
	}
}

// dataDir returns the data directory of a running server.
func dataDir(t *testing.T, url, token string) string {
	t.Helper()
	dir := staleDataDir(t, url, token)
	f, err := os.Open(filepath.Join(dir, "server.json"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	return dir
}

// staleDataDir returns the data directory of a server that was killed.
func staleDataDir(t *testing.T, url, token string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"server.json": `{"url":"` + url + `"}`, "owner.token": token} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
