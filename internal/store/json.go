package store

import "encoding/json"

// text is JSON as the store keeps it. What we store marshals; a type that cannot is a bug.
func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic("store: " + err.Error())
	}
	return string(b)
}

// fromText reads what text wrote; empty text leaves v as it is.
func fromText(s string, v any) error {
	if s == "" {
		return nil
	}
	return json.Unmarshal([]byte(s), v)
}

// flag writes a truth as both engines keep it.
func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}
