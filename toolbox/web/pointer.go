package web

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"reeve/internal/canonjson"
)

// tokenUnescaper decodes the escapes of a JSON Pointer (RFC 6901).
var tokenUnescaper = strings.NewReplacer("~1", "/", "~0", "~")

// parsePointer returns the tokens of a JSON Pointer.
func parsePointer(s string) ([]string, bool) {
	if s == "" {
		return nil, true
	}
	if s[0] != '/' {
		return nil, false
	}
	for i := range len(s) {
		if s[i] == '~' && (i+1 == len(s) || s[i+1] != '0' && s[i+1] != '1') {
			return nil, false
		}
	}
	tokens := strings.Split(s[1:], "/")
	for i, t := range tokens {
		tokens[i] = tokenUnescaper.Replace(t)
	}
	return tokens, true
}

// formatPointer formats tokens as a JSON Pointer.
func formatPointer(tokens []string) string {
	var b strings.Builder
	for _, t := range tokens {
		b.WriteString("/" + canonjson.EscapePointer(t))
	}
	return b.String()
}

// resolvePointer returns the part of a JSON text at the given tokens, byte for byte.
func resolvePointer(doc []byte, tokens []string) ([]byte, bool) {
	for _, t := range tokens {
		doc = bytes.TrimSpace(doc)
		if len(doc) == 0 {
			return nil, false
		}
		switch doc[0] {
		case '{':
			var object map[string]json.RawMessage
			if json.Unmarshal(doc, &object) != nil {
				return nil, false
			}
			part, ok := object[t]
			if !ok {
				return nil, false
			}
			doc = part
		case '[':
			var list []json.RawMessage
			n, err := strconv.Atoi(t)
			if err != nil || strconv.Itoa(n) != t || json.Unmarshal(doc, &list) != nil || n < 0 || n >= len(list) {
				return nil, false
			}
			doc = list[n]
		default:
			return nil, false
		}
	}
	return doc, true
}
