package reeve_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"reeve"
)

// schemaOf returns the decoded schema of T.
func schemaOf[T any](t *testing.T) map[string]any {
	t.Helper()
	b, err := reeve.SchemaFor[T]()
	if err != nil {
		t.Fatal(err)
	}
	return tree(t, string(b))
}

func tree(t *testing.T, text string) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func sameSchema(t *testing.T, got map[string]any, want string) {
	t.Helper()
	if w := tree(t, want); !reflect.DeepEqual(got, w) {
		g, _ := json.MarshalIndent(got, "", "  ")
		t.Errorf("schema:\n%s\nwant:\n%s", g, want)
	}
}

func object(properties, required string) string {
	s := `{"type":"object","additionalProperties":false,"properties":{` + properties + `}`
	if required != "" {
		s += `,"required":[` + required + `]`
	}
	return s + `}`
}

func TestO22_SchemaFromTags(t *testing.T) {
	type in struct {
		To       string  `json:"to" doc:"Who gets it" minLength:"3" maxLength:"80" pattern:"^[^@]+@[^@]+$"`
		Priority int     `json:"priority,omitempty" minimum:"1" maximum:"5" default:"3"`
		Share    float64 `json:"share,omitempty" minimum:"0.5"`
		Tone     string  `json:"tone,omitempty" enum:"warm,cool" default:"warm"`
		Copies   []int   `json:"copies,omitempty" minItems:"1" maxItems:"4"`
		Urgent   bool    `json:"urgent,omitzero"`
		Plain    string
		Hidden   string `json:"-"`
		private  string
	}
	_ = in{}.private
	sameSchema(t, schemaOf[in](t), object(`
		"to":{"type":"string","description":"Who gets it","minLength":3,"maxLength":80,"pattern":"^[^@]+@[^@]+$"},
		"priority":{"type":"integer","minimum":1,"maximum":5,"default":3},
		"share":{"type":"number","minimum":0.5},
		"tone":{"type":"string","enum":["warm","cool"],"default":"warm"},
		"copies":{"type":"array","items":{"type":"integer"},"minItems":1,"maxItems":4},
		"urgent":{"type":"boolean"},
		"Plain":{"type":"string"}`, `"to","Plain"`))
}

func TestO22_EnumValuesHaveTheFieldsType(t *testing.T) {
	type in struct {
		Size   int      `json:"size" enum:"1,2,3" default:"2"`
		Factor float64  `json:"factor" enum:"0.5,1,2"`
		Sure   bool     `json:"sure" enum:"true"`
		Days   []string `json:"days" enum:"mon,tue" default:"[\"mon\"]"`
	}
	sameSchema(t, schemaOf[in](t), object(`
		"size":{"type":"integer","enum":[1,2,3],"default":2},
		"factor":{"type":"number","enum":[0.5,1,2]},
		"sure":{"type":"boolean","enum":[true]},
		"days":{"type":"array","items":{"type":"string","enum":["mon","tue"]},"default":["mon"]}`, `"size","factor","sure","days"`))
}

// span encodes itself as text, as host.Duration does.
type span time.Duration

func (s *span) UnmarshalText(b []byte) error {
	d, err := time.ParseDuration(string(b))
	*s = span(d)
	return err
}

func TestO22_TypesThatWriteThemselves(t *testing.T) {
	type in struct {
		At    time.Time        `json:"at"`
		Until *time.Time       `json:"until"`
		Every span             `json:"every"`
		Raw   json.RawMessage  `json:"raw"`
		More  *json.RawMessage `json:"more"`
		Bytes []byte           `json:"bytes"`
		Any   any              `json:"any"`
	}
	sameSchema(t, schemaOf[in](t), object(`
		"at":{"type":"string","format":"date-time"},
		"until":{"type":"string","format":"date-time"},
		"every":{"type":"string"},
		"raw":true,"more":true,"any":true,
		"bytes":{"type":"string","contentEncoding":"base64"}`, `"at","every","raw","bytes","any"`))
}

