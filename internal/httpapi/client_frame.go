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

// maxEchoed is the most bytes of a client's input that an error message repeats.
const maxEchoed = 200

// decodeClientFrame decodes and checks a frame from a client. It fails on unknown fields and types.
func decodeClientFrame(b []byte) (f api.ClientFrame, err error) {
	invalid := func(path, message, expected string) (api.ClientFrame, error) {
		// a field name or a type may be as long as the frame
		path, message = reeve.Truncate(path, maxEchoed), reeve.Truncate(message, maxEchoed)
		return f, &reeve.Error{Code: reeve.Validation, Message: "invalid frame: " + strings.TrimSpace(path+" "+message),
			Hint:   "see docs/conversations.md for the format of frames",
			Fields: []reeve.Field{{Path: path, Message: message, Expected: expected}}}
	}
	v, err := canonjson.Parse(b)
	if err != nil {
		return invalid("", err.Error(), "a JSON object with a type")
	}
	fields, _ := v.(map[string]any)
	for name := range fields { // encoding/json ignores the case of names
		if strings.ToLower(name) != name {
			return invalid("/"+name, "is not known", "a field name in lower case")
		}
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&f); err != nil {
		var t *json.UnmarshalTypeError
		if errors.As(err, &t) {
			at, _ := findTypeMismatch(v, reflect.TypeFor[api.ClientFrame]())
			return invalid(at, "cannot be of type "+t.Value, "a "+t.Type.Kind().String())
		}
		return invalid("", strings.TrimPrefix(err.Error(), "json: "), "an object with the fields of the frame's type")
	}
	if err := checkText(&f); err != nil {
		return f, err
	}
	require := func(path, value string) (api.ClientFrame, error) {
		if value == "" {
			return invalid(path, "is missing", "an id")
		}
		return f, nil
	}
	switch f.Type {
	case api.ClientMessage:
		if strings.TrimSpace(f.Content) == "" && len(f.Attachments) == 0 {
			return invalid("/content", "is missing", "text, unless there are attachments")
		}
		if len(f.ID) > maxKeyBytes {
			return invalid("/id", "is too long", fmt.Sprintf("at most %d bytes", maxKeyBytes))
		}
	case api.ClientPing:
	case api.ClientCancel:
		return require("/turn_id", f.TurnID)
	case api.ClientApprove, api.ClientDeny:
		return require("/approval_id", f.ApprovalID)
	case "":
		return invalid("/type", "is missing", "message, ping, cancel, approve or deny")
	default:
		return invalid("/type", fmt.Sprintf("%q is not known", f.Type), "message, ping, cancel, approve or deny")
	}
	return f, nil
}

// findTypeMismatch returns the JSON Pointer of the first value that cannot be decoded into t. encoding/json itself
// reports neither map keys nor list indexes.
func findTypeMismatch(v any, t reflect.Type) (path string, found bool) {
	switch kind := t.Kind(); {
	case v == nil:
		return "", false
	case kind == reflect.Pointer:
		return findTypeMismatch(v, t.Elem())
	case kind == reflect.Slice && t.Elem().Kind() == reflect.Uint8, kind == reflect.String: // bytes are in base64
		_, ok := v.(string)
		return "", !ok
	case kind == reflect.Slice:
		list, ok := v.([]any)
		for i, e := range list {
			if at, found := findTypeMismatch(e, t.Elem()); found {
				return "/" + strconv.Itoa(i) + at, true
			}
		}
		return "", !ok
	case kind == reflect.Map, kind == reflect.Struct:
		object, ok := v.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(object)) {
			if elem := memberType(t, name); elem != nil {
				if at, found := findTypeMismatch(object[name], elem); found {
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

// memberType returns the type of the member of t with the given JSON name, or nil.
func memberType(t reflect.Type, name string) reflect.Type {
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
