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

// LoadConfig reads a reeve.yaml. A mistake is reported with its line.
func LoadConfig(file string) (cfg Config, err error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return cfg, reeve.Errorf(reeve.Validation, "the config file cannot be read: %v", err)
	}
	from := &configSource{file: file, lines: map[string]int{}, anchors: map[string]ast.Node{}}
	body, err := from.parse(markVariables(bytes.TrimPrefix(b, []byte("\uFEFF")))) // a mark that some editors put before UTF-8
	if err != nil || body == nil {
		return cfg, err
	}
	if err := from.checkNode(&body, reflect.TypeFor[Config](), ""); err != nil {
		return cfg, err
	}
	if err := yaml.NodeToValue(body, &cfg, yaml.Strict()); err != nil {
		return cfg, from.wrapDecodeError(err)
	}
	if setting, reason := cfg.findInvalidSetting(); setting != "" {
		return cfg, from.errorAt(from.findLine(setting), "%s: %s", setting, reason)
	}
	// files are beside the config that names them
	for _, path := range []*string{&cfg.Models.Script, &cfg.Models.Prices} {
		if *path != "" && !filepath.IsAbs(*path) {
			*path = filepath.Join(filepath.Dir(file), *path)
		}
	}
	cfg.source = from
	return cfg, nil
}

// addLine says where in the config file a mistake is that was found later, if it is the file's.
func (c Config) addLine(err error) error {
	e := reeve.AsError(err)
	if len(e.Fields) != 1 {
		return err
	}
	told := *e
	told.Fields = nil
	if c.source != nil && c.source.lines[e.Fields[0].Path] > 0 {
		told.Message = fmt.Sprintf("%s, line %d: %s", c.source.file, c.source.lines[e.Fields[0].Path], e.Message)
	}
	return &told
}

// configSource is a config file, and knows where its settings are.
type configSource struct {
	file    string
	lines   map[string]int      // by setting, as python.memory_mb or http_allow.0
	anchors map[string]ast.Node // what an alias stands for
}

// findLine is that of a setting, or of what it is part of.
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

// errorAt says where a mistake is. It does not show the lines around it: they may hold a key.
func (s *configSource) errorAt(line int, format string, args ...any) error {
	return reeve.Errorf(reeve.Validation, "%s, line %d: %s", s.file, line, unmarkVariables(fmt.Sprintf(format, args...))).
		Hintf("docs/configuration.md lists every setting")
}

// wrapDecodeError says what the YAML decoder could not read.
func (s *configSource) wrapDecodeError(err error) error {
	if e := yaml.Error(nil); errors.As(err, &e) {
		return s.errorAt(e.GetToken().Position.Line, "%s", e.GetMessage())
	}
	return s.errorAt(1, "%v", err)
}

// parse gives the one document that a file holds; nil when it says nothing.
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
			if first == nil { // it comes after the ... that ends the first
				first = d.Body.GetToken()
			}
			return nil, s.errorAt(first.Position.Line,
				"a second document begins here, which nobody would read; a config is one")
		}
		body = d.Body
	}
	return body, nil
}

// checkNode notes where settings are, puts variables in, and refuses what is no setting, or is of the wrong kind.
func (s *configSource) checkNode(slot *ast.Node, t reflect.Type, path string) error {
	node := *slot
	switch n := node.(type) {
	case *ast.AnchorNode:
		err := s.checkNode(&n.Value, t, path)
		s.anchors[n.Name.String()] = n.Value // from here on: it cannot hold itself
		return err
	case *ast.TagNode: // of which kind a value is, its setting says
		*slot = n.Value
		return s.checkNode(slot, t, path)
	case *ast.AliasNode:
		if node = s.anchors[n.Value.String()]; node == nil {
			return s.errorAt(n.Start.Position.Line, "nothing before it is called &%s", n.Value)
		}
	default:
		if err := s.expandVariables(slot, t); err != nil {
			return err
		}
		node = *slot
	}
	if _, unsaid := node.(*ast.NullNode); unsaid || node == nil {
		return nil
	}
	of := func(kind string) error { return s.errorAt(s.findLine(path), "%s%s", pathPrefix(path, ": "), kind) }
	switch m, isMap := node.(ast.MapNode); {
	case t.Kind() == reflect.Struct || t.Kind() == reflect.Map:
		if !isMap {
			return of("here belong settings, each like name: value")
		}
		return s.checkEntries(m.MapRange(), t, path)
	case t.Kind() == reflect.Slice:
		list, ok := node.(*ast.SequenceNode)
		if !ok {
			return of("here belongs a list, like [a, b]")
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
			return of(reason)
		}
	}
	return nil
}

// checkEntries walks the settings of a section.
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
			return s.errorAt(line, "a variable cannot stand in a name: %s", name)
		}
		at := pathPrefix(path, ".") + name
		s.lines[at] = line
		inner := t
		if t.Kind() == reflect.Map {
			inner = t.Elem()
		} else if f, ok := findField(t, name); ok {
			inner = f.Type
		} else {
			return s.errorAt(line, "there is no setting %s", at)
		}
		if err := s.checkNode(&m.KeyValue().Value, inner, at); err != nil {
			return err
		}
	}
	return nil
}

// explainMismatch says in words why a value is not of a setting's kind, or nothing.
func explainMismatch(node ast.Node, t reflect.Type) string {
	scalar, single := node.(ast.ScalarNode)
	v := reflect.New(t)
	text, spelt := v.Interface().(encoding.TextUnmarshaler)
	var err error
	if spelt && single {
		if err = text.UnmarshalText([]byte(getScalarText(node))); err != nil {
			return err.Error()
		}
		return ""
	}
	kind := map[reflect.Kind]string{reflect.Int: "a whole number", reflect.Float64: "a number",
		reflect.Bool: "true or false", reflect.String: "a text"}[t.Kind()]
	if err = yaml.NodeToValue(node, v.Interface()); err == nil && single && t.Kind() == reflect.Int {
		if f, ok := scalar.GetValue().(float64); ok && f != math.Trunc(f) { // which the decoder would cut off
			err = errors.New("a fraction")
		}
	}
	switch {
	case err == nil:
		return ""
	case spelt:
		return "here belongs a time span like 30s, 5m or 24h"
	case !single:
		return "here belongs one value: " + kind
	}
	return fmt.Sprintf("%q is not %s", getScalarText(node), kind)
}

// getScalarText is the text of a single value.
func getScalarText(node ast.Node) string {
	if block, ok := node.(*ast.LiteralNode); ok {
		return strings.TrimRight(block.Value.Value, "\n")
	}
	return node.GetToken().Value
}

// findField is a section's field by its name in the file.
func findField(t reflect.Type, name string) (reflect.StructField, bool) {
	for i := range t.NumField() {
		if f := t.Field(i); f.Tag.Get("yaml") == name && name != "-" {
			return f, true
		}
	}
	return reflect.StructField{}, false
}

// pathPrefix is a path with what parts it from what follows; of the whole file it is empty.
func pathPrefix(path, part string) string {
	if path == "" {
		return ""
	}
	return path + part
}
