package gate

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"reeve"
	"reeve/internal/canonjson"
)

// mostParts is how many values arguments may hold. Each that is wrong takes some memory, however few of them are named
// then: megabytes of wrong numbers took gigabytes.
const mostParts = 200_000

// validate reads the arguments and checks them against the tool's schema. What models really send is either repaired by
// one of the rules in repair.go or answered with every path that is wrong.
func (d *decider) validate(context.Context) (string, error) {
	v, notes, err := readArguments(d.call.Args)
	if err != nil {
		return "", err
	}
	if size(v) > mostParts {
		return "", reeve.Errorf(reeve.TooLarge, "the arguments hold more than %d values", mostParts).
			Hintf("send less at once")
	}
	s := d.entry.args
	fields := s.check(v, "")
	if len(fields) > 0 {
		r := repair{}
		v = r.object(v, s.tree, s.tree, "")
		notes = append(notes, r.notes...)
		if len(r.notes) > 0 {
			fields = s.check(v, "")
		}
	}
	if len(fields) == 1 && fields[0].Message == endless {
		return "", reeve.Errorf(reeve.Unsupported,
			"the tool %q cannot take these arguments: its schema refers to itself in a circle", d.call.Tool).
			Hintf("whoever made the tool must mend its parameters")
	}
	if len(fields) == 1 && fields[0].Message == tangled {
		return "", &reeve.Error{Code: reeve.Validation,
			Message: "it takes too long to check whether the arguments fit the tool: its schema has too many ways " +
				"through it", Fields: fields,
			Hint: "send less, or less deeply nested; whoever made the tool can make its parameters simpler"}
	}
	if len(fields) > 0 {
		return "", &reeve.Error{Code: reeve.Validation, Message: "the arguments do not fit the tool: " +
			describe(fields), Fields: fields,
			Hint: "correct the arguments named and call again"}
	}
	if err := d.refuseMark(v); err != nil {
		return "", err
	}
	d.args = canonjson.CanonicalValue(v)
	d.argsHash = reeve.Hash(d.args)
	if len(notes) > 0 {
		return d.brief("they fit after repair: " + strings.Join(notes, "; ")), nil // the notes name what was sent
	}
	return "they fit the schema", nil
}

func describe(fields []reeve.Field) string {
	parts := make([]string, 0, len(fields))
	for _, f := range fields {
		path := f.Path
		if path == "" {
			path = "the whole"
		}
		s := path + " " + f.Message
		if f.Expected != "" {
			s += " (expected " + f.Expected + ")"
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, "; ")
}

// readArguments gets one object out of what was sent.
func readArguments(raw json.RawMessage) (any, []string, error) {
	var notes []string
	text := bytes.TrimSpace(raw)
	for range 3 { // a string that holds JSON that is a string that holds JSON is as deep as it gets
		if len(text) == 0 || string(text) == "null" {
			return map[string]any{}, append(notes, "no arguments taken as an empty object"), nil
		}
		v, err := canonjson.Parse(text)
		if err != nil {
			if n := countValues(text); n > 1 && text[0] == '{' { // a date in a string is numbers one after another
				return nil, nil, reeve.AsError(wrongField("", "one object",
					"the arguments are %d JSON values one after another", n)).Hintf("make one call for each")
			}
			return nil, nil, reeve.InvalidJSON(err)
		}
		switch t := v.(type) {
		case map[string]any:
			return t, notes, nil
		case string:
			text = bytes.TrimSpace([]byte(t))
			notes = append(notes, "a string that held JSON was read as JSON")
		default:
			return nil, nil, wrongField("", "an object", "the arguments are not an object")
		}
	}
	return nil, nil, wrongField("", "an object", "the arguments are JSON inside strings inside strings")
}

// countValues counts complete JSON values that follow each other; 0 means the text is broken.
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
