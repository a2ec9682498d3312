package reeve

import (
	"context"
	"encoding/json"
)

// NewTool makes a tool of a typed function. The schema of its arguments is [SchemaFor] In, unless t brings its own.
// What t leaves unsaid gets the defaults of [Tool.WithDefaults].
func NewTool[In, Out any](t Tool, fn func(context.Context, In) (Out, error)) (Tool, error) {
	if fn == nil {
		return t, Errorf(Validation, "the tool %s has no function", t.ID)
	}
	if t.Parameters == nil {
		s, err := SchemaFor[In]()
		if err != nil {
			return t, Errorf(Validation, "the tool %s: %w", t.ID, err)
		}
		t.Parameters = s
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

// MustTool is [NewTool] for declarations that are known to be right: it panics on one that is not.
func MustTool[In, Out any](t Tool, fn func(context.Context, In) (Out, error)) Tool {
	t, err := NewTool(t, fn)
	if err != nil {
		panic(err)
	}
	return t
}

// Args decodes an invocation's arguments. They have been validated, so a failure is a fault of the tool's own types.
func Args[In any](inv *Invocation) (In, error) {
	var in In
	if err := json.Unmarshal(inv.Args, &in); err != nil {
		return in, Errorf(ToolFailed, "the arguments do not fit the tool's own types: %w", err)
	}
	return in, nil
}
