package store

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"unicode/utf8"
)

// encodeJSON returns v as JSON. It panics if v cannot be marshaled, which is a bug.
func encodeJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic("store: " + err.Error())
	}
	return string(b)
}

// encodeJSONUnescaped is like encodeJSON, but does not escape HTML characters, so that raw JSON in v stays unchanged.
func encodeJSONUnescaped(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic("store: " + err.Error())
	}
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}

// decodeJSON decodes a column that encodeJSON wrote. An empty column leaves v unchanged.
func decodeJSON(column, s string, v any) error {
	if s == "" {
		return nil
	}
	if json.Unmarshal([]byte(s), v) != nil {
		return &columnError{column, "is not the JSON that was stored"}
	}
	return nil
}

// decodeJSONStrict is like decodeJSON for a column that limits rights. The column must not be empty and must not have
// unknown fields.
func decodeJSONStrict(column, s string, v any) error {
	dec := json.NewDecoder(strings.NewReader(s))
	dec.DisallowUnknownFields()
	if dec.Decode(v) != nil || dec.Decode(new(any)) != io.EOF {
		return &columnError{column, "is not the JSON that was stored"}
	}
	return nil
}

// rawJSON returns a column of JSON as it is stored, or nil if it is empty.
func rawJSON(column, s string) (json.RawMessage, error) {
	switch {
	case s == "":
		return nil, nil
	case !json.Valid([]byte(s)) || !utf8.ValidString(s):
		return nil, &columnError{column, "is not JSON"}
	}
	return json.RawMessage(s), nil
}

// rawObject is like rawJSON for a column that must contain a JSON object.
func rawObject(column, s string) (json.RawMessage, error) {
	if !strings.HasPrefix(strings.TrimSpace(s), "{") {
		return nil, &columnError{column, "is not a JSON object"}
	}
	return rawJSON(column, s)
}

// checkKnown returns an error about a column unless ok is true.
func checkKnown(column string, ok bool) error {
	if !ok {
		return &columnError{column, "is not one of the allowed values"}
	}
	return nil
}

// boolToInt returns 1 for true and 0 for false, as both engines store it.
func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
