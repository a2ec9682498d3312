// Package scratchpad is the pack of the scratchpad tools. A scratchpad is a session's working memory: a short list that
// each write replaces.
package scratchpad

import (
	"context"
	"fmt"
	"time"

	"reeve"
	"reeve/internal/store"
)

// Pack is the pack of the scratchpad tools.
type Pack struct{ DB *store.DB }

type noArgs struct{}

type writeArgs struct {
	Items []string `json:"items"`
}

type scratchpad struct {
	SessionID string     `json:"session_id"`
	Items     []string   `json:"items"`
	ItemCount int        `json:"item_count"`
	UpdatedAt *time.Time `json:"updated_at,omitempty"`
}

// schema describes the arguments of scratchpad_write. Struct tags cannot limit the length of each string in a list.
const schema = `{"type":"object","properties":{"items":{"type":"array","minItems":1,"maxItems":32,
	"items":{"type":"string","minLength":1,"maxLength":240},
	"description":"The new list, 1 to 32 short lines. It replaces the old one"}},
	"required":["items"],"additionalProperties":false}`

// Tools returns scratchpad_read, scratchpad_write and scratchpad_clear.
func (p *Pack) Tools() []reeve.Tool {
	tool := func(id, name, what string, effect reeve.Effect) reeve.Tool {
		return reeve.Tool{ID: id, Name: name, Description: what, Category: "general", Pack: "scratchpad",
			Effect: effect, Risk: reeve.LowRisk, TimeoutMS: 10_000}
	}
	w := tool("scratchpad_write", "Write Scratchpad",
		"Replace this session's scratchpad. Use it to note the goal, open steps and findings of the current work.",
		reeve.Local)
	w.Parameters = []byte(schema)
	return []reeve.Tool{
		reeve.MustTool(tool("scratchpad_read", "Read Scratchpad",
			"Read this session's scratchpad: the notes on the current work.", reeve.Read),
			p.read),
		reeve.MustTool(w, p.write),
		reeve.MustTool(tool("scratchpad_clear", "Clear Scratchpad", "Empty this session's scratchpad.", reeve.Local),
			p.clear),
	}
}

func (p *Pack) read(ctx context.Context, _ noArgs) (scratchpad, error) {
	inv := reeve.InvocationFrom(ctx)
	out := scratchpad{SessionID: inv.Session, Items: []string{}}
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

func (p *Pack) write(ctx context.Context, in writeArgs) (map[string]any, error) {
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

func (p *Pack) clear(ctx context.Context, _ noArgs) (map[string]any, error) {
	inv := reeve.InvocationFrom(ctx)
	tx, err := store.TxFrom(ctx)
	if err != nil {
		return nil, err
	}
	inv.Emit(reeve.SemanticKey, "SCRATCHPAD")
	return map[string]any{"cleared": true, "message": "The scratchpad is empty."},
		tx.Chat().PutScratchpad(ctx, inv.Workspace, inv.Session, nil)
}
