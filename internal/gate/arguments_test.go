package gate

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"reeve"
	"reeve/internal/canonjson"
	"reeve/internal/redact"
)

const testSchema = `{"type":"object","additionalProperties":false,"required":["name"],"properties":{
	"name":{"type":"string","minLength":2,"maxLength":5,"pattern":"^[a-z]+$"},
	"n":{"type":"integer","minimum":1,"maximum":10},
	"x":{"type":"number","minimum":-1000000},
	"on":{"type":"boolean"},
	"kind":{"enum":["a","b c",3]},
	"tags":{"type":"array","items":{"type":"integer"},"minItems":1,"maxItems":3,"uniqueItems":true},
	"o":{"type":"object","additionalProperties":false,"required":["id"],
		"properties":{"id":{"type":"integer"},"p":{"$ref":"#/$defs/point"}}},
	"maybe":{"type":["string","null"]},
	"big":{"type":"string"}},
	"$defs":{"point":{"type":"object","properties":{"x":{"type":"number"}}}}}`

// newTestDecider returns a decider for a call of a tool with a schema.
func newTestDecider(c reeve.Call, s *schema) *decider {
	view := &agentView{workspace: &workspaceView{redactor: redact.New(nil)}}
	return &decider{Decision: &Decision{request: &request{caller: caller{call: c, view: view}}, entry: &entry{args: s}}}
}

// checkTestArguments runs checkArguments with the test schema.
func checkTestArguments(t testing.TB, args string) (*decider, string, error) {
	s, err := compile([]byte(testSchema))
	if err != nil {
		t.Fatal(err)
	}
	p := newTestDecider(reeve.Call{Args: json.RawMessage(args)}, s)
	why, err := p.checkArguments(t.Context())
	return p, why, err
}

func TestValidArguments(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		`{"name":"ab"}`: `{"name":"ab"}`,
		` {"name":"ab","n":1.0,"x":1e2,"maybe":null} `: `{"maybe":null,"n":1,"name":"ab","x":100}`,
		`{"name":"ab","n":null}`:                       `{"name":"ab"}`,
		`{"name":"ab","n":"7","x":"-1.5","on":"true"}`: `{"n":7,"name":"ab","on":true,"x":-1.5}`,
		`{"name":"ab","tags":["1",2,"3"]}`:             `{"name":"ab","tags":[1,2,3]}`,
		`{"name":"ab","tags":"[1,2]"}`:                 `{"name":"ab","tags":[1,2]}`,
		`{"name":"ab","o":"{\"id\":\"4\"}"}`:           `{"name":"ab","o":{"id":4}}`,
		`{"name":"ab","o":{"id":1,"p":{"x":"2"}}}`:     `{"name":"ab","o":{"id":1,"p":{"x":2}}}`,
		`{"name":"ab","big":12345678901}`:              `{"big":"12345678901","name":"ab"}`,
		// a value without a type in the schema is not repaired
		`{"name":"ab","kind":3,"n":"7"}`:            `{"kind":3,"n":7,"name":"ab"}`,
		`"{\"name\":\"ab\"}"`:                       `{"name":"ab"}`,
		`"\"{\\\"name\\\":\\\"ab\\\"}\""`:           `{"name":"ab"}`,
		`{"name":"ab","big":"\ud83d\ude00 \u0000"}`: `{"big":"😀 \u0000","name":"ab"}`,
		`{"name":"ab","big":"ééééééééé"}`:           `{"big":"ééééééééé","name":"ab"}`,
	} {
		p, why, err := checkTestArguments(t, args)
		if err != nil || string(p.args) != want {
			t.Errorf("arguments %s: got %s (%s, %v), want %s", args, p.args, why, err, want)
		}
	}
}

