package store

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"unicode/utf8"
)

// text is JSON as the store keeps it. What we store marshals; a type that cannot is a bug.
func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic("store: " + err.Error())
	}
	return string(b)
}

// verbatim is text that leaves JSON inside v as it came.
func verbatim(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic("store: " + err.Error())
	}
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}

// decode reads a column that text wrote. An empty column leaves v as it is.
func decode(column, s string, v any) error {
	if s == "" {
		return nil
	}
	if json.Unmarshal([]byte(s), v) != nil {
		return &columnError{column, "is not the JSON that was stored"}
	}
	return nil
}

// decodeStrict is decode for a column that limits what somebody may do: it must not be empty, nor have fields that are
// not known.
func decodeStrict(column, s string, v any) error {
	dec := json.NewDecoder(strings.NewReader(s))
	dec.DisallowUnknownFields()
	if dec.Decode(v) != nil || dec.Decode(new(any)) != io.EOF {
		return &columnError{column, "is not the JSON that was stored"}
	}
	return nil
}

// rawJSON reads a column of JSON that is handed on as it is; an empty one is nil.
func rawJSON(column, s string) (json.RawMessage, error) {
	switch {
	case s == "":
		return nil, nil
	case !json.Valid([]byte(s)) || !utf8.ValidString(s):
		return nil, &columnError{column, "is not JSON"}
	}
	return json.RawMessage(s), nil
}

// rawObject is rawJSON for a column that holds a JSON object.
func rawObject(column, s string) (json.RawMessage, error) {
	if !strings.HasPrefix(strings.TrimSpace(s), "{") {
		return nil, &columnError{column, "is not a JSON object"}
	}
	return rawJSON(column, s)
}

// known checks that a column holds one of the words that it may hold.
func known(column string, ok bool) error {
	if !ok {
		return &columnError{column, "is not one of the words that it may be"}
	}
	return nil
}

// flag writes a truth as both engines keep it.
func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}
