package reeve

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
)

// NewTool returns t with fn as its handler. If t.Parameters is nil, the schema of the arguments is [SchemaFor] of In.
// If t.OutputSchema is nil and Out is a struct, the schema of the results is that of Out. Unset fields get the
// defaults of [Tool.WithDefaults]. NewTool fails if the declaration is not valid.
func NewTool[In, Out any](t Tool, fn func(context.Context, In) (Out, error)) (Tool, error) {
	if fn == nil {
		return t, Errorf(Validation, "tool %s has no function", t.ID)
	}
	if t.Parameters == nil {
		s, err := SchemaFor[In]()
		if err != nil {
			return t, Errorf(Validation, "tool %s: %w", t.ID, err)
		}
		t.Parameters = s
	}
	if t.OutputSchema == nil {
		t.OutputSchema = resultSchema(reflect.TypeFor[Out]())
		t.outputFromType = t.OutputSchema != nil
	}
	t.Handler = func(ctx context.Context, inv *Invocation) (any, error) {
		in, err := Args[In](inv)
		if err != nil {
			return nil, err
		}
		return fn(WithInvocation(ctx, inv), in)
	}
	t = t.WithDefaults()
	return t, t.Validate()
}

// MustTool is like [NewTool] but panics if the declaration is not valid.
func MustTool[In, Out any](t Tool, fn func(context.Context, In) (Out, error)) Tool {
	t, err := NewTool(t, fn)
	if err != nil {
		panic(err)
	}
	return t
}

// Args decodes the arguments of an invocation. They match the tool's schema, so an error means that In does not.
func Args[In any](inv *Invocation) (In, error) {
	var in In
	if err := json.Unmarshal(inv.Args, &in); err != nil {
		if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && strings.HasPrefix(t.Value, "number ") {
			return in, Errorf(ToolFailed, "argument %s: the %s is out of range", t.Field, t.Value).
				Hintf("use a whole number nearer to zero")
		}
		return in, Errorf(ToolFailed, "the arguments match the tool's schema but not its Go type: %w", err)
	}
	return in, nil
}