func TestInvalidArguments(t *testing.T) {
	t.Parallel()
	for args, want := range map[string][]string{ // paths, or a part of the message
		``:                                       {"/name"},
		`null`:                                   {"/name"},
		`{}`:                                     {"/name"},
		`{"name":7.5,"n":true}`:                  {"/name", "/n"},
		`{"name":"ab","other":1}`:                {"/other"},
		`{"name":"A"}`:                           {"/name", "/name"},
		`{"name":"toolong"}`:                     {"/name"},
		`{"name":"ab","n":0}`:                    {"/n"},
		`{"name":"ab","n":11}`:                   {"/n"},
		`{"name":"ab","n":1.5}`:                  {"/n"},
		`{"name":"ab","n":"many"}`:               {"/n"},
		`{"name":"ab","kind":"c"}`:               {"/kind"},
		`{"name":"ab","tags":[]}`:                {"/tags"},
		`{"name":"ab","tags":[1,1]}`:             {"/tags"},
		`{"name":"ab","tags":[1,2,3,4]}`:         {"/tags"},
		`{"name":"ab","tags":["a",1,"b"]}`:       {"/tags/0", "/tags/2"},
		`{"name":"ab","o":{"p":{"x":[]},"q":1}}`: {"/o/id", "/o/p/x", "/o/q"},
		`{"name":null}`:                          {"/name"},
		`[1]`:                                    {""},
		`7`:                                      {""},
		`"just words"`:                           {"not valid JSON"},
		`"2026-02-30"`:                           {"not valid JSON"},
		`{"name":"ab"`:                           {"cut off"},
		`{"name":"a`:                             {"cut off"},
		`{"name":`:                               {"cut off"},
		`{"name":"ab"}{"name":"cd"}`:             {"2 JSON values"},
		`{"name":"ab"} {"name":"cd"} {"name":"ef"}`:                   {"3 JSON values"},
		`{"name":"ab"} trailing`:                                      {"more after"},
		`{"name":"ab","name":"cd"}`:                                   {"twice"},
		`{"name":"ab","x":1e400}`:                                     {"out of range"},
		`{"name":"ab","x":1e-2000000}`:                                {"out of range"},
		`{"name":"ab","n":0.` + strings.Repeat("1", 1<<20) + `}`:      {"longer than 2000"},
		`{"name":"ab","n":12345678901234567890}`:                      {"/n"},
		`{"name":"\ud800"}`:                                           {"lone surrogate"},
		"{\"name\":\"\xff\"}":                                         {"UTF-8"},
		"{\"name\":\"a\x00b\"}":                                       {"not valid JSON"},
		`{name:'ab'}`:                                                 {"not valid JSON"},
		strings.Repeat(`{"o":`, 200) + "1" + strings.Repeat("}", 200): {"nesting"},
		strings.Repeat(`{"o":`, 50):                                   {"cut off"},
		strings.Repeat(`[`, 100_000):                                  {"nesting"},
		strings.Repeat(`"`, 3):                                        {"not valid JSON"},
		`"\"\\\"{}\\\"\""`:                                            {"nested JSON strings"},
	} {
		_, _, err := checkTestArguments(t, args)
		var e *reeve.Error
		if !errors.As(err, &e) || e.Code != reeve.Validation {
			t.Errorf("%.60s: %v", args, err)
			continue
		}
		if len(want) > 0 && (want[0] == "" || want[0][0] == '/') {
			got := map[string]int{}
			for _, f := range e.Fields {
				got[f.Path]++
				if f.Message == "" || f.Expected == "" {
					t.Errorf("%s: %+v lacks a message or the expected value", args, f)
				}
			}
			for _, path := range want {
				if got[path] == 0 {
					t.Errorf("%s: fields %+v, want %s", args, e.Fields, want)
				}
			}
			if len(e.Fields) != len(want) {
				t.Errorf("%s: fields %+v, want %s", args, e.Fields, want)
			}
			continue
		}
		if !strings.Contains(e.Message, want[0]) || len(e.Fields) == 0 {
			t.Errorf("%.60s: %s, %+v, want %s", args, e.Message, e.Fields, want[0])
		}
	}
}

func TestExpectedNamesAllowedValues(t *testing.T) {
	t.Parallel()
	_, _, err := checkTestArguments(t, `{"name":"ab","kind":"c","n":99}`)
	for _, f := range reeve.AsError(err).Fields {
		switch f.Path {
		case "/kind":
			if f.Expected != `one of "a", "b c", 3` {
				t.Errorf("kind expects %s", f.Expected)
			}
		case "/n":
			if f.Expected != "at most 10" {
				t.Errorf("n expects %s", f.Expected)
			}
		}
	}
}