func TestO22_NestedTypesAllowNoNull(t *testing.T) {
	type point struct {
		X int     `json:"x" minimum:"0"`
		Y *int    `json:"y"`
		L *string `json:"l" enum:"a,b"`
	}
	type in struct {
		Grid  [][]int            `json:"grid"`
		Path  []*point           `json:"path"`
		By    map[string][]point `json:"by"`
		Start *point             `json:"start"`
		Pair  [2]int             `json:"pair"`
	}
	point1 := object(`"x":{"type":"integer","minimum":0},"y":{"type":"integer"},"l":{"type":"string","enum":["a","b"]}`,
		`"x"`)
	sameSchema(t, schemaOf[in](t), object(`
		"grid":{"type":"array","items":{"type":"array","items":{"type":"integer"}}},
		"path":{"type":"array","items":`+point1+`},
		"by":{"type":"object","additionalProperties":{"type":"array","items":`+point1+`}},
		"start":`+point1+`,
		"pair":{"type":"array","items":{"type":"integer"},"minItems":2,"maxItems":2}`, `"grid","path","by","pair"`))
}

type paging struct {
	Limit int `json:"limit,omitempty" minimum:"1" maximum:"50"`
}

type inner struct {
	paging
	Query string `json:"query" minLength:"1"`
}

func TestO22_EmbeddedStructs(t *testing.T) {
	type in struct {
		inner
		*paging
		Name string `json:"name"`
	}
	sameSchema(t, schemaOf[inner](t),
		object(`"limit":{"type":"integer","minimum":1,"maximum":50},"query":{"type":"string","minLength":1}`,
			`"query"`))
	got := schemaOf[in](t)
	if _, ok := got["properties"].(map[string]any)["query"]; !ok {
		t.Errorf("a field of an embedded struct is missing: %v", got)
	}
}

func TestO22_BadTagsNameTheField(t *testing.T) {
	for name, make := range map[string]func() error{
		"minimum is no number": schemaError[struct {
			Wrong int `minimum:"few"`
		}],
		"minLength is negative": schemaError[struct {
			Wrong string `minLength:"-1"`
		}],
		"maxItems is a fraction": schemaError[struct {
			Wrong []int `maxItems:"1.5"`
		}],
		"minimum of a string": schemaError[struct {
			Wrong string `minimum:"1"`
		}],
		"maxLength of a number": schemaError[struct {
			Wrong int `maxLength:"1"`
		}],
		"minItems of a string": schemaError[struct {
			Wrong string `minItems:"1"`
		}],
		"pattern of a number": schemaError[struct {
			Wrong int `pattern:"^a"`
		}],
		"pattern that does not compile": schemaError[struct {
			Wrong string `pattern:"("`
		}],
		"enum of another type": schemaError[struct {
			Wrong int `enum:"1,two"`
		}],
		"enum of a struct": schemaError[struct {
			Wrong paging `enum:"a"`
		}],
		"enum out of bounds": schemaError[struct {
			Wrong int `enum:"1,9" maximum:"5"`
		}],
		"enum of fractions for integers": schemaError[struct {
			Wrong int `enum:"1.5"`
		}],
		"default of another type": schemaError[struct {
			Wrong int `default:"many"`
		}],
		"default out of bounds": schemaError[struct {
			Wrong int `default:"9" maximum:"5"`
		}],
		"default not in the enum": schemaError[struct {
			Wrong string `enum:"a,b" default:"c"`
		}],
		"default with a tail": schemaError[struct {
			Wrong int `default:"1 2"`
		}],
		"below a list": schemaError[struct {
			L []struct {
				Wrong int `minimum:"few"`
			}
		}],
		"below a map": schemaError[struct {
			M map[string]struct {
				Wrong int `minimum:"few"`
			}
		}],
		"an embedded struct with a name": schemaError[struct {
			Wrong `json:"paging"`
		}],
	} {
		if err := make(); err == nil || !strings.Contains(err.Error(), "field Wrong") {
			t.Errorf("%s: error %v does not name the field", name, err)
		}
	}
}

