package httpapi

import (
	"context"
	"errors"

	"reeve"
	"reeve/api"
	"reeve/internal/store"
)

// itemHandlers serves the items of automations.
type itemHandlers struct {
	db          *store.DB
	automations Automations
}

func (h *itemHandlers) list(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	State  reeve.ItemState `query:"status" enum:"processing,done,failed,skipped,needs_attention"`
	Item   string          `query:"item" maxLength:"1024" doc:"Only the item with this id"`
	Limit  int             `query:"limit" minimum:"1" maximum:"500" default:"100"`
	Offset int             `query:"offset" minimum:"0" maximum:"1000000000"`
}) (*body[reeve.ItemList], error) {
	out := &body[reeve.ItemList]{}
	return out, h.db.View(ctx, func(snap *store.Snap) error {
		m, err := snap.Automations().GetAutomation(ctx, who.Workspace, in.ID)
		if err != nil {
			return err
		}
		out.Body, err = snap.Automations().ListItems(ctx, m.AgentID, reeve.ItemFilter{State: in.State, ID: in.Item,
			Limit: in.Limit, Offset: in.Offset})
		for i := range out.Body.Items {
			err = errors.Join(err, hideMessage(ctx, snap, who, out.Body.Items[i].LastRun, &out.Body.Items[i].Message))
		}
		return err
	})
}

func (h *itemHandlers) get(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	Item string `path:"item" maxLength:"1024" doc:"Item id; write a slash as %2F"`
}) (*body[api.ItemHistory], error) {
	out := &body[api.ItemHistory]{}
	return out, h.db.View(ctx, func(snap *store.Snap) error {
		m, err := snap.Automations().GetAutomation(ctx, who.Workspace, in.ID)
		if err != nil {
			return err
		}
		if out.Body.Item, err = snap.Automations().GetItem(ctx, m.AgentID, in.Item); err != nil {
			return err
		}
		out.Body.Attempts, err = snap.Automations().ListAttempts(ctx, m.AgentID, in.Item)
		err = errors.Join(err, hideMessage(ctx, snap, who, out.Body.LastRun, &out.Body.Message))
		for i, a := range out.Body.Attempts {
			err = errors.Join(err, hideMessage(ctx, snap, who, a.LastRun, &out.Body.Attempts[i].Message))
		}
		return err
	})
}

// hiddenMessage stands for the message of a run that the caller may not see. A script can put anything it has read into
// the error that it fails with.
const hiddenMessage = "the run acted for another user, and only they may read why it failed"

// hideMessage replaces the message with which a run failed if the caller may not see the run.
func hideMessage(ctx context.Context, snap *store.Snap, who reeve.Principal, run string, message *string) error {
	if *message == "" {
		return nil
	}
	isHidden, err := isRunHidden(ctx, snap, who, run)
	if isHidden {
		*message = hiddenMessage
	}
	return err
}

// ItemBody is the input of routes that change an item.
type ItemBody struct {
	IDPath
	Body api.ItemRequest
}

func (h *itemHandlers) skip(ctx context.Context, who reeve.Principal, in *ItemBody) (*body[reeve.Item], error) {
	return h.resolve(ctx, who, in, reeve.ItemSkipped)
}

func (h *itemHandlers) reprocess(ctx context.Context, who reeve.Principal, in *ItemBody) (*body[reeve.Item], error) {
	return h.resolve(ctx, who, in, reeve.ItemProcessing)
}

// resolve moves an item to a state that a person chooses.
func (h *itemHandlers) resolve(ctx context.Context, who reeve.Principal, in *ItemBody,
	to reeve.ItemState) (*body[reeve.Item], error) {
	if err := reeve.CheckItemName("id", in.Body.Item); err != nil {
		return nil, reeve.InvalidField("/item", reeve.AsError(err).Message, "an item id")
	}
	v, err := h.automations.ResolveItem(ctx, who.Workspace, in.ID, in.Body.Item, to, in.Body.Reason)
	if err == nil && v.LastRun != "" {
		ctx = context.WithoutCancel(ctx) // the item has changed, so the caller must learn it
		err = h.db.View(ctx, func(snap *store.Snap) error {
			return hideMessage(ctx, snap, who, v.LastRun, &v.Message)
		})
	}
	return &body[reeve.Item]{v}, err
}
