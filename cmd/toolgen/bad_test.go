package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// unpack writes the files of an archive to a new directory and changes to it, so that reported paths are short.
func unpack(t *testing.T, ar *txtar.Archive) {
	t.Helper()
	dir := t.TempDir()
	for _, f := range ar.Files {
		if f.Name == "want" {
			continue
		}
		path := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, path, string(f.Data))
	}
	t.Chdir(dir)
	t.Setenv("GOPROXY", "off")
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// file returns the content of a file of an archive.
func file(t *testing.T, ar *txtar.Archive, name string) string {
	t.Helper()
	for _, f := range ar.Files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	t.Fatalf("the archive has no file %s", name)
	return ""
}

// matches compares a line with the wanted line, whose last star matches any text, such as a message of the go command.
func matches(have, want string) bool {
	if have == want {
		return true
	}
	i := strings.LastIndex(want, "*")
	return i >= 0 && strings.HasPrefix(have, want[:i]) && strings.HasSuffix(have, want[i+1:])
}

func TestO22_WrongFunctionsFailWithTheirLine(t *testing.T) {
	archives, err := filepath.Glob("testdata/bad/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatal("no archives", err)
	}
	for _, path := range archives {
		ar, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			unpack(t, ar)
			before, hadErr := os.ReadFile("tools_gen.go")
			var stderr bytes.Buffer
			if code := run(nil, &stderr); code != 1 {
				t.Errorf("exit code %d, want 1", code)
			}
			have := strings.Split(strings.TrimSpace(stderr.String()), "\n")
			want := strings.Split(strings.TrimSpace(file(t, ar, "want")), "\n")
			for i := range max(len(have), len(want)) {
				var h, w string
				if i < len(have) {
					h = have[i]
				}
				if i < len(want) {
					w = want[i]
				}
				if !matches(h, w) {
					t.Errorf("line %d:\nhave %s\nwant %s", i+1, h, w)
				}
			}
			after, err := os.ReadFile("tools_gen.go")
			if !bytes.Equal(before, after) || (hadErr == nil) != (err == nil) {
				t.Errorf("tools_gen.go was written:\n%s", after)
			}
		})
	}
}

func TestO22_WrongUsageIsRefused(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, args := range [][]string{
		{"-nosuchflag"}, {"a", "b"}, {"-o", "x.txt"}, {"-o", "sub/x.go"}, {"-o", "x_test.go"}, {"-func", "not a name"},
		{"-func", "init"},
	} {
		var stderr bytes.Buffer
		if code := run(args, &stderr); code != 2 || stderr.Len() == 0 {
			t.Errorf("%q: exit code %d, stderr %q", args, code, &stderr)
		}
	}
	var stderr bytes.Buffer
	if code := run([]string{"nowhere"}, &stderr); code != 1 {
		t.Errorf("missing directory: exit code %d", code)
	}
}
