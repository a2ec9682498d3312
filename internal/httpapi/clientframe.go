package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"reeve"
	"reeve/api"
	"reeve/internal/canonjson"
)

// mostEchoed is how much of what a client sent is sent back to say what is wrong with it.
const mostEchoed = 200

// readClientFrame decodes what a client sent. It is strict: what is not understood is refused and not guessed at.
func readClientFrame(b []byte) (f api.ClientFrame, err error) {
	wrong := func(path, message, expected string) (api.ClientFrame, error) {
		// a name, or a type, may be as long as a frame
		path, message = reeve.Truncate(path, mostEchoed), reeve.Truncate(message, mostEchoed)
		return f, &reeve.Error{Code: reeve.Validation, Message: "the frame is not valid: " +
			strings.TrimSpace(path+" "+message),
			Hint:   "docs/conversations.md says what frames look like",
			Fields: []reeve.Field{{Path: path, Message: message, Expected: expected}}}
	}
	v, err := canonjson.Parse(b)
	if err != nil {
		return wrong("", err.Error(), "a JSON object with a type")
	}
	fields, _ := v.(map[string]any)
	for name := range fields { // which encoding/json would take in any case
		if strings.ToLower(name) != name {
			return wrong("/"+name, "is not known", "a field whose name is in small letters")
		}
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&f); err != nil {
		var t *json.UnmarshalTypeError
		if errors.As(err, &t) {
			at, _ := mistyped(v, reflect.TypeFor[api.ClientFrame]())
			return wrong(at, "cannot be of type "+t.Value, "a "+t.Type.Kind().String())
		}
		return wrong("", strings.TrimPrefix(err.Error(), "json: "), "an object with the fields of its type")
	}
	if err := checkText(&f); err != nil {
		return f, err
	}
	need := func(path, value string) (api.ClientFrame, error) {
		if value == "" {
			return wrong(path, "is missing", "which one is meant")
		}
		return f, nil
	}
	switch f.Type {
	case api.ClientMessage:
		if strings.TrimSpace(f.Content) == "" && len(f.Attachments) == 0 {
			return wrong("/content", "is missing", "what you want to say, or an attachment")
		}
		if len(f.ID) > maxKey {
			return wrong("/id", "is too long", fmt.Sprintf("at most %d bytes", maxKey))
		}
	case api.ClientPing:
	case api.ClientCancel:
		return need("/turn_id", f.TurnID)
	case api.ClientApprove, api.ClientDeny:
		return need("/approval_id", f.ApprovalID)
	case "":
		return wrong("/type", "is missing", "message, ping, cancel, approve or deny")
	default:
		return wrong("/type", fmt.Sprintf("%q is not known", f.Type), "message, ping, cancel, approve or deny")
	}
	return f, nil
}

// mistyped finds the first value that is of another type than Go's, by its path: encoding/json names neither keys of
// maps nor places in lists.
func mistyped(v any, t reflect.Type) (path string, found bool) {
	switch kind := t.Kind(); {
	case v == nil:
		return "", false
	case kind == reflect.Pointer:
		return mistyped(v, t.Elem())
	case kind == reflect.Slice && t.Elem().Kind() == reflect.Uint8, kind == reflect.String: // bytes are in base64
		_, ok := v.(string)
		return "", !ok
	case kind == reflect.Slice:
		list, ok := v.([]any)
		for i, e := range list {
			if at, found := mistyped(e, t.Elem()); found {
				return "/" + strconv.Itoa(i) + at, true
			}
		}
		return "", !ok
	case kind == reflect.Map, kind == reflect.Struct:
		object, ok := v.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(object)) {
			if of := member(t, name); of != nil {
				if at, found := mistyped(object[name], of); found {
					return "/" + canonjson.EscapePointer(name) + at, true
				}
			}
		}
		return "", !ok
	case kind == reflect.Bool:
		_, ok := v.(bool)
		return "", !ok
	}
	switch v.(type) {
	case string, bool, []any, map[string]any:
		return "", t.Kind() != reflect.Interface
	}
	return "", false
}

// member is the type of what an object that is read as t has under a name; nil means that it has no such.
func member(t reflect.Type, name string) reflect.Type {
	if t.Kind() == reflect.Map {
		return t.Elem()
	}
	for _, f := range reflect.VisibleFields(t) {
		if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); tag == name {
			return f.Type
		}
	}
	return nil
}
