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
	Run   string      `query:"run" maxLength:"128" doc:"Operations of this run"`
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
		if out.Body.Operations, err = visibleLedger(snap, who).ListOperations(ctx, who.Workspace,
			store.OperationFilter{Agent: agent, Run: in.Run, State: in.State, Before: in.Cursor,
				Limit: in.Limit}); err != nil {
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
		if out.Body, err = visibleLedger(snap, who).GetOperation(ctx, who.Workspace, in.ID); err != nil {
			return err
		}
		redaction, err := h.gate.Redaction(ctx, snap, who.Workspace)
		if err != nil {
			return err
		}
		redaction.Operation(&out.Body)
		return addArgs(ctx, snap, forCaller(redaction, who), &out.Body)
	})
}

// addArgs sets the arguments of an operation from its call, as shown returns them.
func addArgs(ctx context.Context, snap *store.Snap, shown func(string) string, op *reeve.Operation) error {
	c, err := snap.Ledger().GetCall(ctx, op.WorkspaceID, op.CallID)
	op.Args = shown(c.Args)
	return err
}

func (h *operationHandlers) resolve(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	Body reeve.ResolveRequest
}) (*body[reeve.Operation], error) {
	if err := checkOperation(ctx, h.db, who, in.ID); err != nil {
		return nil, err
	}
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
		op, err := visibleLedger(snap, who).GetOperation(ctx, who.Workspace, in.ID)
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
	if err := checkOperation(ctx, h.db, who, in.ID); err != nil {
		return nil, err
	}
	res, err := h.gate.Undo(ctx, who.Workspace, in.ID, who.User, reeve.ViaREST)
	if err != nil {
		return nil, &refusedCall{res.CallID, err}
	}
	return newCallOutput(res), nil
}

// planUndo says what an undo would change. Members only, because a preview reads the agent's data.
func (h *operationHandlers) planUndo(ctx context.Context, who reeve.Principal, in *IDPath) (*body[reeve.UndoPlan],
	error) {
	if err := checkOperation(ctx, h.db, who, in.ID); err != nil {
		return nil, err
	}
	p, err := h.gate.PlanUndo(ctx, who.Workspace, in.ID)
	return &body[reeve.UndoPlan]{p}, err
}

func (h *operationHandlers) lookUp(ctx context.Context, who reeve.Principal, in *IDPath) (*body[api.LookUpResult],
	error) {
	if err := checkOperation(ctx, h.db, who, in.ID); err != nil {
		return nil, err
	}
	what, found, err := h.gate.LookUp(ctx, who.Workspace, in.ID)
	return &body[api.LookUpResult]{api.LookUpResult{Outcome: what, Found: found}}, err
}

func (h *operationHandlers) planUndoOfRun(ctx context.Context, who reeve.Principal,
	in *IDPath) (*body[api.UndoPlanList], error) {
	if err := h.checkRunVisible(ctx, who, in.ID); err != nil {
		return nil, err
	}
	list, err := h.gate.PlanUndoOfRun(ctx, who.Workspace, in.ID, viewerOf(who))
	return &body[api.UndoPlanList]{api.UndoPlanList{Steps: list}}, err
}

func (h *operationHandlers) undoRun(ctx context.Context, who reeve.Principal, in *IDPath) (*body[api.UndoPlanList],
	error) {
	if err := h.checkRunVisible(ctx, who, in.ID); err != nil {
		return nil, err
	}
	list, err := h.gate.UndoRun(ctx, who.Workspace, in.ID, who.User, reeve.ViaREST, viewerOf(who))
	return &body[api.UndoPlanList]{api.UndoPlanList{Steps: list}}, err
}

func (h *operationHandlers) checkRunVisible(ctx context.Context, who reeve.Principal, run string) error {
	return h.db.View(ctx, func(snap *store.Snap) error {
		_, err := getVisibleRun(ctx, snap, who, run)
		return err
	})
}
