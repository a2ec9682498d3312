package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"reeve"
)

func TestFind(t *testing.T) {
	dir, other := dataDir(t, "http://127.0.0.1:7410/", "owner-secret\n"), dataDir(t, "https://reeve.example", "other-secret")
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
		"the home directory":          {want: address{"http://127.0.0.1:7410", "owner-secret", "default", dir}},
		"the environment's directory": {env: map[string]string{"REEVE_DIR": other}, want: address{"https://reeve.example", "other-secret", "default", other}},
		"the flag's directory":        {flags: address{dir: other}, env: map[string]string{"REEVE_DIR": dir}, want: address{"https://reeve.example", "other-secret", "default", other}},
		"the environment":             {env: map[string]string{"REEVE_URL": "http://e", "REEVE_TOKEN": "t", "REEVE_WORKSPACE": "w"}, want: address{"http://e", "t", "w", dir}},
		"flags before the environment": {flags: address{url: "http://f", token: "ft", workspace: "fw"},
			env: map[string]string{"REEVE_URL": "http://e", "REEVE_TOKEN": "t", "REEVE_WORKSPACE": "w"}, want: address{"http://f", "ft", "fw", dir}},
		"the owner's token stays on this machine": {flags: address{url: "http://elsewhere.example"}, want: address{"http://elsewhere.example", "", "default", dir}},
		"another port of this machine":            {flags: address{url: "http://localhost:9"}, want: address{"http://localhost:9", "owner-secret", "default", dir}},
	} {
		t.Run(name, func(t *testing.T) {
			a := &app{flags: tt.flags, surroundings: surroundings{env: func(k string) string { return tt.env[k] }, home: func() (string, error) { return home, nil }}}
			got, err := a.find()
			if err != nil || got != tt.want {
				t.Errorf("got %+v, %v; want %+v", got, err, tt.want)
			}
		})
	}
}

func TestFindWithoutHome(t *testing.T) {
	a := &app{surroundings: surroundings{env: func(string) string { return "" }, home: func() (string, error) { return "", errors.New("no home") }}}
	if _, err := a.find(); reeve.CodeOf(err) != reeve.Validation {
		t.Errorf("got %v", err)
	}
	a.flags = address{url: "http://a", token: "t"}
	if _, err := a.find(); err != nil {
		t.Errorf("with an address: %v", err)
	}
}

func dataDir(t *testing.T, url, token string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"server.json": `{"url":"` + url + `"}`, "owner.token": token} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
