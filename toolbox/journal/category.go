package journal

import (
	"context"

	"reeve"
	"reeve/internal/store"
)

type noArgs struct{}

type categoryResult struct {
	Categories []reeve.Category `json:"categories"`
	Labels     []reeve.Label    `json:"labels"`
}

func (p *Pack) categoryTools() []reeve.Tool {
	return []reeve.Tool{
		newReadTool(p, reeve.Tool{ID: "list_allowed_categories", Name: "List Allowed Categories",
			Capability:  CategoryRead,
			Description: "List the categories that you may access and the labels for their tasks."}, nil,
			func(ctx context.Context, r *store.JournalReader, _ noArgs) (out categoryResult, err error) {
				if out.Categories, err = r.Categories(ctx); err == nil {
					out.Labels, err = r.Labels(ctx)
				}
				return out, err
			}),
	}
}
