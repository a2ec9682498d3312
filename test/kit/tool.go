package kit

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync/atomic"

	"reeve"
	"reeve/reevetest"
)

// VerifySpec returns the part of an HTTP tool's spec that looks an operation up at the witness. more adds settings of
// the lookup.
func VerifySpec(w *Witness, more map[string]any) map[string]any {
	v := map[string]any{"url": w.URL + "/sent/{operation_id}"}
	for k, x := range more {
		v[k] = x
	}
	return map[string]any{"verify": v}
}

// AsyncTool returns an asynchronous tool whose calls end when a test reports their outcome.
func AsyncTool(id string, effect reeve.Effect, h reeve.Handler) reeve.Tool {
	t := Tool(id, effect, h)
	t.Async, t.TimeoutMS = true, 60_000
	if effect == reeve.Verifiable {
		t.Verify = func(context.Context, *reeve.Invocation) (reeve.Outcome, any, error) {
			return reeve.CannotTell, nil, nil
		}
	}
	return t
}

// AnswerLater is the handler of an asynchronous tool that only accepts the call.
func AnswerLater(context.Context, *reeve.Invocation) (any, error) {
	return nil, reeve.Errorf(reeve.InProgress, "it will come")
}

// AnyObject is a schema that accepts every object.
const AnyObject = `{"type":"object"}`

// Tool returns a tool with a handler that needs no approval.
func Tool(id string, effect reeve.Effect, h reeve.Handler) reeve.Tool {
	t := reeve.Tool{ID: id, Description: "A tool of a test.", Effect: effect, Tier: reeve.SideEffecting,
		Parameters: json.RawMessage(AnyObject), Handler: h}
	if effect == reeve.Read {
		t.Tier = reeve.ReadOnly
	}
	return t
}

// Counter is a handler that counts its calls.
type Counter struct{ N atomic.Int64 }

// Handle counts a call and returns its number as text.
func (c *Counter) Handle(context.Context, *reeve.Invocation) (any, error) {
	return fmt.Sprintf("call %d", c.N.Add(1)), nil
}

// Count returns the number of calls.
func (c *Counter) Count() int { return int(c.N.Load()) }

// DefineHTTPTool creates a tool of kind http over REST. more overrides fields of the request.
func DefineHTTPTool(h *reevetest.Host, id string, effect reeve.Effect, spec map[string]any, more map[string]any) {
	h.T.Helper()
	body := map[string]any{"id": id, "kind": "http", "description": "Posts.", "effect": effect,
		"tier": "side_effecting", "parameters": json.RawMessage(AnyObject),
		"spec": spec, "timeout_ms": 2000}
	for k, v := range more {
		body[k] = v
	}
	h.Want(http.StatusCreated, nil, "POST", "/api/tools", body)
}

// ClosedPort is an address at which no server listens. A port that was free a moment ago could be in use again.
const ClosedPort = "http://127.0.0.1:1"

// ToolReturning returns a read whose output or error comes from a function.
func ToolReturning(id string, out func() (any, error)) reeve.Tool {
	return Tool(id, reeve.Read, func(context.Context, *reeve.Invocation) (any, error) { return out() })
}

// BlockingTool is a read named hold that waits until Release is closed, so that a test can act while a run is in
// progress. It sends to Reached when it begins.
type BlockingTool struct{ Reached, Release chan struct{} }

// NewBlockingTool returns a BlockingTool that has not been released.
func NewBlockingTool() *BlockingTool {
	return &BlockingTool{Reached: make(chan struct{}, 10), Release: make(chan struct{})}
}

// Tool returns the tool.
func (g *BlockingTool) Tool() reeve.Tool {
	x := Tool("hold", reeve.Read, func(ctx context.Context, _ *reeve.Invocation) (any, error) {
		g.Reached <- struct{}{}
		select {
		case <-g.Release:
			return "go", nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
	x.TimeoutMS = 60_000
	return x
}
