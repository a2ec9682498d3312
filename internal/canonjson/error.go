package canonjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Error says why a text is not acceptable JSON, and where.
type Error struct {
	Message string // what is wrong, without the position
	Offset  int    // bytes before the fault
	Line    int    // line of the fault, from 1
}

func (e *Error) Error() string {
	return fmt.Sprintf("not valid JSON: %s, at byte %d (line %d)", e.Message, e.Offset, e.Line)
}

func newError(src []byte, offset int, message string) *Error {
	return &Error{Message: message, Offset: offset, Line: 1 + bytes.Count(src[:offset], []byte{'\n'})}
}

// newSyntaxError translates the error of encoding/json for src.
func newSyntaxError(src []byte, err error) *Error {
	var se *json.SyntaxError
	if !errors.As(err, &se) {
		return newError(src, 0, err.Error())
	}
	offset, message := int(se.Offset), se.Error()
	switch {
	case offset >= len(src) && strings.HasPrefix(message, "unexpected end"):
		return newError(src, len(src), "the text is cut off inside a value")
	case strings.HasSuffix(message, "exceeded max depth"):
		return newError(src, offset, tooDeep)
	case strings.HasSuffix(message, "after top-level value"):
		return newError(src, offset-1, "more after the end of the value")
	}
	return newError(src, offset, strings.TrimPrefix(message, "json: "))
}
