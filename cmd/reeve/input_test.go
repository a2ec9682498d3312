package main

import (
	"strings"
	"testing"

	"reeve"
)

// A document that can be read in more than one way, or in none, is refused in words.
func TestDocument(t *testing.T) {
	for text, says := range map[string]string{
		`{"id": "a", "timeout_ms": 1000}`:    "",
		"\ufeffid: ä\ntimeout_ms: 1000\n":    "",
		`{"id": "a", "id": "b"}`:             `the key "id" twice in one object`,
		`{"id": "a", "spec": {"a":1,"a":2}}`: `the key "a" twice in one object`,
		"id: a\nid: b\n":                     "already defined",
		"id: a\xff\n":                        "not UTF-8",
		"{\"id\": \"a\xff\"}":                "not UTF-8",
		"timeout_ms: 1e3\n":                  "timeout_ms cannot be text: here belongs a whole number",
		`{"timeout_ms": 1.5}`:                "timeout_ms cannot be a number: here belongs a whole number",
		"id: [a]\n":                          "id cannot be a list: here belongs text",
		"idd: a\n":                           "idd",
		"id: a\n---\nid: b\n":                "more than one document",
	} {
		a := &app{surroundings: surroundings{in: strings.NewReader(text)}}
		var tool reeve.Tool
		err := a.document("-", &tool)
		if told := reeve.AsError(err); (err == nil) != (says == "") || err != nil &&
			(told.Code != reeve.Validation || !strings.Contains(told.Message, says)) {
			t.Errorf("%q: %v, want %q", text, err, says)
		}
	}
}
