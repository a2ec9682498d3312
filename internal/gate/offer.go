package gate

import (
	"cmp"
	"context"
	"slices"

	"reeve"
)

// Offer lists the tools that an agent can call: an explicit list, else its attachments, else the default set. Broken ones are
// left out.
func (g *Gate) Offer(ctx context.Context, workspace, agent string, list []string) ([]reeve.Tool, error) {
	v, err := g.views.agent(ctx, g, workspace, agent)
	if err != nil {
		return nil, err
	}
	ids := list
	if list == nil {
		for id := range v.attached {
			ids = append(ids, id)
		}
		if len(ids) == 0 {
			ids = DefaultTools()
		}
		if !slices.Contains(ids, OutputRead) {
			ids = append(ids, OutputRead)
		}
	}
	var out []reeve.Tool
	for _, id := range ids {
		if e, ok := v.workspace.tools[id]; ok && e.tool.Broken == "" {
			out = append(out, e.tool)
		}
	}
	slices.SortFunc(out, func(a, b reeve.Tool) int { return cmp.Compare(a.ID, b.ID) })
	return slices.CompactFunc(out, func(a, b reeve.Tool) bool { return a.ID == b.ID }), nil
}
