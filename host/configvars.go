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

// While the file is parsed, the name of a variable stands between these two marks instead of ${ and }. YAML gives no
// meaning to the marks, but braces have one in a list such as [${A}].
const (
	openMark  = "\uE000"
	closeMark = "\uE001"
)

var markedPattern = regexp.MustCompile(openMark + `([A-Za-z_][A-Za-z0-9_]*)` + closeMark)

// markVariables replaces ${NAME} in a file by the marked name. Lines stay the same.
func markVariables(b []byte) []byte {
	return variablePattern.ReplaceAll(b, []byte(openMark+"$1"+closeMark))
}

// unmarkVariables turns marked names in an error message back into ${NAME}.
func unmarkVariables(s string) string { return markedPattern.ReplaceAllString(s, "$${$1}") }

// expandVariables replaces the variables in a scalar value. It fails if one is not set. The value of a variable is
// plain text that can never add settings. If the whole value is one unquoted variable, its text may also be a number or
// a bool. If the expanded value is empty, the setting has its default, unless it is a string.
func (s *configSource) expandVariables(slot *ast.Node, t reflect.Type) error {
	text, isPlain := (*ast.StringNode)(nil), false
	switch n := (*slot).(type) {
	case *ast.LiteralNode:
		text = n.Value
	case *ast.StringNode:
		text, isPlain = n, n.Token.Type == token.StringType
	default:
		return nil
	}
	var missing string
	expand := func(v string) string {
		return markedPattern.ReplaceAllStringFunc(v, func(m string) string {
			v, ok := os.LookupEnv(markedPattern.FindStringSubmatch(m)[1])
			if !ok {
				missing = unmarkVariables(m)
			}
			return v
		})
	}
	isOnlyVariable := isPlain && markedPattern.FindString(text.Value) == text.Value
	if text.Value, text.Token.Value = expand(text.Value), expand(text.Token.Value); missing != "" {
		return s.errorAt(text.Token.Position.Line, "the environment variable %s is not set", missing)
	}
	switch {
	case t.Kind() == reflect.String:
	case strings.TrimSpace(text.Value) == "":
		*slot = ast.Null(token.New("null", "null", text.Token.Position))
	case isOnlyVariable:
		*slot = newScalarNode(token.New(text.Value, text.Value, text.Token.Position))
	}
	return nil
}

// newScalarNode returns the YAML node of a token.
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
