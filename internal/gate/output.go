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

// output is what a tool returned, ready to be shown and stored.
type output struct {
	content   string // redacted and cut
	size      int    // bytes before the cut
	full      []byte // redacted and whole; nil unless it was cut
	truncated bool
}

// output redacts and cuts what a handler returned. Redaction comes first: a part of a secret is not recognised.
func (d *Decision) output(text string) output { return d.g.truncateOutput(d.redactResult(text)) }

// redactor removes the workspace's secrets from texts of the called tool.
func (d *Decision) redactor() *redact.Redactor { return d.view.workspace.redactorFor(d.call.Tool) }

// redactorFor removes the workspace's secrets from texts of a tool.
func (w *workspaceView) redactorFor(tool string) *redact.Redactor {
	if e := w.tools[tool]; e != nil && e.tool.PassTokens {
		return w.redactor.PassTokens()
	}
	return w.redactor
}

// redact removes secrets from a text.
func (d *Decision) redact(text string) string { return d.redactor().Text(text) }

// redactResult removes secrets from a handler's result.
func (d *Decision) redactResult(text string) string {
	return d.redactor().Text(text, d.tool().Names...)
}

// redactForLog removes secrets from a text for the log or a trace, also values after words such as "password=".
func (d *Decision) redactForLog(text string) string {
	return d.view.workspace.redactor.MaskNamed().Text(text)
}

// fitsOutputCap tells whether callers would be shown all of what a handler returns.
func (d *Decision) fitsOutputCap(v any) bool {
	text := d.redactResult(d.g.renderValue(v))
	return len(longestFittingPrefix(text, d.g.OutputCap)) == len(text)
}

// renderValue is a handler's value as text: a string as it is, anything else as JSON.
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
		return fmt.Sprintf("the tool's result, of type %T, cannot be shown as JSON", v)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// encodeSafely survives a MarshalJSON that panics.
func encodeSafely(enc *json.Encoder, v any) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return enc.Encode(v)
}

// sanitizeAndTruncate makes any bytes storable as text in both engines.
func (g *Gate) sanitizeAndTruncate(s string) string {
	return reeve.SanitizeText(longestFittingPrefix(s, g.OutputCap))
}

// truncateOutput bounds an output, keeping the whole of it aside.
func (g *Gate) truncateOutput(s string) output { return truncateOutputTo(s, g.OutputCap) }

// truncateOutputTo is cut after so many bytes.
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

// longestFittingPrefix gives as much from the front as fills at most n bytes once it is storable, which may take more room than it had.
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

// truncateAtRune cuts on a character boundary.
func truncateAtRune(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
