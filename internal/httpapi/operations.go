package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"reeve"
	"reeve/api"
	"reeve/internal/gate"
	"reeve/internal/store"
)

// operationHandlers serves operations.
type operationHandlers struct {
	db   *store.DB
	gate *gate.Gate
}

func (h *operationHandlers) list(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Page
	Agent string      `query:"agent" maxLength:"128" doc:"Id or name"`
	State reeve.State `query:"state" enum:"prepared,parked,dispatched,committed,failed,unknown,denied,proposed"`
}) (*body[api.OperationList], error) {
	if err := checkCursor(in.Cursor); err != nil {
		return nil, err
	}
	out := &body[api.OperationList]{}
	err := h.db.View(ctx, func(snap *store.Snap) error {
		agent, err := resolveAgentFilter(ctx, snap, who.Workspace, in.Agent)
		if err != nil {
			return err
		}
		if out.Body.Operations, err = snap.Ledger().
			ListOperations(ctx, who.Workspace, store.OperationFilter{Agent: agent, State: in.State, Before: in.Cursor,
				Limit: in.Limit}); err != nil {
			return err
		}
		shown, err := h.gate.Redaction(ctx, snap, who.Workspace)
		if err != nil {
			return err
		}
		for i := range out.Body.Operations {
			shown.Operation(&out.Body.Operations[i])
		}
		return nil
	})
	if n := len(out.Body.Operations); n == in.Limit {
		out.Body.Next = out.Body.Operations[n-1].CallID
	}
	return out, err
}

func (h *operationHandlers) get(ctx context.Context, who reeve.Principal, in *IDPath) (*body[reeve.Operation], error) {
	out := &body[reeve.Operation]{}
	return out, h.db.View(ctx, func(snap *store.Snap) (err error) {
		if out.Body, err = snap.Ledger().GetOperation(ctx, who.Workspace, in.ID); err != nil {
			return err
		}
		shown, err := h.gate.Redaction(ctx, snap, who.Workspace)
		if err != nil {
			return err
		}
		shown.Operation(&out.Body)
		return addArgs(ctx, snap, &out.Body)
	})
}

// addArgs shows an operation with what was asked for: a person cannot judge it without.
func addArgs(ctx context.Context, snap *store.Snap, op *reeve.Operation) error {
	c, err := snap.Ledger().GetCall(ctx, op.WorkspaceID, op.CallID)
	op.Args = c.Args
	return err
}

func (h *operationHandlers) resolve(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	Body reeve.ResolveRequest
}) (*body[reeve.Operation], error) {
	op, err := h.gate.Inbox.Resolve(ctx, who.Workspace, in.ID, in.Body, who.User)
	return &body[reeve.Operation]{op}, err
}

// deliver takes an outcome that comes from outside.
func (h *operationHandlers) deliver(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	Body    api.ResultRequest
	RawBody []byte
}) (*body[reeve.Operation], error) {
	var said map[string]json.RawMessage
	if err := json.Unmarshal(in.RawBody, &said); err != nil {
		return nil, err
	}
	message, failed := "", strings.TrimSpace(in.Body.Error) != ""
	if _, given := said["content"]; given && failed {
		message = "an outcome has content or an error, not both"
	} else if in.Body.Content == nil && !failed {
		message = "an outcome needs content, or an error that says why there is none"
	}
	if message != "" {
		return nil, (&reeve.Error{Code: reeve.Validation, Message: message,
			Fields: []reeve.Field{{Path: "/content", Message: message}, {Path: "/error", Message: message}}}).
			Hintf(`send {"content": ...}, which may be empty text but not null, or {"error": "why"}`)
	}
	if err := h.db.View(ctx, func(snap *store.Snap) error {
		op, err := snap.Ledger().GetOperation(ctx, who.Workspace, in.ID)
		if err != nil {
			return err
		}
		if no, err := isRunHidden(ctx, snap, who, op.RunID); err != nil || no {
			return cmp.Or(err, error(reeve.Errorf(reeve.NotFound, "operation %q not found", in.ID)))
		}
		return nil
	}); err != nil {
		return nil, err
	}
	op, err := h.gate.Deliver(ctx, who.Workspace, in.ID, gate.Delivery{Content: in.Body.Content,
		Failure: in.Body.Error})
	return &body[reeve.Operation]{op}, err
}

func (h *operationHandlers) undo(ctx context.Context, who reeve.Principal, in *IDPath) (*callOutput, error) {
	res, err := h.gate.Undo(ctx, who.Workspace, in.ID, who.User, reeve.ViaREST)
	if err != nil {
		return nil, &refusedCall{res.CallID, err}
	}
	return newCallOutput(res), nil
}