func TestRepairNotes(t *testing.T) {
	t.Parallel()
	_, why, err := checkTestArguments(t, `{"name":"ab","n":"7","x":null}`)
	if err != nil || !strings.Contains(why, "/n: a string, read as an integer") ||
		!strings.Contains(why, "/x: null, removed") {
		t.Errorf("%q, %v", why, err)
	}
	if _, why, _ = checkTestArguments(t, `{"name":"ab","n":7}`); why != "the arguments match the schema" {
		t.Errorf("valid arguments count as repaired: %s", why)
	}
}

// A schema may refer to its own definitions and to itself.
func TestSchemaReferences(t *testing.T) {
	t.Parallel()
	for text, ok := range map[string]bool{
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/b"}},"$defs":{"b":{"type":"string"}}}`: true,
		`{"type":"object","properties":{"a":{"$ref":"#"}}}`:                                         true,
		`{"type":"object","properties":{"a":{"$ref":"file:///etc/passwd"}}}`:                        false,
		`{"type":"object","properties":{"a":{"$ref":"http://example.com/x"}}}`:                      false,
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/none"}}}`:                              false,
		`{"type":"object","properties":{"a":{"type":"wrong"}}}`:                                     false,
		`{"type":"object","properties":{"a":{"pattern":"("}}}`:                                      false,
		`[]`: false, `{`: false,
	} {
		if _, err := compile([]byte(text)); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// resolveRef terminates for a schema whose references form a cycle.
func TestResolveRefOfCycle(t *testing.T) {
	t.Parallel()
	root := map[string]any{"$defs": map[string]any{"a": map[string]any{"$ref": "#/$defs/a"}}}
	resolveRef(map[string]any{"$ref": "#/$defs/a"}, root)
}

// Any input either leads to a validation error or to valid, canonical arguments.
func FuzzArguments(f *testing.F) {
	for _, s := range []string{`{"name":"ab"}`, `"{\"name\":\"ab\"}"`, `{"name":"ab"`, `{"name":"ab"}{}`,
		`{"name":"ab","n":"1","tags":["1"],"o":{"id":null}}`,
		`null`, "\xff", `{"name":"\ud800"}`, `{"name":"ab","x":1e400}`, `[[[[`, `{"name":"ab","maybe":null,"kind":3}`} {
		f.Add([]byte(s))
	}
	s, err := compile([]byte(testSchema))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, args []byte) {
		p := newTestDecider(reeve.Call{Args: args}, s)
		why, err := p.checkArguments(t.Context())
		if err != nil {
			if reeve.CodeOf(err) != reeve.Validation {
				t.Fatalf("%q: %v", args, err)
			}
			return
		}
		v, err := canonjson.Parse(p.args)
		if err != nil || why == "" {
			t.Fatalf("arguments %q: got %q, %v", args, p.args, err)
		}
		if fields := s.check(v, ""); len(fields) > 0 {
			t.Fatalf("%q passed as %s: %+v", args, p.args, fields)
		}
		again := newTestDecider(reeve.Call{Args: p.args}, s)
		if _, err := again.checkArguments(t.Context()); err != nil || string(again.args) != string(p.args) {
			t.Fatalf("arguments %s, checked again: got %s, %v", p.args, again.args, err)
		}
	})
}

// The notes of repairs are in a stable order.
func TestG05_RepairNotesAreOrdered(t *testing.T) {
	t.Parallel()
	sub := map[string]any{"type": "integer"}
	schema := map[string]any{"type": "object", "properties": map[string]any{"a": sub, "b": sub, "c": sub, "d": sub}}
	for range 20 {
		var r argumentRepair
		r.repairValue(map[string]any{"d": "4", "b": "2", "a": "1", "c": "3"}, schema, schema, "")
		const note = ": a string, read as an integer"
		if got := strings.Join(r.notes, ";"); got != "/a"+note+";/b"+note+";/c"+note+";/d"+note {
			t.Fatal(got)
		}
	}
}
