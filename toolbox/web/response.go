package web

import (
	"bytes"
	"encoding/json"
	"mime"
	"strings"
	"unicode/utf8"

	"reeve"
)

// ResponseInfo stands for an answer whose body is not the result itself: there is none, it is not text, not all of it
// is there, or the part that was asked for is not.
type ResponseInfo struct {
	Status      int             `json:"status" doc:"The answer's HTTP status"`
	ContentType string          `json:"content_type,omitempty" doc:"What the server says the body is"`
	Bytes       int64           `json:"bytes,omitempty" doc:"The body's size"`
	SHA256      string          `json:"sha256,omitempty" doc:"Of the whole body"`
	Text        string          `json:"text,omitempty" doc:"What there is of a text"`
	Body        json.RawMessage `json:"body,omitempty" doc:"The whole answer, where a part of it was to be the result and is not there"`
	Note        string          `json:"note,omitempty" doc:"What is missing, and why"`
}

// success makes the result of a 2xx answer. What happened has happened: only a read fails for what its answer lacks.
func (r *request) success(a *answer) (any, error) {
	if a.lost != nil && !r.effect.Mutates() {
		return nil, r.broken(a.lost, true)
	}
	if len(r.result) == 0 {
		return a.value(), nil
	}
	part, why := r.picked(a)
	switch {
	case why == "":
		return part, nil
	case r.effect.Mutates():
		return a.without("it happened, but " + why), nil
	case a.over:
		return nil, reeve.Errorf(reeve.TooLarge, "the endpoint answered, but %s; it said %s", why, a.say())
	}
	return nil, reeve.Errorf(reeve.ToolFailed, "the endpoint answered, but %s; it said %s", why, a.say())
}

// picked follows the result pointer, or says why it leads nowhere.
func (r *request) picked(a *answer) (part any, why string) {
	doc, ok := a.json()
	switch {
	case a.over:
		return nil, "the answer's body is over the limit and cannot be searched for the result"
	case a.lost != nil:
		return nil, "the answer's body broke off before the result was found"
	case len(a.body) == 0:
		return nil, "the answer has no body that could hold the result"
	case !ok:
		return nil, "the answer's body is not JSON, so that the result cannot be found"
	}
	if found, ok := pick(doc, r.result); ok {
		return shown(found), ""
	}
	return nil, "the result is not where it should be, at " + pointer(r.result)
}

// without stands for an answer that lacks the result: what there is of its body, and why that is no more.
func (a *answer) without(why string) ResponseInfo {
	about := ResponseInfo{Status: a.status, ContentType: a.contentType, Note: why}
	if doc, ok := a.json(); ok {
		about.Body = doc
		return about
	}
	if t, ok := a.said(a.body); ok {
		about.Text = t
	}
	if about.Bytes = int64(len(a.body)); a.over {
		about.Bytes = max(a.length, 0)
	}
	return about
}

// value gives the body in the form a caller can use: JSON, text, or what is known of anything else.
func (a *answer) value() any {
	about := ResponseInfo{Status: a.status, ContentType: a.contentType}
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
		if t, ok := a.said(a.body); ok {
			about.Text = t
		}
		return about
	}
	if doc, ok := a.json(); ok && isJSON(a.contentType) {
		return shown(doc)
	}
	if t, ok := a.said(a.body); ok {
		return t
	}
	about.Bytes, about.SHA256 = int64(len(a.body)), reeve.Hash(a.body)
	return about
}

// json gives the body as compact JSON without secrets, if it is JSON.
func (a *answer) json() ([]byte, bool) {
	t, ok := text(a.body)
	if !ok || a.cut() {
		return nil, false
	}
	var b bytes.Buffer
	if json.Compact(&b, []byte(t)) != nil {
		return nil, false
	}
	return []byte(a.secrets.Text(b.String())), true
}

// said gives a body as text without secrets, if it is text: what there is of it, or what may be shown.
func (a *answer) said(body []byte) (string, bool) {
	if !a.cut() {
		t, ok := text(body)
		return a.secrets.Text(t), ok
	}
	t, ok := text(trimPartial(body))
	return a.inv.RedactedHead(a.secrets.Head(t, len(t)), a.most), ok
}

// cut tells whether not all of the body is there.
func (a *answer) cut() bool { return a.over || a.lost != nil }

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
