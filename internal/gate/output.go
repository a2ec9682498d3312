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
func (p *pass) output(v any) output {
	return p.g.cut(p.view.workspace.scrubber.scrub(p.g.text(v)))
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
func (g *Gate) readable(b []byte) string {
	s := storable(string(b))
	if len(s) > g.OutputCap {
		s = cutAt(s, g.OutputCap)
	}
	return s
}

// storable replaces what PostgreSQL cannot keep in text: bytes that are not UTF-8, and NUL.
func storable(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// cut bounds an output, keeping the whole of it aside.
func (g *Gate) cut(s string) output {
	o := output{size: len(s)}
	if len(s) <= g.OutputCap {
		o.content = storable(s)
		return o
	}
	o.full, o.truncated = []byte(s), true
	o.content = storable(cutAt(s, g.OutputCap)) + fmt.Sprintf("\n[output truncated: original size %d bytes; read the rest with %s {\"hash\":%q,\"offset\":%d}]",
		o.size, OutputRead, reeve.Hash(o.full), len(cutAt(s, g.OutputCap)))
	return o
}

// cutAt cuts on a character boundary.
func cutAt(s string, n int) string {
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
