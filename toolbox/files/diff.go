package files

import (
	"fmt"
	"math"
	"strings"

	"reeve"
	"reeve/internal/diff"
	"reeve/internal/redact"
)

// secretChanges follows a hunk in which one secret replaces another, because both are shown as [reeve.Redacted].
const secretChanges = "\\ What is " + reeve.Redacted + " is not the same before and after\n"

// unifiedDiff returns the unified diff that turns a into b, with secrets removed. It is empty when the texts are equal.
// ok is false when the diff has more than diffMost bytes. A person who decides on the change sees all of it.
func unifiedDiff(inv *reeve.Invocation, from, to, a, b string) (text string, ok bool) {
	maxBytes := diffMost
	if inv.ForApprover {
		maxBytes = math.MaxInt
	}
	oldLines, newLines := diff.SplitLines(a), diff.SplitLines(b)
	// The size is checked before the search for secrets, which is slow.
	hunks, ok := diff.Hunks(diff.Compare(oldLines, newLines), maxBytes)
	if len(hunks) == 0 || !ok {
		return "", ok
	}
	// All secrets must be known before the first line is written: a fragment of any of them is hidden in every line.
	fragments := redact.Fragments{}
	oldHidden, newHidden := make([][][]redact.Range, len(hunks)), make([][][]redact.Range, len(hunks))
	for i, h := range hunks {
		oldHidden[i] = hiddenInLines(inv, oldLines, h.OldStart, h.OldLines, fragments)
		newHidden[i] = hiddenInLines(inv, newLines, h.NewStart, h.NewLines, fragments)
	}
	var out strings.Builder
	fmt.Fprintf(&out, "--- %s\n+++ %s\n", from, to)
	for i, h := range hunks {
		out.WriteString(h.Header() + "\n")
		writeRedacted(&out, h.Edits, oldHidden[i], newHidden[i], fragments)
	}
	return out.String(), out.Len() <= maxBytes
}

// writeRedacted writes the lines of a hunk without secrets and fragments of secrets. oldHidden and newHidden have the
// secrets in each line of the old and the new text.
func writeRedacted(out *strings.Builder, edits []diff.Edit, oldHidden, newHidden [][]redact.Range,
	fragments redact.Fragments) {
	var deleted, inserted strings.Builder // the secrets in changed lines
	for _, e := range edits {
		var hidden []redact.Range
		if e.Op != diff.Insert {
			hidden, oldHidden = append(hidden, oldHidden[0]...), oldHidden[1:]
		}
		if e.Op != diff.Delete {
			hidden, newHidden = append(hidden, newHidden[0]...), newHidden[1:]
		}
		line, secret := redact.Line(e.Line, append(hidden, fragments.Find(e.Line)...))
		switch e.Op {
		case diff.Delete:
			deleted.WriteString(secret)
		case diff.Insert:
			inserted.WriteString(secret)
		case diff.Keep: // an unchanged line changes no secret
		}
		out.WriteByte(byte(e.Op))
		out.WriteString(line)
		if !strings.HasSuffix(line, "\n") {
			out.WriteString("\n\\ No newline at end of file\n")
		}
	}
	if deleted.Len() > 0 && inserted.Len() > 0 && deleted.String() != inserted.String() {
		out.WriteString(secretChanges)
	}
}
