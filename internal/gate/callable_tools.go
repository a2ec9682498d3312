package gate

import (
	"cmp"
	"context"
	"slices"

	"reeve"
)

// CallableTools lists the tools that a caller can call. These are the tools listed in who, else the agent's
// attachments, else the default tools. Tools that are broken or that a principal does not have are left out.
func (g *Gate) CallableTools(ctx context.Context, who reeve.Call) ([]reeve.Tool, error) {
	req, err := g.newRequest(ctx, who)
	if err != nil {
		return nil, err
	}
	ids := who.Tools
	if ids == nil {
		for id := range req.view.attached {
			ids = append(ids, id)
		}
		if req.view.hasDefaultTools() {
			ids = DefaultTools()
		}
		if !slices.Contains(ids, OutputRead) {
			ids = append(ids, OutputRead)
		}
	}
	var out []reeve.Tool
	for _, id := range ids {
		if e, ok := req.view.workspace.tools[id]; ok && e.tool.Broken == "" &&
			req.view.grantReason(who.Tools, id) != "" &&
			req.findPrincipalWithout(id) == "" {
			out = append(out, e.tool)
		}
	}
	slices.SortFunc(out, func(a, b reeve.Tool) int { return cmp.Compare(a.ID, b.ID) })
	return slices.CompactFunc(out, func(a, b reeve.Tool) bool { return a.ID == b.ID }), nil
}
