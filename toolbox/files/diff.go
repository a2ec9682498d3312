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
const secretChanges = "\\ The text shown as " + reeve.Redacted + " changes\n"

// unifiedDiff returns the unified diff that turns a into b, with secrets removed. It is empty when the texts are equal.
// ok is false when the diff has more than maxDiffBytes bytes. There is no limit for an approver.
func unifiedDiff(inv *reeve.Invocation, from, to, a, b string) (text string, ok bool) {
	maxBytes := maxDiffBytes
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
		oldHidden[i] = findSecretsInLines(inv, oldLines, h.OldStart, h.OldLines, fragments)
		newHidden[i] = findSecretsInLines(inv, newLines, h.NewStart, h.NewLines, fragments)
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

// maxNearbyFragments limits the fragments of secrets that are near the lines but not in them.
const maxNearbyFragments = 64 << 10

// findSecretsInLines returns the ranges of secrets in each of the n lines from first, and adds the fragments of these
// secrets to fragments. It searches the lines together with the lines around them, because a line of a private key is
// not recognised by itself.
func findSecretsInLines(inv *reeve.Invocation, lines []string, first, n int,
	fragments redact.Fragments) [][]redact.Range {
	hidden := make([][]redact.Range, n)
	lo, hi := first, first+n
	for size := 0; lo > 0 && size < reeve.RedactWindow; size += len(lines[lo]) {
		lo--
	}
	for size := 0; hi < len(lines) && size < reeve.RedactWindow; hi++ {
		size += len(lines[hi])
	}
	text := strings.Join(lines[lo:hi], "")
	secrets := inv.Redactor.Find(text)
	for _, s := range secrets {
		if len(fragments) < maxNearbyFragments {
			fragments.Add(text[s.From:s.To])
		}
	}
	at := 0
	for i, line := range lines[lo : first+n] {
		end := at + len(strings.TrimSuffix(line, "\n"))
		for len(secrets) > 0 && secrets[0].To <= at {
			secrets = secrets[1:]
		}
		for _, s := range secrets {
			if s.From >= end {
				break
			}
			if k := lo + i - first; k >= 0 && max(s.From, at) < min(s.To, end) {
				r := redact.Range{From: max(s.From, at) - at, To: min(s.To, end) - at}
				hidden[k] = append(hidden[k], r)
				fragments.Add(line[r.From:r.To])
			}
		}
		at += len(line)
	}
	return hidden
}
