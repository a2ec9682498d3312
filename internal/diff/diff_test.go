package diff_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"reeve/internal/diff"
)

// randomText returns up to n lines from a small alphabet, so that texts share many lines.
func randomText(r *rand.Rand, n int) string {
	var b strings.Builder
	for range r.IntN(n + 1) {
		b.WriteString([]string{"a\n", "b\n", "c\n", "\n", "dd\n"}[r.IntN(5)])
	}
	if r.IntN(3) == 0 {
		b.WriteString("no newline")
	}
	return b.String()
}

func TestCompareIsExact(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 2000 {
		size := 30
		if i%200 == 0 {
			size = 2000 // more than maxEdits apart
		}
		a, b := diff.SplitLines(randomText(r, size)), diff.SplitLines(randomText(r, size))
		var before, after []string
		for _, e := range diff.Compare(a, b) {
			if e.Op != diff.Insert {
				before = append(before, e.Line)
			}
			if e.Op != diff.Delete {
				after = append(after, e.Line)
			}
		}
		if !slices.Equal(before, a) || !slices.Equal(after, b) {
			t.Fatalf("%q to %q: the edits lead from %q to %q", a, b, before, after)
		}
	}
}

func TestHunksHaveAllChanges(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		a, b := diff.SplitLines(randomText(r, 40)), diff.SplitLines(randomText(r, 40))
		hunks, ok := diff.Hunks(diff.Compare(a, b), math.MaxInt)
		if !ok {
			t.Fatal("hunks are too large for any size")
		}
		var out []string
		at := 0
		for _, h := range hunks {
			out = append(out, a[at:h.OldStart]...)
			if at = h.OldStart; len(out) != h.NewStart {
				t.Fatalf("%s starts after %d lines of the new text", h.Header(), len(out))
			}
			for _, e := range h.Edits {
				if e.Op != diff.Delete {
					out = append(out, e.Line)
				}
			}
			at += h.OldLines
		}
		if out = append(out, a[at:]...); !slices.Equal(out, b) {
			t.Fatalf("%q to %q: the hunks lead to %q", a, b, out)
		}
	}
}

func TestHeader(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ before, after, want string }{
		{"1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n", "@@ -2,7 +2,7 @@"},
		{"", "x", "@@ -0,0 +1 @@"},
		{"x\ny\n", "", "@@ -1,2 +0,0 @@"},
	} {
		hunks, _ := diff.Hunks(diff.Compare(diff.SplitLines(c.before), diff.SplitLines(c.after)), 100)
		if len(hunks) != 1 || hunks[0].Header() != c.want {
			t.Errorf("%q to %q: %+v, want the header %s", c.before, c.after, hunks, c.want)
		}
	}
}

func TestHunksAreBounded(t *testing.T) {
	t.Parallel()
	edits := diff.Compare([]string{"12345\n"}, []string{"67890\n"})
	if _, ok := diff.Hunks(edits, 12); !ok {
		t.Error("12 bytes do not fit into 12 bytes")
	}
	if _, ok := diff.Hunks(edits, 11); ok {
		t.Error("12 bytes fit into 11 bytes")
	}
}
