package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"

	"reeve"
	"reeve/internal/canonjson"
)

// readInput returns the content of a file, or of standard input if name is "-".
func (a *app) readInput(name string) ([]byte, error) {
	if name == "-" {
		b, err := io.ReadAll(a.in)
		if err != nil {
			return nil, fmt.Errorf("cannot read standard input: %w", err)
		}
		return b, nil
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, reeve.Errorf(reeve.NotFound, "%w", err)
	}
	return b, nil
}

// readDocument reads a JSON or YAML document into v. It fails on unknown fields, duplicate fields, text that is not
// UTF-8 and more than one document, so that no part of the input is dropped silently.
func (a *app) readDocument(name string, v any) error {
	b, err := a.readInput(name)
	if err != nil {
		return err
	}
	invalid := func(err error) error {
		return &reeve.Error{Code: reeve.Validation, Message: name + ": " + err.Error(), Err: err}
	}
	if b = bytes.TrimPrefix(b, []byte("\ufeff")); json.Valid(b) {
		if _, err := canonjson.Parse(b); err != nil {
			return invalid(err)
		}
	} else {
		tree, err := parseSingleYAML(b)
		if err != nil {
			return invalid(err)
		}
		if b, err = json.Marshal(tree); err != nil {
			return invalid(err)
		}
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	err = dec.Decode(v)
	var typeErr *json.UnmarshalTypeError
	if errors.As(err, &typeErr) {
		got := map[string]string{"array": "a list", "object": "an object", "string": "text",
			"bool": "true or false", "number": "a number"}[typeErr.Value]
		return invalid(fmt.Errorf("%s must be %s, not %s", cmp.Or(typeErr.Field, "the document"),
			describeType(typeErr.Type), cmp.Or(got, strings.TrimPrefix(typeErr.Value, "number "))))
	}
	if err != nil {
		return invalid(errors.New(strings.TrimPrefix(err.Error(), "json: ")))
	}
	return nil
}

// describeType names the kind of value that a field of type t accepts.
func describeType(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "a list"
	case reflect.Map, reflect.Struct:
		return "an object"
	default:
		return "a whole number such as 1000"
	}
}

// parseSingleYAML parses a file that holds one YAML document. It fails if there is a second document.
func parseSingleYAML(b []byte) (tree any, err error) {
	if !utf8.Valid(b) {
		return nil, errors.New("the file is not UTF-8; save it as UTF-8")
	}
	dec := yaml.NewDecoder(bytes.NewReader(b))
	if err := dec.Decode(&tree); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	var more any
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, errors.New("the file has more than one document; put each document in its own file")
	}
	return tree, nil
}

// readArguments returns a call's arguments from the command line: JSON, @file, or - for standard input. It sends
// invalid JSON as a string, which the gate repairs or rejects with a detailed error.
func (a *app) readArguments(args []string) (json.RawMessage, error) {
	if len(args) == 0 {
		return json.RawMessage("{}"), nil
	}
	b := []byte(args[0])
	var err error
	if name, ok := strings.CutPrefix(args[0], "@"); ok {
		b, err = a.readInput(name)
	} else if args[0] == "-" {
		b, err = a.readInput("-")
	}
	if err != nil {
		return nil, err
	}
	if b = bytes.TrimSpace(b); json.Valid(b) {
		return b, nil
	}
	return json.Marshal(string(b))
}

// parseObjectFlag returns the JSON object in a flag's value, or nil if the value is empty.
func parseObjectFlag(flag, value string) (json.RawMessage, error) {
	if value == "" {
		return nil, nil
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal([]byte(value), &m); err != nil || m == nil {
		return nil, usagef("--%s must be a JSON object, such as '{\"limit\":5}'", flag)
	}
	return json.RawMessage(value), nil
}
