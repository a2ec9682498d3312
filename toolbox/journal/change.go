package journal

import (
	"context"

	"reeve"
	"reeve/internal/store"
)

type changeArgs struct {
	ID string `json:"change_id" minLength:"1" maxLength:"128" doc:"Id of the change, as the message that woke you names it"`
}

func (p *Pack) changeTools() []reeve.Tool {
	t := withPack(reeve.Tool{ID: "change_get", Name: "Get Change", Capability: TaskRead, Effect: reeve.Read,
		Description: "Read one change: who made it, why, and each changed field before and after. Use it when a " +
			"change woke you and its summary is not enough. It leaves out entries outside your categories and " +
			"private entries of other users."})
	t = reeve.MustTool(t, p.getChange)
	t.Categories = newClassifier[changeArgs](p, TaskRead, nil)
	return []reeve.Tool{t}
}

func (p *Pack) getChange(ctx context.Context, in changeArgs) (out reeve.ChangeRecord, err error) {
	inv := reeve.InvocationFrom(ctx)
	err = p.DB.View(ctx, func(s *store.Snap) error {
		found, err := s.Queue().GetChanges(ctx, inv.Workspace, []string{in.ID})
		if err != nil {
			return err
		}
		for _, c := range found {
			shown, hidden := c.VisibleTo(reeve.ChangeViewer{User: inv.User, Categories: inv.Categories})
			if len(shown.Entities) > 0 || hidden == 0 {
				out = store.RedactChange(inv, shown)
				return nil
			}
		}
		return reeve.Errorf(reeve.NotFound, "change %q not found", in.ID).
			Hintf("use a change id from the message that woke you")
	})
	return out, err
}
