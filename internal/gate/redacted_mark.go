package gate

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"reeve"
	"reeve/internal/canonjson"
)

// checkNoMark refuses a call that would write the mark of a redacted secret, because the caller copied redacted text.
// Calls that change nothing may contain the mark. So may undos, whose arguments the gate has stored.
func (d *decider) checkNoMark(args any) error {
	t := d.tool()
	if d.undoes != "" || !t.Effect.Mutates() {
		return nil
	}
	path, found := findMark(args, "")
	if !found || t.IsRead != nil && t.IsRead(json.RawMessage(canonjson.CanonicalValue(args))) {
		return nil
	}
	message := "contains " + reeve.Redacted + ", which stands for a redacted secret"
	return &reeve.Error{Code: reeve.Validation, Message: "the argument " + path + " " + message +
		"; the call would replace the secret by this mark",
		Fields: []reeve.Field{{Path: path, Message: message, Expected: "text without the mark"}},
		Hint: "edit around the redacted text with an anchor that does not contain it, or refer to a stored secret by " +
			"name; to revert a change, undo its operation; to write the mark itself, spell it differently, such as " +
			"[redacted]"}
}

// findMark returns the path of the first value or property name that contains the mark.
func findMark(v any, path string) (string, bool) {
	switch v := v.(type) {
	case string:
		return path, strings.Contains(v, reeve.Redacted)
	case []any:
		for i, e := range v {
			if at, ok := findMark(e, path+"/"+strconv.Itoa(i)); ok {
				return at, true
			}
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			at := path + "/" + canonjson.EscapePointer(name)
			if strings.Contains(name, reeve.Redacted) {
				return at, true
			}
			if at, ok := findMark(v[name], at); ok {
				return at, true
			}
		}
	}
	return "", false
}
