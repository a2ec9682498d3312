// Package scratchpad is a session's working memory: a short list that each write replaces whole.
package scratchpad

import (
	"context"
	"fmt"
	"time"

	"reeve"
	"reeve/internal/store"
)

// Pack is the pack.
type Pack struct{ DB *store.DB }

type nothing struct{}

type write struct {
	Items []string `json:"items"`
}

type pad struct {
	SessionID string     `json:"session_id"`
	Items     []string   `json:"items"`
	ItemCount int        `json:"item_count"`
	UpdatedAt *time.Time `json:"updated_at,omitempty"`
}

// schema is what scratchpad_write takes: a plain list of strings with a bound on each, which struct tags cannot say.
const schema = `{"type":"object","properties":{"items":{"type":"array","minItems":1,"maxItems":32,"items":{"type":"string","minLength":1,"maxLength":240},
	"description":"The whole list: what was there before is replaced"}},"required":["items"],"additionalProperties":false}`

// Tools gives scratchpad_read, scratchpad_write and scratchpad_clear.
func (p *Pack) Tools() []reeve.Tool {
	tool := func(id, name, what string, effect reeve.Effect) reeve.Tool {
		return reeve.Tool{ID: id, Name: name, Description: what, Category: "general", Pack: "scratchpad",
			Effect: effect, Risk: reeve.LowRisk, TimeoutMS: 10_000}
	}
	w := tool("scratchpad_write", "Write Scratchpad",
		"Replace this session's scratchpad with a list of what is being worked on.", reeve.Local)
	w.Parameters = []byte(schema)
	return []reeve.Tool{
		reeve.MustTool(tool("scratchpad_read", "Read Scratchpad", "Read this session's scratchpad.", reeve.Read),
			p.read),
		reeve.MustTool(w, p.write),
		reeve.MustTool(tool("scratchpad_clear", "Clear Scratchpad", "Empty this session's scratchpad.", reeve.Local),
			p.clear),
	}
}

func (p *Pack) read(ctx context.Context, _ nothing) (pad, error) {
	inv := reeve.InvocationFrom(ctx)
	out := pad{SessionID: inv.Session, Items: []string{}}
	err := p.DB.View(ctx, func(s *store.Snap) error {
		items, at, err := s.Chat().GetScratchpad(ctx, inv.Workspace, inv.Session)
		if items != nil {
			out.Items, out.UpdatedAt = items, &at
		}
		return err
	})
	out.ItemCount = len(out.Items)
	return out, err
}

func (p *Pack) write(ctx context.Context, in write) (map[string]any, error) {
	inv := reeve.InvocationFrom(ctx)
	tx, err := store.TxFrom(ctx)
	if err != nil {
		return nil, err
	}
	inv.Emit(reeve.SemanticKey, "SCRATCHPAD")
	return map[string]any{"updated": true, "item_count": len(in.Items),
			"message": fmt.Sprintf("The scratchpad holds %d items.", len(in.Items))},
		tx.Chat().PutScratchpad(ctx, inv.Workspace, inv.Session, in.Items)
}

func (p *Pack) clear(ctx context.Context, _ nothing) (map[string]any, error) {
	inv := reeve.InvocationFrom(ctx)
	tx, err := store.TxFrom(ctx)
	if err != nil {
		return nil, err
	}
	inv.Emit(reeve.SemanticKey, "SCRATCHPAD")
	return map[string]any{"cleared": true, "message": "The scratchpad is empty."}, tx.Chat().
		PutScratchpad(ctx, inv.Workspace, inv.Session, nil)
}
