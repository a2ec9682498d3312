package gate

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"reeve"
)

// The validation of arguments ends early if a schema multiplies the work: at each of its levels, at each level of the
// arguments, under not, with a format, and behind a dynamic reference.
func TestI10_ValidationIsLimited(t *testing.T) {
	t.Parallel()
	nested := strings.Repeat(`{"a":`, 30) + `1` + strings.Repeat(`}`, 30)
	levels := `"l0":{"type":"string"}`
	for i := range 9 {
		levels += fmt.Sprintf(`,"l%d":{"anyOf":[%s{"$ref":"#/$defs/l%d"}]}`, i+1,
			strings.Repeat(fmt.Sprintf(`{"$ref":"#/$defs/l%d"},`, i), 7), i)
	}
	const twice = `{"properties":{"a":{"allOf":[{"$ref":"#/$defs/x"},{"$ref":"#/$defs/x"}]}}}`
	for name, c := range map[string]struct{ text, args string }{
		"levels of the schema":    {`{"$ref":"#/$defs/l9","$defs":{` + levels + `}}`, `{"a":1}`},
		"levels of the arguments": {`{"$ref":"#/$defs/x","$defs":{"x":` + twice + `}}`, nested},
		"not":                     {`{"not":{"$ref":"#/$defs/l9"},"$defs":{` + levels + `}}`, `{"a":1}`},
		"a format": {`{"$schema":"http://json-schema.org/draft-07/schema#","allOf":[{"$ref":"#/definitions/x"}],
			"definitions":{"x":{"format":"date","properties":{"a":{"allOf":[
			{"$ref":"#/definitions/x"},{"$ref":"#/definitions/x"}]}}}}}`, nested},
		"a dynamic reference": {`{"$dynamicRef":"#n","$defs":{"x/%":{"$dynamicAnchor":"n","properties":{"a":{"allOf":[
			{"$ref":"#/$defs/x~1%25"},{"$ref":"#/$defs/x~1%25"}]}}}}}`, nested},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := compile([]byte(c.text))
			if err != nil {
				t.Fatal(err)
			}
			p := newTestDecider(reeve.Call{Tool: "wide", Args: json.RawMessage(c.args)}, s)
			_, err = p.checkArguments(t.Context())
			if got := reeve.AsError(err); got.Code != reeve.Validation ||
				!strings.Contains(got.Message, "takes too long") ||
				!strings.Contains(got.Hint, "the author of the tool") {
				t.Errorf("%+v", got)
			}
			if fields := s.check(map[string]any{}, ""); len(fields) == 1 && fields[0].Message == messageTooComplex &&
				strings.Contains(c.text, `"properties"`) {
				t.Errorf("a small value is refused after a large one: %v", fields)
			}
		})
	}
}

// Long and simple arguments are validated completely.
func TestI10_LongArguments(t *testing.T) {
	t.Parallel()
	s, err := compile([]byte(
		`{"properties":{"list":{"items":{"anyOf":[{"type":"string"},{"$ref":"#/$defs/n"}]}}},
		"$defs":{"n":{"type":"integer"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	list := make([]any, 50_000)
	for i := range list {
		list[i] = json.Number("1")
	}
	if fields := s.check(map[string]any{"list": list}, ""); len(fields) > 0 {
		t.Error(fields)
	}
	list[len(list)-1] = true
	if fields := s.check(map[string]any{"list": list}, ""); len(fields) != 2 || fields[0].Path != "/list/49999" {
		t.Error(fields)
	}
}

// Arguments with too many values are refused before they are validated.
func TestI10_TooManyArgumentValues(t *testing.T) {
	t.Parallel()
	s, err := compile([]byte(`{"properties":{"list":{"items":{"type":"string"}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	args := `{"list":[` + strings.Repeat("0,", maxArgumentParts) + `0]}`
	p := newTestDecider(reeve.Call{Tool: "many", Args: json.RawMessage(args)}, s)
	if _, err := p.checkArguments(t.Context()); reeve.CodeOf(err) != reeve.TooLarge {
		t.Error(err)
	}
}
