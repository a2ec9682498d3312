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

// read gives a file's content; "-" is the standard input.
func (a *app) read(name string) ([]byte, error) {
	if name == "-" {
		b, err := io.ReadAll(a.in)
		if err != nil {
			return nil, fmt.Errorf("the standard input cannot be read: %w", err)
		}
		return b, nil
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, reeve.Errorf(reeve.NotFound, "%w", err)
	}
	return b, nil
}

// document reads a JSON or YAML document into v. A field that v does not have is an error, and so is one that is there
// twice, or text that is not UTF-8: what was said must not be lost.
func (a *app) document(name string, v any) error {
	b, err := a.read(name)
	if err != nil {
		return err
	}
	wrong := func(err error) error {
		return &reeve.Error{Code: reeve.Validation, Message: name + ": " + err.Error(), Err: err}
	}
	if b = bytes.TrimPrefix(b, []byte("\ufeff")); json.Valid(b) {
		if _, err := canonjson.Parse(b); err != nil {
			return wrong(err)
		}
	} else {
		tree, err := onlyDocument(b)
		if err != nil {
			return wrong(err)
		}
		if b, err = json.Marshal(tree); err != nil {
			return wrong(err)
		}
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	err = dec.Decode(v)
	var misfit *json.UnmarshalTypeError
	if errors.As(err, &misfit) {
		is := map[string]string{"array": "a list", "object": "an object", "string": "text",
			"bool": "true or false"}[misfit.Value]
		return wrong(fmt.Errorf("%s cannot be %s: here belongs %s", cmp.Or(misfit.Field, "the document"),
			cmp.Or(is, "a number"), belongs(misfit.Type)))
	}
	if err != nil {
		return wrong(errors.New(strings.TrimPrefix(err.Error(), "json: ")))
	}
	return nil
}

// belongs says what a field takes.
func belongs(t reflect.Type) string {
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
		return "a whole number, like 1000"
	}
}

// onlyDocument reads the one YAML document that a file holds. What a second one says must not be lost.
func onlyDocument(b []byte) (tree any, err error) {
	if !utf8.Valid(b) {
		return nil, errors.New("there are bytes in it that are not UTF-8: save it as UTF-8")
	}
	dec := yaml.NewDecoder(bytes.NewReader(b))
	if err := dec.Decode(&tree); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	var more any
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more than one document in it: put each into a file of its own")
	}
	return tree, nil
}

// arguments gives a call's arguments from the command line: JSON, @file, or - for the standard input. What is not valid
// JSON goes as text: the gate repairs it by its rules or says exactly what is wrong with it.
func (a *app) arguments(args []string) (json.RawMessage, error) {
	if len(args) == 0 {
		return json.RawMessage("{}"), nil
	}
	b := []byte(args[0])
	var err error
	if name, ok := strings.CutPrefix(args[0], "@"); ok {
		b, err = a.read(name)
	} else if args[0] == "-" {
		b, err = a.read("-")
	}
	if err != nil {
		return nil, err
	}
	if b = bytes.TrimSpace(b); json.Valid(b) {
		return b, nil
	}
	return json.Marshal(string(b))
}

// object gives a flag's JSON object, or nothing when the flag was not given.
func object(flag, value string) (json.RawMessage, error) {
	if value == "" {
		return nil, nil
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal([]byte(value), &m); err != nil || m == nil {
		return nil, usagef("--%s takes a JSON object, such as '{\"limit\":5}'", flag)
	}
	return json.RawMessage(value), nil
}
