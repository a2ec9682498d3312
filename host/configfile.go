package host

import (
	"bytes"
	"encoding"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"reeve"
)

// LoadConfig reads a reeve.yaml. Errors contain the line of the mistake. Relative paths in the file are relative to its
// directory.
func LoadConfig(file string) (cfg Config, err error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return cfg, reeve.Errorf(reeve.Validation, "cannot read the config file: %v", err)
	}
	source := &configSource{file: file, lines: map[string]int{}, anchors: map[string]ast.Node{}}
	body, err := source.parse(markVariables(bytes.TrimPrefix(b, []byte("\uFEFF")))) // without the byte order mark
	if err != nil || body == nil {
		return cfg, err
	}
	if err := source.checkNode(&body, reflect.TypeFor[Config](), ""); err != nil {
		return cfg, err
	}
	if err := yaml.NodeToValue(body, &cfg, yaml.Strict()); err != nil {
		return cfg, source.wrapDecodeError(err)
	}
	if setting, reason := cfg.findInvalidSetting(); setting != "" {
		return cfg, source.errorAt(source.findLine(setting), "%s: %s", setting, reason)
	}
	for _, path := range []*string{&cfg.Models.Script, &cfg.Models.Prices} {
		if *path != "" && !filepath.IsAbs(*path) {
			*path = filepath.Join(filepath.Dir(file), *path)
		}
	}
	cfg.source = source
	return cfg, nil
}

// addLine adds the file and line of a setting to an error that was found after the file was read. It changes only
// errors about one setting, which the file must contain.
func (c Config) addLine(err error) error {
	e := reeve.AsError(err)
	if len(e.Fields) != 1 {
		return err
	}
	located := *e
	located.Fields = nil
	if c.source != nil && c.source.lines[e.Fields[0].Path] > 0 {
		located.Message = fmt.Sprintf("%s, line %d: %s", c.source.file, c.source.lines[e.Fields[0].Path], e.Message)
	}
	return &located
}

// configSource is a config file and the positions of its settings.
type configSource struct {
	file    string
	lines   map[string]int      // line of each setting, such as python.memory_mb or http_allow.0
	anchors map[string]ast.Node // the values of YAML aliases
}

// findLine returns the line of a setting, or of the section that contains it.
func (s *configSource) findLine(setting string) int {
	for {
		if n, ok := s.lines[setting]; ok {
			return n
		}
		i := max(strings.LastIndexByte(setting, '.'), 0)
		if setting = setting[:i]; i == 0 {
			return 1
		}
	}
}

// errorAt returns a Validation error for a line. It does not quote the file, which may contain a key.
func (s *configSource) errorAt(line int, format string, args ...any) error {
	return reeve.Errorf(reeve.Validation, "%s, line %d: %s", s.file, line,
		unmarkVariables(fmt.Sprintf(format, args...))).
		Hintf("see docs/configuration.md for all settings")
}

// wrapDecodeError adds the file and line to an error of the YAML decoder.
func (s *configSource) wrapDecodeError(err error) error {
	if e := yaml.Error(nil); errors.As(err, &e) {
		return s.errorAt(e.GetToken().Position.Line, "%s", e.GetMessage())
	}
	return s.errorAt(1, "%v", err)
}

// parse returns the only YAML document of a file, or nil if the file is empty.
func (s *configSource) parse(b []byte) (body ast.Node, err error) {
	f, err := parser.ParseBytes(b, 0)
	if err != nil {
		return nil, s.wrapDecodeError(err)
	}
	for _, d := range f.Docs {
		switch d.Body.(type) {
		case nil, *ast.NullNode, *ast.DirectiveNode, *ast.CommentGroupNode:
			continue
		}
		if body != nil {
			first := d.Start
			if first == nil { // the first document ends with ..., and no --- follows
				first = d.Body.GetToken()
			}
			return nil, s.errorAt(first.Position.Line,
				"a second YAML document begins here; a config file must have one")
		}
		body = d.Body
	}
	return body, nil
}

