package files

import (
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"reeve"
	"reeve/internal/diff"
)

func TestG16_DiffIsExact(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	text := func(n int) string {
		var b strings.Builder
		for range r.IntN(n + 1) {
			b.WriteString([]string{"a\n", "b\n", "c\n", "\n", "dd\n", "-x\n", "@@\n"}[r.IntN(7)])
		}
		if r.IntN(3) == 0 {
			b.WriteString("no newline")
		}
		return b.String()
	}
	for i := range 3000 {
		size := 30
		if i%100 == 0 {
			size = 3000 // too many differences for the shortest diff
		}
		a := text(size)
		b := text(size)
		if i%2 == 0 && len(a) > 4 { // a small change in a long text
			at := r.IntN(len(a))
			b = a[:at] + text(2) + a[at:]
		}
		d, _ := unifiedDiff(&reeve.Invocation{}, "/a", "/b", a, b)
		if got := patch(t, a, d); got != b {
			t.Fatalf("%q to %q: %q\n%s", a, b, got, d)
		}
		if (d == "") != (a == b) {
			t.Fatalf("%q to %q: %q", a, b, d)
		}
	}
	want := "--- /s/a\n+++ /s/a\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n"
	if got, ok := unifiedDiff(&reeve.Invocation{}, "/s/a", "/s/a", "1\n2\n3\n4\n5\n6\n7\n8\n9\n",
		"1\n2\n3\n4\nfive\n6\n7\n8\n9\n"); got != want || !ok {
		t.Errorf("%s", got)
	}
}

// patch applies a unified diff to a, using only the line numbers in its headers.
func patch(t *testing.T, a, d string) string {
	if d == "" {
		return a
	}
	old, at := diff.SplitLines(a), 0
	var out []string
	rows := diff.SplitLines(d)[2:]
	for i := 0; i < len(rows); i++ {
		row := rows[i]
		if strings.HasPrefix(row, "@@ -") {
			spec, _, _ := strings.Cut(strings.TrimPrefix(row, "@@ -"), " ")
			first, n, _ := strings.Cut(spec, ",")
			from, err := strconv.Atoi(first)
			if err != nil {
				t.Fatal(err)
			}
			if n != "0" {
				from--
			}
			out, at = append(out, old[at:from]...), from
			continue
		}
		line := row[1:]
		if i+1 < len(rows) && strings.HasPrefix(rows[i+1], `\ `) {
			line = strings.TrimSuffix(line, "\n")
		}
		switch row[0] {
		case ' ', '-':
			if at >= len(old) || old[at] != line {
				t.Fatalf("line %d is not %q\n%s", at, line, d)
			}
			if at++; row[0] == ' ' {
				out = append(out, line)
			}
		case '+':
			out = append(out, line)
		}
	}
	return strings.Join(append(out, old[at:]...), "")
}

func TestG16_PreviewIsTheExactDiff(t *testing.T) {
	fx := newFixture(t)
	fx.writeFile(fx.hostPath("/shared/a.txt"), "one\ntwo\n")
	show := func(tool string, args m) string {
		p, err := fx.tools[tool].Preview(t.Context(), fx.invocation(args))
		if err != nil {
			t.Fatal(err)
		}
		return p.Change
	}
	if got := show("file_edit", m{"path": "/shared/a.txt", "old": "two", "new": "2"}); got != "--- /shared/a.txt\n+++ /shared/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n" {
		t.Error(got)
	}
	if got := show("file_write", m{"path": "/shared/n", "content": "x"}); got != "--- /dev/null\n+++ /shared/n\n@@ -0,0 +1 @@\n+x\n\\ No "+
		"newline at end of file\n" {
		t.Error(got)
	}
	if got := show("file_write", m{"path": "/shared/n", "content": strings.Repeat("long line\n", 20_000)}); len(
		got) > 1000 || !strings.Contains(got, "200000 bytes") {
		t.Error(len(got))
	}
	fx.writeFile(fx.hostPath("/shared/bin"), "\x00\xff")
	if got := show("file_write", m{"path": "/shared/bin", "content": "x", "overwrite": true}); !strings.Contains(got,
		"before: sha256:") {
		t.Error(got)
	}
	fx.mkdir(fx.hostPath("/shared/d/e"))
	fx.writeFile(fx.hostPath("/shared/d/e/f"), "1234")
	if got := show("file_delete", m{"path": "/shared/d", "recursive": true}); !strings.Contains(got,
		`"e/f" (4 bytes)`) || !strings.Contains(got, "2 entries, 1 files, 4 bytes") {
		t.Error(got)
	}
	if err := os.Chmod(fx.hostPath("/shared/a.txt"), 0o700); err != nil {
		t.Fatal(err)
	}
	fx.mustRun("file_write", m{"path": "/shared/a.txt", "content": "still a program", "overwrite": true})
	if info, err := os.Stat(fx.hostPath("/shared/a.txt")); err != nil || info.Mode().Perm() != 0o700 {
		t.Error(info, err)
	}
}