// Wrong is embedded with a JSON name. encoding/json would nest it.
type Wrong struct{ A int }

func schemaError[T any]() error {
	_, err := reeve.SchemaFor[T]()
	return err
}

func TestO22_UnsupportedTypesAreErrors(t *testing.T) {
	type cycle struct{ Next []cycle }
	for name, make := range map[string]func() error{
		"not a struct": schemaError[string],
		"a channel":    schemaError[struct{ C chan int }],
		"a function":   schemaError[struct{ F func() }],
		"a complex":    schemaError[struct{ C complex128 }],
		"a cycle":      schemaError[cycle],
		"an int key":   schemaError[struct{ M map[int]int }],
	} {
		if make() == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

type greetIn struct {
	Name string `json:"name" minLength:"1"`
}

func TestO22_TypedHandler(t *testing.T) {
	tool, err := reeve.NewTool(reeve.Tool{ID: "greet", Description: "Greets.", Effect: reeve.Read},
		func(ctx context.Context, in greetIn) (string, error) {
			return "hello " + in.Name + " from " + reeve.InvocationFrom(ctx).Agent, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	if tool.Tier != reeve.ReadOnly || tool.TimeoutMS == 0 || tool.Category != "general" || tool.HandlerKey != "greet" {
		t.Errorf("defaults: %+v", tool)
	}
	out, err := tool.Handler(t.Context(), &reeve.Invocation{Agent: "coach", Args: []byte(`{"name":"Ada"}`)})
	if err != nil || out != "hello Ada from coach" {
		t.Errorf("got %v, %v", out, err)
	}
	_, err = tool.Handler(t.Context(), &reeve.Invocation{Args: []byte(`{"name":7}`)})
	if reeve.CodeOf(err) != reeve.ToolFailed {
		t.Errorf("wrong types: %v", err)
	}
	type pageIn struct {
		After int64 `json:"after"`
	}
	_, err = reeve.Args[pageIn](&reeve.Invocation{Args: []byte(`{"after":9223372036854775808}`)})
	if got := fmt.Sprint(err); !strings.Contains(got, "argument after: the number 9223372036854775808 is out of range") {
		t.Errorf("a number that does not fit: %v", err)
	}
}

func TestO22_BadDeclarations(t *testing.T) {
	fn := func(context.Context, greetIn) (string, error) { return "", nil }
	good := reeve.Tool{ID: "greet", Description: "Greets."}
	for name, change := range map[string]func(*reeve.Tool){
		"id":          func(t *reeve.Tool) { t.ID = "no spaces" },
		"description": func(t *reeve.Tool) { t.Description = "" },
		"tier":        func(t *reeve.Tool) { t.Tier = "royal" },
		"effect":      func(t *reeve.Tool) { t.Effect = "magic" },
		"timeout_ms":  func(t *reeve.Tool) { t.TimeoutMS = -1 },
		"risk":        func(t *reeve.Tool) { t.Risk = "some" },
		"category":    func(t *reeve.Tool) { t.Category = "No Good" },
	} {
		bad := good
		change(&bad)
		_, err := reeve.NewTool(bad, fn)
		var e *reeve.Error
		if !errors.As(err, &e) || e.Code != reeve.Validation || len(e.Fields) == 0 || e.Fields[0].Path != "/"+name {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := reeve.NewTool[greetIn, string](good, nil); err == nil {
		t.Error("a tool without a handler was accepted")
	}
	if _, err := reeve.NewTool(good, func(context.Context, string) (string, error) { return "", nil }); err == nil {
		t.Error("arguments that are not a struct were accepted")
	}
	defer func() {
		if recover() == nil {
			t.Error("MustTool accepted an invalid declaration")
		}
	}()
	reeve.MustTool(reeve.Tool{}, fn)
}
