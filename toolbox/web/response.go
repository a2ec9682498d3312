package web

import (
	"bytes"
	"encoding/json"
	"mime"
	"strings"
	"unicode/utf8"

	"reeve"
)

// Received stands for an answer whose body is not the result itself: there is none, it is not text, or not all of it is there.
type Received struct {
	Status      int    `json:"status" doc:"The answer's HTTP status"`
	ContentType string `json:"content_type,omitempty" doc:"What the server says the body is"`
	Bytes       int64  `json:"bytes,omitempty" doc:"The body's size"`
	SHA256      string `json:"sha256,omitempty" doc:"Of the whole body"`
	Text        string `json:"text,omitempty" doc:"What there is of a text"`
	Note        string `json:"note,omitempty" doc:"What is missing, and why"`
}

// success makes the result of a 2xx answer.
func (r *request) success(a *answer) (any, error) {
	if a.lost != nil && !r.effect.Mutates() {
		return nil, r.broken(a.lost, true)
	}
	if len(r.result) > 0 {
		return r.picked(a)
	}
	return a.value(), nil
}

// picked follows the result pointer. See the package comment for why a pointer that leads nowhere is no success.
func (r *request) picked(a *answer) (any, error) {
	code, why := reeve.ToolFailed, ""
	switch doc, ok := a.json(); {
	case a.over:
		code, why = reeve.TooLarge, "its body is over the limit and cannot be searched for the result"
	case a.lost != nil:
		why = "its body broke off before the result was found"
	case !ok:
		why = "its body is not JSON, so that the result cannot be found"
	default:
		if part, ok := pick(doc, r.result); ok {
			return shown(part), nil
		}
		why = "the result is not where it should be"
	}
	if r.effect.Mutates() {
		code = reeve.UnknownOutcome
	}
	return nil, reeve.Errorf(code, "the endpoint answered, but %s; it said %s", why, a.say())
}

// value gives the body in the form a caller can use: JSON, text, or what is known of anything else.
func (a *answer) value() any {
	about := Received{Status: a.status, ContentType: a.contentType}
	switch {
	case a.over:
		about.Note = "the body is over the limit and was not read to its end"
		about.Bytes = max(a.length, 0)
	case a.lost != nil:
		about.Note = "the connection was lost before the body was complete"
	case len(a.body) == 0:
		return about
	}
	if about.Note != "" {
		if t, ok := text(trimPartial(a.body)); ok {
			about.Text = a.scrub.cut(t)
		}
		return about
	}
	if doc, ok := a.json(); ok && isJSON(a.contentType) {
		return shown(doc)
	}
	if t, ok := text(a.body); ok {
		return a.scrub.text(t)
	}
	about.Bytes, about.SHA256 = int64(len(a.body)), reeve.Hash(a.body)
	return about
}

// json gives the body as compact JSON without secrets, if it is JSON.
func (a *answer) json() ([]byte, bool) {
	t, ok := text(a.body)
	if !ok || a.over || a.lost != nil {
		return nil, false
	}
	var b bytes.Buffer
	if json.Compact(&b, []byte(t)) != nil {
		return nil, false
	}
	return a.scrub.json(b.Bytes()), true
}

// shown gives a string as text and anything else as JSON.
func shown(doc []byte) any {
	var s string
	if len(doc) > 0 && doc[0] == '"' && json.Unmarshal(doc, &s) == nil {
		return s
	}
	return json.RawMessage(doc)
}

// text gives the body as text, if it is: UTF-8 without NUL, which no database holds as text.
func text(b []byte) (string, bool) {
	b = bytes.TrimPrefix(b, []byte("\ufeff"))
	return string(b), utf8.Valid(b) && bytes.IndexByte(b, 0) < 0
}

func isJSON(contentType string) bool {
	t, _, err := mime.ParseMediaType(contentType)
	return err == nil && (t == "application/json" || t == "text/json" || strings.HasSuffix(t, "+json"))
}
