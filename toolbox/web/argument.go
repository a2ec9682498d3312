package web

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"reeve"
	"reeve/internal/canonjson"
)

// arguments are a call's arguments by name, each as JSON.
type arguments map[string]json.RawMessage

// parseArguments reads an invocation's arguments and adds the operation id.
func parseArguments(inv *reeve.Invocation) (arguments, error) {
	args := arguments{}
	if err := json.Unmarshal(inv.Args, &args); err != nil {
		return nil, reeve.Errorf(reeve.Validation, "the arguments are not an object")
	}
	if inv.Operation != "" {
		id, err := json.Marshal(inv.Operation)
		if err != nil {
			return nil, reeve.Errorf(reeve.Internal, "the operation id cannot be written")
		}
		args[OperationArg] = id
	}
	return args, nil
}

// missing tells whether an argument is absent; null counts as absent.
func (a arguments) missing(name string) bool {
	v, ok := a[name]
	return !ok || string(v) == "null"
}

// scalar gives a string as it is, and a number or a boolean as JSON writes it.
func scalar(v json.RawMessage) (string, bool) {
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

// inPath gives an argument that fills a hole in the path. It must be there and not be empty: a path that loses a
// segment means something else, DELETE /users/ instead of one user's.
func (a arguments) inPath(name string) (string, error) {
	if a.missing(name) {
		return "", wrongArg(name, "it is missing", "a value: the url's path needs it")
	}
	s, ok := scalar(a[name])
	switch {
	case !ok:
		return "", wrongArg(name, "it cannot stand in a url's path", "a string, number or boolean")
	case s == "":
		return "", wrongArg(name, "it is empty", "a value: the url's path needs it")
	case strings.ContainsFunc(s, isControl):
		return "", wrongArg(name, "it holds control characters", "text without control characters")
	}
	return s, nil
}

// inQuery fills a query value; false means that it is left out because an argument is missing.
func (a arguments) inQuery(value []part, secrets map[string]string) (string, bool, error) {
	var b strings.Builder
	for _, p := range value {
		switch {
		case p.secret != "":
			b.WriteString(escape(secrets[p.secret]))
		case p.arg == "":
			b.WriteString(p.literal)
		case a.missing(p.arg):
			return "", false, nil
		default:
			s, ok := scalar(a[p.arg])
			if !ok {
				return "", false, wrongArg(p.arg, "it cannot stand in a url's query", "a string, number or boolean")
			}
			b.WriteString(escape(s))
		}
	}
	return b.String(), true, nil
}

// pairs writes a mapping from parameter to argument, in order of the parameters' names. A list repeats its parameter.
func (a arguments) pairs(mapping map[string]string) ([]string, error) {
	var out []string
	for _, name := range sortedKeys(mapping) {
		arg := mapping[name]
		if a.missing(arg) {
			continue
		}
		values := []json.RawMessage{a[arg]}
		if a[arg][0] == '[' {
			if err := json.Unmarshal(a[arg], &values); err != nil {
				return nil, wrongArg(arg, "it cannot be read", "a list")
			}
		}
		for _, v := range values {
			s, ok := scalar(v)
			if !ok {
				return nil, wrongArg(arg, "it cannot be written as a parameter",
					"a string, number, boolean, or a list of these")
			}
			out = append(out, escape(name)+"="+escape(s))
		}
	}
	return out, nil
}

// object writes a mapping from place to argument as a JSON object. Places are made as needed, always of objects.
func (a arguments) object(mapping map[string]string) ([]byte, error) {
	root := map[string]any{}
	for _, target := range sortedKeys(mapping) {
		arg := mapping[target]
		if _, ok := a[arg]; !ok { // a null is sent: in a PATCH it means something
			continue
		}
		at, tokens := root, place(target)
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
	return marshal(root)
}

// rest maps every argument that is not used to its own name.
func (a arguments) rest(used []string) map[string]string {
	m := map[string]string{}
	for name := range a {
		if name != OperationArg && !slices.Contains(used, name) {
			m["/"+canonjson.EscapePointer(name)] = name
		}
	}
	return m
}

// place gives the tokens of a body target: a JSON Pointer, or a key as it is.
func place(target string) []string {
	if strings.HasPrefix(target, "/") {
		tokens, _ := parsePointer(target) // checked when the tool was built
		return tokens
	}
	return []string{target}
}

// form writes a mapping from key to argument as application/x-www-form-urlencoded.
func (a arguments) form(mapping map[string]string) ([]byte, error) {
	flat := make(map[string]string, len(mapping))
	for target, arg := range mapping {
		flat[place(target)[0]] = arg
	}
	pairs, err := a.pairs(flat)
	return []byte(strings.Join(pairs, "&")), err
}

func wrongArg(name, message, expected string) error {
	return &reeve.Error{Code: reeve.Validation, Message: "the argument " + name + " does not fit: " + message,
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

// marshal writes JSON without the escapes that only matter inside HTML.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimRight(b.Bytes(), "\n"), err
}
