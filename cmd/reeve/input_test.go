package main

import (
	"strings"
	"testing"

	"reeve"
)

// TestReadDocument checks that readDocument accepts JSON and YAML, and rejects ambiguous or invalid documents.
func TestReadDocument(t *testing.T) {
	for text, want := range map[string]string{
		`{"id": "a", "timeout_ms": 1000}`:    "",
		"\ufeffid: ä\ntimeout_ms: 1000\n":    "",
		`{"id": "a", "id": "b"}`:             `key "id" appears twice in one object`,
		`{"id": "a", "spec": {"a":1,"a":2}}`: `key "a" appears twice in one object`,
		"id: a\nid: b\n":                     "already defined",
		"id: a\xff\n":                        "not UTF-8",
		"{\"id\": \"a\xff\"}":                "not UTF-8",
		"timeout_ms: 1e3\n":                  "timeout_ms must be a whole number such as 1000, not text",
		`{"timeout_ms": 1.5}`:                "timeout_ms must be a whole number such as 1000, not 1.5",
		"id: [a]\n":                          "id must be text, not a list",
		"idd: a\n":                           "idd",
		"id: a\n---\nid: b\n":                "more than one document",
	} {
		a := &app{environment: environment{in: strings.NewReader(text)}}
		var tool reeve.Tool
		err := a.readDocument("-", &tool)
		if e := reeve.AsError(err); (err == nil) != (want == "") || err != nil &&
			(e.Code != reeve.Validation || !strings.Contains(e.Message, want)) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
