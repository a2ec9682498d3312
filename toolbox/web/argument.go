package web

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"reeve"
	"reeve/internal/canonjson"
)

// arguments holds a call's arguments by name, each as JSON.
type arguments map[string]json.RawMessage

// configPrefix is the prefix of names that refer to the agent's settings for the tool. In a URL or a header they are
// written {{config.NAME}}.
const configPrefix = "config."

// parseArguments decodes an invocation's arguments and adds the agent's settings and the operation id.
func parseArguments(inv *reeve.Invocation) (arguments, error) {
	args := arguments{}
	if err := json.Unmarshal(inv.Args, &args); err != nil {
		return nil, reeve.Errorf(reeve.Validation, "arguments are not a JSON object")
	}
	if len(inv.Config) > 0 {
		settings := arguments{}
		if err := json.Unmarshal(inv.Config, &settings); err != nil {
			return nil, reeve.Errorf(reeve.Validation, "the agent's settings for the tool are not a JSON object").
				Hintf("detach the tool from the agent and attach it again with valid settings")
		}
		for name, v := range settings {
			args[configPrefix+name] = v
		}
	}
	if inv.Operation != "" {
		id, err := json.Marshal(inv.Operation)
		if err != nil {
			return nil, reeve.Errorf(reeve.Internal, "operation id cannot be encoded")
		}
		args[OperationArg] = id
	}
	return args, nil
}

// isMissing reports whether an argument is absent or null.
func (a arguments) isMissing(name string) bool {
	v, ok := a[name]
	return !ok || string(v) == "null"
}

// formatScalar returns a string unquoted, and a number or boolean as JSON. It returns false for any other value.
func formatScalar(v json.RawMessage) (string, bool) {
	if len(v) == 0 || v[0] == '{' || v[0] == '[' || v[0] == 'n' {
		return "", false
	}
	if v[0] != '"' {
		return string(v), true
	}
	var s string
	err := json.Unmarshal(v, &s)
	return s, err == nil
}

// pathValue returns an argument for use in the path. A missing or empty argument is an error, because a path without
// one of its segments means something else: DELETE /users/ instead of one user.
func (a arguments) pathValue(name string) (string, error) {
	if a.isMissing(name) {
		return "", invalidArg(name, "is missing", "a value; the URL path requires it")
	}
	s, ok := formatScalar(a[name])
	switch {
	case !ok:
		return "", invalidArg(name, "cannot be used in a URL path", "a string, number or boolean")
	case s == "":
		return "", invalidArg(name, "is empty", "a value; the URL path requires it")
	case strings.ContainsFunc(s, isControl):
		return "", invalidArg(name, "contains control characters", "text without control characters")
	}
	return s, nil
}

// expandQueryValue fills in a query value. It returns false if an argument is missing, and the parameter is then left
// out.
func (a arguments) expandQueryValue(value []part, secrets map[string]string) (string, bool, error) {
	var b strings.Builder
	for _, p := range value {
		switch {
		case p.secret != "":
			b.WriteString(escape(secrets[p.secret]))
		case p.arg == "":
			b.WriteString(p.literal)
		case a.isMissing(p.arg):
			return "", false, nil
		default:
			s, ok := formatScalar(a[p.arg])
			if !ok {
				return "", false, invalidArg(p.arg, "cannot be used in a URL query", "a string, number or boolean")
			}
			b.WriteString(escape(s))
		}
	}
	return b.String(), true, nil
}

// expandHeader fills in a header value. It returns false if a setting is missing, and the header is then left out.
func (a arguments) expandHeader(value []part, secrets map[string]string) (string, bool, error) {
	var b strings.Builder
	for _, p := range value {
		if p.arg == "" {
			b.WriteString(p.literal + secrets[p.secret])
			continue
		}
		if a.isMissing(p.arg) {
			return "", false, nil
		}
		s, ok := formatScalar(a[p.arg])
		if !ok || !isHeaderValue(s) {
			return "", false, invalidArg(p.arg, "cannot be used in a header", "printable ASCII")
		}
		b.WriteString(s)
	}
	return b.String(), true, nil
}

// encodePairs encodes the arguments in a mapping from query parameter to argument, sorted by parameter name. A list
// repeats its parameter.
func (a arguments) encodePairs(mapping map[string]string) ([]string, error) {
	var out []string
	for _, name := range sortedKeys(mapping) {
		arg := mapping[name]
		if a.isMissing(arg) {
			continue
		}
		values := []json.RawMessage{a[arg]}
		if a[arg][0] == '[' {
			if err := json.Unmarshal(a[arg], &values); err != nil {
				return nil, invalidArg(arg, "is not a valid list", "a list")
			}
		}
		for _, v := range values {
			s, ok := formatScalar(v)
			if !ok {
				return nil, invalidArg(arg, "cannot be encoded as a parameter",
					"a string, number, boolean, or a list of these")
			}
			out = append(out, escape(name)+"="+escape(s))
		}
	}
	return out, nil
}

// encodeObject encodes the arguments in a mapping from body path to argument as a JSON object. It creates the objects
// on the path.
func (a arguments) encodeObject(mapping map[string]string) ([]byte, error) {
	root := map[string]any{}
	for _, target := range sortedKeys(mapping) {
		arg := mapping[target]
		if _, ok := a[arg]; !ok { // null is sent, because it has a meaning in a PATCH
			continue
		}
		at, tokens := root, bodyPath(target)
		for _, t := range tokens[:len(tokens)-1] {
			next, ok := at[t].(map[string]any)
			if !ok {
				next = map[string]any{}
				at[t] = next
			}
			at = next
		}
		at[tokens[len(tokens)-1]] = a[arg]
	}
	return marshalJSON(root)
}

// mapUnused maps each argument that is not in used to its own name.
func (a arguments) mapUnused(used []string) map[string]string {
	m := map[string]string{}
	for name := range a {
		if name != OperationArg && !strings.HasPrefix(name, configPrefix) && !slices.Contains(used, name) {
			m["/"+canonjson.EscapePointer(name)] = name
		}
	}
	return m
}

// bodyPath returns the tokens of a body target, which is a JSON Pointer or a plain key.
func bodyPath(target string) []string {
	if strings.HasPrefix(target, "/") {
		tokens, _ := parsePointer(target) // checked when the tool was built
		return tokens
	}
	return []string{target}
}

// encodeForm encodes the arguments in a mapping from key to argument as application/x-www-form-urlencoded.
func (a arguments) encodeForm(mapping map[string]string) ([]byte, error) {
	flat := make(map[string]string, len(mapping))
	for target, arg := range mapping {
		flat[bodyPath(target)[0]] = arg
	}
	pairs, err := a.encodePairs(flat)
	return []byte(strings.Join(pairs, "&")), err
}

func invalidArg(name, message, expected string) error {
	return &reeve.Error{Code: reeve.Validation, Message: "argument " + name + " " + message,
		Fields: []reeve.Field{{Path: "/" + canonjson.EscapePointer(name), Message: message, Expected: expected}}}
}

func isControl(r rune) bool { return r < 0x20 || r == 0x7f }

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// marshalJSON encodes v as JSON without HTML escapes.
func marshalJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimRight(b.Bytes(), "\n"), err
}
