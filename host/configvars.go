package host

import (
	"os"
	"reflect"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

var variablePattern = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// While the file is parsed a variable is a word between these, which mean nothing to YAML; the braces would, in a list
// like [${A}].
const (
	openMark  = "\uE000"
	closeMark = "\uE001"
)

var markedPattern = regexp.MustCompile(openMark + `([A-Za-z_][A-Za-z0-9_]*)` + closeMark)

// markVariables makes words of the variables in a file, which stays on its lines.
func markVariables(b []byte) []byte { return variablePattern.ReplaceAll(b, []byte(openMark+"$1"+closeMark)) }

// unmarkVariables is a text with its variables as they were written.
func unmarkVariables(s string) string { return markedPattern.ReplaceAllString(s, "$${$1}") }

// expandVariables puts variables into a single value: they are text in it, whatever they hold, and never more than that. It fails
// on one that is not set: a half-configured server is worse than none. A value that is nothing but a variable, without
// quotes, is a number or a truth where that belongs. One that is left empty is unsaid, unless it is a text.
func (s *configSource) expandVariables(slot *ast.Node, t reflect.Type) error {
	text, plain := (*ast.StringNode)(nil), false
	switch n := (*slot).(type) {
	case *ast.LiteralNode:
		text = n.Value
	case *ast.StringNode:
		text, plain = n, n.Token.Type == token.StringType
	default:
		return nil
	}
	var missing string
	put := func(v string) string {
		return markedPattern.ReplaceAllStringFunc(v, func(m string) string {
			v, ok := os.LookupEnv(markedPattern.FindStringSubmatch(m)[1])
			if !ok {
				missing = unmarkVariables(m)
			}
			return v
		})
	}
	alone := plain && markedPattern.FindString(text.Value) == text.Value
	if text.Value, text.Token.Value = put(text.Value), put(text.Token.Value); missing != "" {
		return s.errorAt(text.Token.Position.Line, "the variable in %s is not set", missing)
	}
	switch {
	case t.Kind() == reflect.String:
	case strings.TrimSpace(text.Value) == "":
		*slot = ast.Null(token.New("null", "null", text.Token.Position))
	case alone:
		*slot = newScalarNode(token.New(text.Value, text.Value, text.Token.Position))
	}
	return nil
}

// newScalarNode is the value that a token is by itself.
func newScalarNode(t *token.Token) ast.Node {
	switch t.Type {
	case token.IntegerType, token.BinaryIntegerType, token.OctetIntegerType, token.HexIntegerType:
		return ast.Integer(t)
	case token.FloatType:
		return ast.Float(t)
	case token.BoolType:
		return ast.Bool(t)
	case token.InfinityType:
		return ast.Infinity(t)
	case token.NanType:
		return ast.Nan(t)
	case token.NullType:
		return ast.Null(t)
	default:
		return ast.String(token.String(t.Value, t.Origin, t.Position))
	}
}
