package web_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The committed build is complete: the page names files that exist, each with its compressed forms, and the first
// screen's scripts are small.
func TestC25_C26_BuildIsComplete(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("dist/index.html")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`(?:src|href)="/(assets/[^"]+)"`).FindAllSubmatch(page, -1)
	if len(named) == 0 {
		t.Fatalf("the page names no assets: %s", page)
	}
	total := 0
	for _, m := range named {
		name := string(m[1])
		file := "dist/" + name
		if strings.HasSuffix(name, ".js") {
			if plain := len(readFile(t, file)); plain < 512 { // the build compresses no smaller files
				total += plain
			} else {
				total += len(readFile(t, file+".gz"))
			}
		} else if _, err := os.Stat(file); err != nil {
			t.Errorf("the page names %s: %v", name, err)
		}
	}
	if total == 0 || total > 250_000 {
		t.Errorf("the scripts of the first screen have %d bytes; the limit is 250,000", total)
	}
	err = fs.WalkDir(os.DirFS("dist"), "assets", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".gz") {
			return err
		}
		plain := readFile(t, "dist/"+strings.TrimSuffix(path, ".gz"))
		z, err := gzip.NewReader(bytes.NewReader(readFile(t, "dist/"+path)))
		if err != nil {
			return err
		}
		if got, err := io.ReadAll(z); err != nil || !bytes.Equal(got, plain) {
			t.Errorf("%s is not the compressed form of its file: %v", path, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.FromSlash(name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The tag noconsole leaves the embedded files out of the package, and Embedded then returns nil. Nothing else in the
// package depends on the tag.
func TestC26_TagLeavesTheConsoleOut(t *testing.T) {
	t.Parallel()
	list := func(args ...string) string {
		out, err := exec.Command("go", append([]string{"list", "-f", "{{.GoFiles}} {{len .EmbedFiles}}"},
			args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return strings.TrimSpace(string(out))
	}
	if got := list("-tags", "noconsole", "."); got != "[console.go doc.go noconsole.go] 0" {
		t.Errorf("with the tag: %s", got)
	}
	if got := list("."); !strings.HasPrefix(got, "[console.go doc.go web.go] ") || strings.HasSuffix(got, " 0") {
		t.Errorf("without the tag: %s", got)
	}
}
