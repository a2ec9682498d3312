package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/goccy/go-yaml"

	"reeve"
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

// document reads a JSON or YAML document into v. A field that v does not have is an error: a misspelt one must not be lost.
func (a *app) document(name string, v any) error {
	b, err := a.read(name)
	if err != nil {
		return err
	}
	wrong := func(err error) error {
		return &reeve.Error{Code: reeve.Validation, Message: name + ": " + err.Error(), Err: err}
	}
	if !json.Valid(b) {
		var tree any
		if err := yaml.Unmarshal(b, &tree); err != nil {
			return wrong(err)
		}
		if b, err = json.Marshal(tree); err != nil {
			return wrong(err)
		}
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return wrong(fmt.Errorf("%s", strings.TrimPrefix(err.Error(), "json: ")))
	}
	return nil
}

// arguments gives a call's arguments from the command line: JSON, @file, or - for the standard input. What is not valid JSON
// goes as text: the gate repairs it by its rules or says exactly what is wrong with it.
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
