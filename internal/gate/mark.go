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

// refuseMark refuses a call that would write the mark of a redacted secret: it copies text that was shown without the
// secret. A call that changes nothing may hold the mark, and so may an undo, whose arguments the gate kept.
func (d *decider) refuseMark(args any) error {
	t := d.tool()
	if d.undoes != "" || !t.Effect.Mutates() {
		return nil
	}
	path, found := findMark(args, "")
	if !found || t.Reads != nil && t.Reads(json.RawMessage(canonjson.CanonicalValue(args))) {
		return nil
	}
	message := "contains " + reeve.Redacted + ", which stands for text that was masked when it was shown"
	return &reeve.Error{Code: reeve.Validation, Message: "the argument " + path + " " + message +
		": the call would replace the secret by the mark",
		Fields: []reeve.Field{{Path: path, Message: message, Expected: "text without the mark"}},
		Hint: "edit around the masked text with an anchor that does not contain it, or refer to a stored secret by " +
			"name; " +
			"to take a change back, undo its operation; to write the word itself, spell it another way, such as " +
			"[redacted]"}
}

// findMark returns the path of the first value or name that contains the mark.
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
