package gate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"reeve"
	"reeve/internal/redact"
)

// output is a tool's result in the form in which it is shown and stored.
type output struct {
	content   string // redacted and truncated
	size      int    // bytes before truncation
	full      []byte // redacted and complete; nil unless truncated
	truncated bool
}

// output redacts and truncates the text of a result. It redacts first, because a truncated secret would not be
// recognised.
func (d *Decision) output(text string) output { return d.g.truncateOutput(d.redactResult(text)) }

// redactor returns the redactor for texts of the called tool.
func (d *Decision) redactor() *redact.Redactor { return d.view.workspace.redactorFor(d.call.Tool) }

// redactorFor returns the redactor for texts of a tool.
func (w *workspaceView) redactorFor(tool string) *redact.Redactor {
	if e := w.tools[tool]; e != nil && e.tool.KeepTokenSignatures {
		return w.redactor.PassTokens()
	}
	return w.redactor
}

// redact removes secrets from a text.
func (d *Decision) redact(text string) string { return d.redactor().Text(text) }

// redactResult removes secrets from a handler's result.
func (d *Decision) redactResult(text string) string {
	return d.redactor().Text(text, d.tool().FileNameFields...)
}

// redactForLog removes secrets from a text for the log or a trace. It also removes values after words such as
// "password=".
func (d *Decision) redactForLog(text string) string {
	return d.view.workspace.redactor.MaskNamed().Text(text)
}

// fitsOutputCap reports whether callers would get a handler's result without truncation.
func (d *Decision) fitsOutputCap(v any) bool {
	text := d.redactResult(d.g.renderValue(v))
	return len(longestFittingPrefix(text, d.g.OutputCap)) == len(text)
}

// renderValue returns a handler's result as text. A string stays as it is. Other values become JSON.
func (g *Gate) renderValue(v any) string {
	switch t := v.(type) {
	case nil:
		return ""
	case string:
		return t
	case []byte:
		return string(t)
	case json.RawMessage:
		return string(t)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := encodeSafely(enc, v); err != nil {
		return fmt.Sprintf("the tool's result of type %T cannot be encoded as JSON", v)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// encodeSafely turns a panic in MarshalJSON into an error.
func encodeSafely(enc *json.Encoder, v any) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return enc.Encode(v)
}

// sanitizeAndTruncate turns any bytes into a text of at most OutputCap bytes that both database engines can store.
func (g *Gate) sanitizeAndTruncate(s string) string {
	return reeve.SanitizeText(longestFittingPrefix(s, g.OutputCap))
}

// truncateOutput truncates an output to OutputCap bytes and keeps the full text in the result.
func (g *Gate) truncateOutput(s string) output { return truncateOutputTo(s, g.OutputCap) }

// truncateOutputTo truncates an output to the given number of bytes and adds a line on how to read the rest.
func truncateOutputTo(s string, most int) output {
	o := output{size: len(s)}
	shown := longestFittingPrefix(s, most)
	if o.content = reeve.SanitizeText(shown); len(shown) == len(s) {
		return o
	}
	o.full, o.truncated = []byte(s), true
	o.content += fmt.Sprintf(
		"\n[output truncated: original size %d bytes; read the rest with %s {\"hash\":%q,\"offset\":%d}]",
		o.size, OutputRead, reeve.Hash(o.full), len(shown))
	return o
}

// longestFittingPrefix returns the longest prefix of s that has at most n bytes after it is sanitized. Sanitizing can
// make a text longer.
func longestFittingPrefix(s string, n int) string {
	s = truncateAtRune(s, n)
	for {
		over := len(reeve.SanitizeText(s)) - n
		if over <= 0 {
			return s
		}
		s = truncateAtRune(s, len(s)-max(1, over/len("\uFFFD")))
	}
}

// truncateAtRune returns at most n bytes of s and does not split a character.
func truncateAtRune(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