// checkNode records the lines of settings and expands variables. It fails if a setting is unknown or has the wrong
// type.
func (s *configSource) checkNode(slot *ast.Node, t reflect.Type, path string) error {
	node := *slot
	switch n := node.(type) {
	case *ast.AnchorNode:
		err := s.checkNode(&n.Value, t, path)
		s.anchors[n.Name.String()] = n.Value // set after the value is checked, so an anchor cannot contain itself
		return err
	case *ast.TagNode: // ignored: the setting determines the type
		*slot = n.Value
		return s.checkNode(slot, t, path)
	case *ast.AliasNode:
		if node = s.anchors[n.Value.String()]; node == nil {
			return s.errorAt(n.Start.Position.Line, "the anchor &%s is not defined above", n.Value)
		}
	default:
		if err := s.expandVariables(slot, t); err != nil {
			return err
		}
		node = *slot
	}
	if _, isNull := node.(*ast.NullNode); isNull || node == nil {
		return nil
	}
	typeError := func(reason string) error {
		return s.errorAt(s.findLine(path), "%s%s", pathPrefix(path, ": "), reason)
	}
	switch m, isMap := node.(ast.MapNode); {
	case t.Kind() == reflect.Struct || t.Kind() == reflect.Map:
		if !isMap {
			return typeError("expected settings of the form name: value")
		}
		return s.checkEntries(m.MapRange(), t, path)
	case t.Kind() == reflect.Slice:
		list, ok := node.(*ast.SequenceNode)
		if !ok {
			return typeError("expected a list such as [a, b]")
		}
		for i, v := range list.Values {
			at := pathPrefix(path, ".") + strconv.Itoa(i)
			s.lines[at] = v.GetToken().Position.Line
			if err := s.checkNode(&list.Values[i], t.Elem(), at); err != nil {
				return err
			}
		}
	default:
		if reason := explainMismatch(node, t); reason != "" {
			return typeError(reason)
		}
	}
	return nil
}

// checkEntries checks the settings of a section.
func (s *configSource) checkEntries(m *ast.MapNodeIter, t reflect.Type, path string) error {
	for m.Next() {
		key, line := m.Key(), m.Key().GetToken().Position.Line
		if _, ok := key.(*ast.MergeKeyNode); ok {
			if err := s.checkNode(&m.KeyValue().Value, t, path); err != nil {
				return err
			}
			continue
		}
		name := key.GetToken().Value
		if markedPattern.MatchString(name) {
			return s.errorAt(line, "the name of a setting cannot contain a variable: %s", name)
		}
		at := pathPrefix(path, ".") + name
		s.lines[at] = line
		inner := t
		if t.Kind() == reflect.Map {
			inner = t.Elem()
		} else if f, ok := findField(t, name); ok {
			inner = f.Type
		} else {
			return s.errorAt(line, "unknown setting %s", at)
		}
		if err := s.checkNode(&m.KeyValue().Value, inner, at); err != nil {
			return err
		}
	}
	return nil
}

// explainMismatch returns why a value does not have the type of its setting, or an empty string.
func explainMismatch(node ast.Node, t reflect.Type) string {
	scalar, isScalar := node.(ast.ScalarNode)
	v := reflect.New(t)
	text, isText := v.Interface().(encoding.TextUnmarshaler)
	var err error
	if isText && isScalar {
		if err = text.UnmarshalText([]byte(getScalarText(node))); err != nil {
			return err.Error()
		}
		return ""
	}
	kind := map[reflect.Kind]string{reflect.Int: "an integer", reflect.Float64: "a number",
		reflect.Bool: "true or false", reflect.String: "a string"}[t.Kind()]
	if err = yaml.NodeToValue(node, v.Interface()); err == nil && isScalar && t.Kind() == reflect.Int {
		if f, ok := scalar.GetValue().(float64); ok && f != math.Trunc(f) { // the decoder would truncate it
			err = errors.New("a fraction")
		}
	}
	switch {
	case err == nil:
		return ""
	case isText:
		return "expected a duration such as 30s, 5m or 24h"
	case !isScalar:
		return "expected " + kind
	}
	return fmt.Sprintf("%q is not %s", getScalarText(node), kind)
}

// getScalarText returns the text of a scalar value.
func getScalarText(node ast.Node) string {
	if block, ok := node.(*ast.LiteralNode); ok {
		return strings.TrimRight(block.Value.Value, "\n")
	}
	return node.GetToken().Value
}

// findField returns the field of a section by its name in the file.
func findField(t reflect.Type, name string) (reflect.StructField, bool) {
	for i := range t.NumField() {
		if f := t.Field(i); f.Tag.Get("yaml") == name && name != "-" {
			return f, true
		}
	}
	return reflect.StructField{}, false
}

// pathPrefix returns a path followed by a separator, or an empty string for the whole file.
func pathPrefix(path, separator string) string {
	if path == "" {
		return ""
	}
	return path + separator
}
