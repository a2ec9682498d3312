package gate

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"reeve"
	"reeve/internal/canonjson"
)

// maxArgumentParts limits how many values the arguments may hold. Each invalid value costs memory during validation, so
// a few megabytes of arguments could otherwise take gigabytes.
const maxArgumentParts = 200_000

// checkArguments parses the arguments and checks them against the tool's schema. Common mistakes of models are
// repaired; see argumentRepair. For other mistakes the error names every wrong path.
func (d *decider) checkArguments(context.Context) (string, error) {
	v, notes, err := readArguments(d.call.Args)
	if err != nil {
		return "", err
	}
	if countAllParts(v) > maxArgumentParts {
		return "", reeve.Errorf(reeve.TooLarge, "the arguments contain more than %d values", maxArgumentParts).
			Hintf("split the call into several smaller ones")
	}
	s := d.entry.args
	fields := s.check(v, "")
	if len(fields) > 0 {
		r := argumentRepair{}
		v = r.repairValue(v, s.tree, s.tree, "")
		notes = append(notes, r.notes...)
		if len(r.notes) > 0 {
			fields = s.check(v, "")
		}
	}
	if len(fields) == 1 && fields[0].Message == messageCircular {
		return "", reeve.Errorf(reeve.Unsupported,
			"the tool %q cannot check these arguments: its schema refers to itself in a cycle", d.call.Tool).
			Hintf("the author of the tool must correct its parameters")
	}
	if len(fields) == 1 && fields[0].Message == messageTooComplex {
		return "", &reeve.Error{Code: reeve.Validation,
			Message: "checking the arguments takes too long: the tool's schema has too many alternatives",
			Fields:  fields,
			Hint:    "send fewer or less deeply nested values; the author of the tool can simplify its parameters"}
	}
	if len(fields) > 0 {
		return "", &reeve.Error{Code: reeve.Validation, Message: "the arguments are not valid: " +
			describeFields(fields),
			Fields: fields, Hint: "correct these arguments and call the tool again"}
	}
	if err := d.checkNoMark(v); err != nil {
		return "", err
	}
	d.args = canonjson.CanonicalValue(v)
	d.argsHash = reeve.Hash(d.args)
	if len(notes) > 0 {
		// the notes contain names from the arguments
		return d.redactAndTruncate("valid after repair: " + strings.Join(notes, "; ")), nil
	}
	return "the arguments match the schema", nil
}

func describeFields(fields []reeve.Field) string {
	parts := make([]string, 0, len(fields))
	for _, f := range fields {
		path := f.Path
		if path == "" {
			path = "the value"
		}
		s := path + " " + f.Message
		if f.Expected != "" {
			s += " (expected " + f.Expected + ")"
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, "; ")
}

// readArguments parses the arguments as one object. It also accepts null, no arguments and an object inside a JSON
// string, and returns a note for each of these repairs.
func readArguments(raw json.RawMessage) (any, []string, error) {
	var notes []string
	text := bytes.TrimSpace(raw)
	for range 3 { // accept at most two levels of JSON inside strings
		if len(text) == 0 || string(text) == "null" {
			return map[string]any{}, append(notes, "no arguments, read as an empty object"), nil
		}
		v, err := canonjson.Parse(text)
		if err != nil {
			if n := countValues(text); n > 1 && text[0] == '{' { // only objects: a date would count as several numbers
				return nil, nil, reeve.AsError(invalidField("", "one object",
					"the arguments are %d JSON values instead of one", n)).Hintf("make a separate call for each")
			}
			return nil, nil, reeve.InvalidJSON(err)
		}
		switch t := v.(type) {
		case map[string]any:
			return t, notes, nil
		case string:
			text = bytes.TrimSpace([]byte(t))
			notes = append(notes, "a string with JSON, read as JSON")
		default:
			return nil, nil, invalidField("", "an object", "the arguments are not an object")
		}
	}
	return nil, nil, invalidField("", "an object", "the arguments are nested JSON strings")
}

// countValues counts consecutive JSON values. It returns 0 if the text is not valid.
func countValues(text []byte) int {
	d := json.NewDecoder(bytes.NewReader(text))
	n := 0
	for d.More() {
		var v json.RawMessage
		if d.Decode(&v) != nil {
			return 0
		}
		n++
	}
	return n
}
