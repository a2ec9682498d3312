package gate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"reeve"
)

// output is what a tool said, made fit to be shown and kept.
type output struct {
	content   string // scrubbed and cut
	size      int    // bytes before the cut
	full      []byte // scrubbed and whole; nil unless it was cut
	truncated bool
}

// output scrubs and cuts what a handler returned. Scrubbing comes first: a secret cut in two would pass unseen.
func (d *Decision) output(text string) output { return d.g.cut(d.scrubbed(text)) }

// scrubbed is a handler's text without secrets.
func (d *Decision) scrubbed(text string) string {
	return d.view.workspace.scrubber.scrub(text, d.tool().Names...)
}

// fits tells whether callers would be shown all of what a handler returns.
func (d *Decision) fits(v any) bool {
	text := d.scrubbed(d.g.text(v))
	return len(head(text, d.g.OutputCap)) == len(text)
}

// text is a handler's value as text: a string as it is, anything else as JSON.
func (g *Gate) text(v any) string {
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

// readable makes any bytes storable as text in both engines.
func (g *Gate) readable(s string) string { return reeve.Clean(head(s, g.OutputCap)) }

// cut bounds an output, keeping the whole of it aside.
func (g *Gate) cut(s string) output { return cutAfter(s, g.OutputCap) }

// cutAfter is cut after so many bytes.
func cutAfter(s string, most int) output {
	o := output{size: len(s)}
	shown := head(s, most)
	if o.content = reeve.Clean(shown); len(shown) == len(s) {
		return o
	}
	o.full, o.truncated = []byte(s), true
	o.content += fmt.Sprintf("\n[output truncated: original size %d bytes; read the rest with %s {\"hash\":%q,\"offset\":%d}]",
		o.size, OutputRead, reeve.Hash(o.full), len(shown))
	return o
}

// head gives as much from the front as fills at most n bytes once it is storable, which may take more room than it had.
func head(s string, n int) string {
	s = cutAt(s, n)
	for {
		over := len(reeve.Clean(s)) - n
		if over <= 0 {
			return s
		}
		s = cutAt(s, len(s)-max(1, over/len("\uFFFD")))
	}
}

// cutAt cuts on a character boundary.
func cutAt(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
