package web

import (
	"bytes"
	"encoding/json"
	"mime"
	"strings"
	"unicode/utf8"

	"reeve"
)

// ResponseInfo describes a response whose body is not the result: the body is empty, not text, incomplete, or lacks the
// part that the result pointer names.
type ResponseInfo struct {
	Status      int             `json:"status" doc:"HTTP status"`
	ContentType string          `json:"content_type,omitempty" doc:"Content-Type of the body"`
	Bytes       int64           `json:"bytes,omitempty" doc:"Size of the body"`
	SHA256      string          `json:"sha256,omitempty" doc:"Hash of the whole body"`
	Text        string          `json:"text,omitempty" doc:"Text of the body, as far as it was read"`
	Body        json.RawMessage `json:"body,omitempty" doc:"Whole body, if the result pointer leads nowhere"`
	Note        string          `json:"note,omitempty" doc:"What is missing and why"`
}

// buildResult returns the result of a 2xx response. An incomplete response is an error only for a read, because any
// other call has had its effect.
func (r *request) buildResult(a *response) (any, error) {
	if a.readErr != nil && !r.effect.Mutates() {
		return nil, r.transportError(a.readErr, true)
	}
	if len(r.result) == 0 {
		return a.wholeResult(), nil
	}
	part, why := r.pickResult(a)
	switch {
	case why == "":
		return part, nil
	case r.effect.Mutates():
		return a.infoWithNote("the request succeeded, but " + why), nil
	case a.overLimit:
		return nil, reeve.Errorf(reeve.TooLarge, "the response cannot be used: %s; the endpoint sent %s", why,
			a.describe())
	}
	return nil, reeve.Errorf(reeve.ToolFailed, "the response cannot be used: %s; the endpoint sent %s", why,
		a.describe())
}

// pickResult follows the result pointer. If that fails, why is the reason.
func (r *request) pickResult(a *response) (part any, why string) {
	doc, ok := a.compactJSON()
	switch {
	case a.overLimit:
		return nil, "the body is over the limit and cannot be searched for the result"
	case a.readErr != nil:
		return nil, "the body ended before the result was found"
	case len(a.body) == 0:
		return nil, "the response has no body"
	case !ok:
		return nil, "the body is not JSON, so the result cannot be found"
	}
	if found, ok := resolvePointer(doc, r.result); ok {
		return resultValue(found), ""
	}
	return nil, "the body has no value at the result pointer " + formatPointer(r.result)
}

// infoWithNote describes a response that lacks the result. It contains the body as far as it is known.
func (a *response) infoWithNote(why string) ResponseInfo {
	about := ResponseInfo{Status: a.status, ContentType: a.contentType, Note: why}
	if doc, ok := a.compactJSON(); ok {
		about.Body = doc
		return about
	}
	if t, ok := a.bodyText(a.body); ok {
		about.Text = t
	}
	if about.Bytes = int64(len(a.body)); a.overLimit {
		about.Bytes = max(a.length, 0)
	}
	return about
}

// wholeResult returns the body as JSON or text, or a description of any other body.
func (a *response) wholeResult() any {
	about := ResponseInfo{Status: a.status, ContentType: a.contentType}
	switch {
	case a.overLimit:
		about.Note = "the body is over the limit and was not read to its end"
		about.Bytes = max(a.length, 0)
	case a.readErr != nil:
		about.Note = "the connection was lost before the body was complete"
	case len(a.body) == 0:
		return about
	}
	if about.Note != "" {
		if t, ok := a.bodyText(a.body); ok {
			about.Text = t
		}
		return about
	}
	if doc, ok := a.compactJSON(); ok && isJSON(a.contentType) {
		return resultValue(doc)
	}
	if t, ok := a.bodyText(a.body); ok {
		return t
	}
	about.Bytes, about.SHA256 = int64(len(a.body)), reeve.Hash(a.body)
	return about
}

// compactJSON returns the body as compact JSON without secrets, if it is complete and JSON.
func (a *response) compactJSON() ([]byte, bool) {
	t, ok := decodeText(a.body)
	if !ok || a.isTruncated() {
		return nil, false
	}
	var b bytes.Buffer
	if json.Compact(&b, []byte(t)) != nil {
		return nil, false
	}
	return []byte(a.secrets.Text(b.String())), true
}

// bodyText returns a body as text with secrets removed. It returns false if the body is not text. The end of an
// incomplete body may hold part of a secret, so bodyText drops it.
func (a *response) bodyText(body []byte) (string, bool) {
	if !a.isTruncated() {
		t, ok := decodeText(body)
		return a.secrets.Text(t), ok
	}
	t, ok := decodeText(trimPartial(body))
	return a.inv.RedactedHead(a.secrets.Head(t, len(t)), a.maxShown), ok
}

// isTruncated reports whether the body is incomplete.
func (a *response) isTruncated() bool { return a.overLimit || a.readErr != nil }

// resultValue returns a JSON string as text and any other JSON unchanged.
func resultValue(doc []byte) any {
	var s string
	if len(doc) > 0 && doc[0] == '"' && json.Unmarshal(doc, &s) == nil {
		return s
	}
	return json.RawMessage(doc)
}

// decodeText returns the body as text. It returns false if the body is not UTF-8 or contains NUL, which databases do
// not store as text.
func decodeText(b []byte) (string, bool) {
	b = bytes.TrimPrefix(b, []byte("\ufeff"))
	return string(b), utf8.Valid(b) && bytes.IndexByte(b, 0) < 0
}

func isJSON(contentType string) bool {
	t, _, err := mime.ParseMediaType(contentType)
	return err == nil && (t == "application/json" || t == "text/json" || strings.HasSuffix(t, "+json"))
}
