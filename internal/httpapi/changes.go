package httpapi

import (
	"context"

	"reeve"
	"reeve/api"
	"reeve/internal/gate"
	"reeve/internal/store"
)

// changeHandlers serves the records of changes.
type changeHandlers struct {
	db   *store.DB
	gate *gate.Gate
}

func (h *changeHandlers) list(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Page
	Entity string `query:"entity" maxLength:"512" doc:"Id of a task, agent, schedule and so on"`
}) (*body[api.ChangeList], error) {
	if err := checkCursor(in.Cursor); err != nil {
		return nil, err
	}
	out := &body[api.ChangeList]{Body: api.ChangeList{Changes: []reeve.ChangeRecord{}}}
	return out, h.db.View(ctx, func(snap *store.Snap) error {
		found, err := snap.Queue().ListChanges(ctx, who.Workspace, store.ChangeFilter{Entity: in.Entity,
			Before: in.Cursor, Limit: in.Limit})
		if reeve.CodeOf(err) == reeve.NotFound {
			return newInvalidCursor()
		}
		if err != nil {
			return err
		}
		for _, c := range found {
			shown, isVisible, err := h.show(ctx, snap, who, c)
			if err != nil {
				return err
			}
			if isVisible {
				out.Body.Changes = append(out.Body.Changes, shown)
			}
		}
		if n := len(found); n == in.Limit {
			out.Body.Next = found[n-1].ID
		}
		return nil
	})
}

func (h *changeHandlers) get(ctx context.Context, who reeve.Principal, in *IDPath) (*body[reeve.ChangeRecord], error) {
	out := &body[reeve.ChangeRecord]{}
	return out, h.db.View(ctx, func(snap *store.Snap) error {
		found, err := snap.Queue().GetChanges(ctx, who.Workspace, []string{in.ID})
		if err != nil {
			return err
		}
		for _, c := range found {
			var isVisible bool
			if out.Body, isVisible, err = h.show(ctx, snap, who, c); err != nil || isVisible {
				return err
			}
		}
		return newNotFound("change", in.ID)
	})
}

// show returns a change as the caller may see it, without secrets. It returns false if the caller may see none of the
// changed entities. The reason for a call in a run that the caller may not see is left out.
func (h *changeHandlers) show(ctx context.Context, snap *store.Snap, who reeve.Principal,
	c reeve.ChangeRecord) (shown reeve.ChangeRecord, isVisible bool, err error) {
	shown, hidden := c.VisibleTo(reeve.ChangeViewer{User: who.User, AllCategories: true,
		AllUsers: visibleUser(who) == ""})
	if hidden > 0 && len(shown.Entities) == 0 {
		return reeve.ChangeRecord{}, false, nil
	}
	isHidden, err := isRunHidden(ctx, snap, who, c.RunID)
	if err != nil {
		return shown, false, err
	}
	if isHidden {
		shown.Reason = ""
	}
	redaction, err := h.gate.Redaction(ctx, snap, who.Workspace)
	if err != nil {
		return shown, false, err
	}
	return store.RedactChange(redaction.Invocation(), shown), true, nil
}
