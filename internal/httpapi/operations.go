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
	Agent string      `query:"agent" maxLength:"128" doc:"Agent id or name"`
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
		if out.Body.Operations, err = snap.Ledger().ListOperations(ctx, who.Workspace,
			store.OperationFilter{Agent: agent, State: in.State, Before: in.Cursor, Limit: in.Limit}); err != nil {
			return err
		}
		redaction, err := h.gate.Redaction(ctx, snap, who.Workspace)
		if err != nil {
			return err
		}
		for i := range out.Body.Operations {
			redaction.Operation(&out.Body.Operations[i])
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
		redaction, err := h.gate.Redaction(ctx, snap, who.Workspace)
		if err != nil {
			return err
		}
		redaction.Operation(&out.Body)
		return addArgs(ctx, snap, &out.Body)
	})
}

// addArgs sets the arguments of an operation from its call.
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

// deliver records the outcome of an operation that an external system reports.
func (h *operationHandlers) deliver(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	Body    api.ResultRequest
	RawBody []byte
}) (*body[reeve.Operation], error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(in.RawBody, &fields); err != nil {
		return nil, err
	}
	message, failed := "", strings.TrimSpace(in.Body.Error) != ""
	if _, hasContent := fields["content"]; hasContent && failed {
		message = "send either content or error, not both"
	} else if in.Body.Content == nil && !failed {
		message = "content or error is missing"
	}
	if message != "" {
		return nil, (&reeve.Error{Code: reeve.Validation, Message: message,
			Fields: []reeve.Field{{Path: "/content", Message: message}, {Path: "/error", Message: message}}}).
			Hintf(`send {"content": ...} (an empty text is allowed, null is not) or {"error": "reason"}`)
	}
	if err := h.db.View(ctx, func(snap *store.Snap) error {
		op, err := snap.Ledger().GetOperation(ctx, who.Workspace, in.ID)
		if err != nil {
			return err
		}
		if isHidden, err := isRunHidden(ctx, snap, who, op.RunID); err != nil || isHidden {
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
