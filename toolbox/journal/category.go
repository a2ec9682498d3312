package journal

import (
	"context"

	"reeve"
	"reeve/internal/store"
)

type nothing struct{}

type categoryAnswer struct {
	Categories []reeve.Category `json:"categories"`
	Labels     []reeve.Label    `json:"labels"`
}

func (p *Pack) categoryTools() []reeve.Tool {
	return []reeve.Tool{
		read(p, reeve.Tool{ID: "list_allowed_categories", Name: "List Allowed Categories", Capability: CategoryRead,
			Description: "List the categories you may touch, and the labels their tasks can have."}, nil,
			func(ctx context.Context, r *store.JournalReader, _ nothing) (out categoryAnswer, err error) {
				if out.Categories, err = r.Categories(ctx); err == nil {
					out.Labels, err = r.Labels(ctx)
				}
				return out, err
			}),
	}
}
