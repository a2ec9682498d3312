package toolgen_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"

	"reeve"
	"reeve/examples/toolgen"
)

// tool returns one of the package's tools.
func tool(t *testing.T, id string) reeve.Tool {
	t.Helper()
	for _, have := range toolgen.Tools() {
		if have.ID == id {
			return have
		}
	}
	t.Fatalf("there is no tool %s", id)
	return reeve.Tool{}
}

func call(t *testing.T, id, args string) (any, error) {
	t.Helper()
	return tool(t, id).Handler(t.Context(), &reeve.Invocation{Args: json.RawMessage(args)})
}

func TestO22_FunctionsAreCalledAsTools(t *testing.T) {
	for _, c := range []struct {
		id, args string
		want     any
	}{
		{"convert_temperature", `{"degrees": 100, "from": "C"}`, "212.0 F"},
		{"summarize_readings", `{"place": "Oslo", "readings": [3, -1, 2]}`, toolgen.Extremes{Place: "Oslo", Count: 3,
			Low: -1, High: 3}},
		{"summarize_readings", `{"place": "Oslo", "readings": [3, -99, 2], "ignore_below": -60}`,
			toolgen.Extremes{Place: "Oslo", Count: 2, Low: 2, High: 3}},
	} {
		have, err := call(t, c.id, c.args)
		if err != nil || !reflect.DeepEqual(have, c.want) {
			t.Errorf("%s %s: %v, %v; want %v", c.id, c.args, have, err, c.want)
		}
	}
	var refused *reeve.Error
	if _, err := call(t, "convert_temperature", `{"degrees": 1, "from": "K"}`); !errors.As(err, &refused) ||
		refused.Code != reeve.ToolFailed {
		t.Errorf("an unknown unit: %v", err)
	}
}

func TestO22_NamesCommentsAndTypesAreTheSchema(t *testing.T) {
	// The equivalent typed handler, written by hand.
	type args struct {
		Place       string    `json:"place"`
		Readings    []float64 `json:"readings" doc:"Temperatures in degrees Celsius"`
		IgnoreBelow *float64  `json:"ignore_below,omitempty" doc:"Ignore readings below this temperature. Default: use all readings"`
	}
	want, err := reeve.SchemaFor[args]()
	if err != nil {
		t.Fatal(err)
	}
	have := tool(t, "summarize_readings")
	if string(have.Parameters) != string(want) {
		t.Errorf("have %s\nwant %s", have.Parameters, want)
	}
	var schema struct{ Required []string }
	if err := json.Unmarshal(have.Parameters, &schema); err != nil ||
		!reflect.DeepEqual(schema.Required, []string{"place", "readings"}) {
		t.Errorf("required: %q, %v", schema.Required, err)
	}
	const text = "summarize_readings returns the number, the lowest and the highest of the readings at a place.\n\n" +
		"Set ignore_below to exclude very low readings, which may be faults of the instrument."
	if have.Description != text {
		t.Errorf("described as %q", have.Description)
	}
}

func TestO22_DirectivesAreTheDeclaration(t *testing.T) {
	have := tool(t, "convert_temperature")
	if have.Name != "Convert a temperature" || have.Effect != reeve.Read || have.Tier != reeve.ReadOnly ||
		have.Category != "weather" ||
		have.TimeoutMS != 2000 {
		t.Errorf("declared as %+v", have)
	}
	for _, tool := range toolgen.Tools() {
		if err := tool.Validate(); err != nil {
			t.Error(err)
		}
	}
}
