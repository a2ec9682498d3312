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

func VerifySpec(w *Witness, more map[string]any) map[string]any {
	v := map[string]any{"url": w.URL + "/sent/{operation_id}"}
	for k, x := range more {
		v[k] = x
	}
	return map[string]any{"verify": v}
}

// AsyncTool is an asynchronous tool that somebody else brings to its end.
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

func AnswerLater(context.Context, *reeve.Invocation) (any, error) {
	return nil, reeve.Errorf(reeve.InProgress, "it will come")
}

// AnyObject is a schema that takes every object.
const AnyObject = `{"type":"object"}`

// Tool is a declaration with a handler, allowed without approval unless it says otherwise.
func Tool(id string, effect reeve.Effect, h reeve.Handler) reeve.Tool {
	t := reeve.Tool{ID: id, Description: "A tool of a test.", Effect: effect, Tier: reeve.SideEffecting,
		Parameters: json.RawMessage(AnyObject), Handler: h}
	if effect == reeve.Read {
		t.Tier = reeve.ReadOnly
	}
	return t
}

// Counter is a handler that counts.
type Counter struct{ N atomic.Int64 }

func (c *Counter) Handle(context.Context, *reeve.Invocation) (any, error) {
	return fmt.Sprintf("call %d", c.N.Add(1)), nil
}

func (c *Counter) Count() int { return int(c.N.Load()) }

// DefineHTTPTool makes a tool of kind http that posts to an address, and returns its id.
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

// ClosedPort is an address where nobody listens, and nobody will: a port that was free a moment ago may be somebody's
// in the next.
const ClosedPort = "http://127.0.0.1:1"

// ToolReturning is a tool whose output, or error, is what its test says.
func ToolReturning(id string, out func() (any, error)) reeve.Tool {
	return Tool(id, reeve.Read, func(context.Context, *reeve.Invocation) (any, error) { return out() })
}

// BlockingTool is a read that waits until it is let go, so that a test can act while a run is under way.
type BlockingTool struct{ Reached, Release chan struct{} }

func NewBlockingTool() *BlockingTool {
	return &BlockingTool{Reached: make(chan struct{}, 10), Release: make(chan struct{})}
}

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
