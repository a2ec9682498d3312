package client

import (
	"context"
	"encoding/json"
	"strings"

	"reeve"
	"reeve/api"
)

// OperationFilter selects operations.
type OperationFilter struct {
	Agent string      // of one agent. Default: of all
	Run   string      // of one run. Default: of all
	State reeve.State // in one state. Default: in any
	Page
}

// List lists operations, newest first.
func (s OperationService) List(ctx context.Context, f OperationFilter) (api.OperationList, error) {
	q := f.query()
	q.Set("agent", f.Agent)
	q.Set("run", f.Run)
	q.Set("state", string(f.State))
	return get[api.OperationList](ctx, s.conn, path("operations"), q)
}

// Get returns one operation.
func (s OperationService) Get(ctx context.Context, id string) (reeve.Operation, error) {
	return get[reeve.Operation](ctx, s.conn, path("operations", id), nil)
}

// Resolve resolves an operation of unknown outcome.
func (s OperationService) Resolve(ctx context.Context, id string, r reeve.ResolveRequest) (reeve.Operation, error) {
	return post[reeve.Operation](ctx, s.conn, path("operations", id, "resolve"), r)
}

// Undo undoes an operation, if its tool supports that.
func (s OperationService) Undo(ctx context.Context, id string) (reeve.Result, error) {
	return post[reeve.Result](ctx, s.conn, path("operations", id, "undo"), nil)
}

// PlanUndo returns what an undo of an operation would change, or why it cannot be undone.
func (s OperationService) PlanUndo(ctx context.Context, id string) (reeve.UndoPlan, error) {
	return get[reeve.UndoPlan](ctx, s.conn, path("operations", id, "undo"), nil)
}

// LookUp asks the tool of an operation with unknown outcome whether it took effect.
func (s OperationService) LookUp(ctx context.Context, id string) (api.LookUpResult, error) {
	return post[api.LookUpResult](ctx, s.conn, path("operations", id, "lookup"), nil)
}

// Wait polls an operation until it is done or its outcome is unknown. An unknown outcome needs a person.
func (s OperationService) Wait(ctx context.Context, id string) (op reeve.Operation, err error) {
	err = poll(ctx, "operation "+id+" is not done", false, func() (bool, error) {
		op, err = s.Get(ctx, id)
		return op.State.IsFinal() || op.State == reeve.Unknown, err
	})
	return op, err
}

// Result returns the result of an operation. If there is no result yet, or the caller may not see the thread, only the
// state is set.
func (s OperationService) Result(ctx context.Context, op reeve.Operation) (reeve.Result, error) {
	res := reeve.Result{CallID: op.CallID, OperationID: op.ID, State: op.State, Code: op.Code, Message: op.Message,
		Undo: op.Undo, Spent: op.Spent}
	if op.ResultID == "" {
		return res, nil
	}
	f := MessageFilter{Page: Page{Cursor: op.CallID}} // start at the call, because its result comes later
	switch _, thread, _ := strings.Cut(op.ThreadID, ":"); {
	case strings.HasPrefix(thread, "run:"):
		f.Run = strings.TrimPrefix(thread, "run:")
	default:
		f.Session = strings.TrimPrefix(thread, "session:")
	}
	for {
		page, err := AgentService(s).Messages(ctx, op.AgentID, f)
		if err != nil {
			return res, err
		}
		for _, m := range page.Messages {
			if m.ID == op.ResultID {
				return withMessage(res, m)
			}
		}
		if f.Cursor = page.Next; f.Cursor == "" {
			return res, nil // the thread belongs to another user
		}
	}
}

func withMessage(res reeve.Result, m reeve.Message) (reeve.Result, error) {
	var info reeve.ResultInfo
	if err := json.Unmarshal(m.Metadata, &info); err != nil {
		return res, &reeve.Error{Code: reeve.Internal, Message: "cannot decode the result " + m.ID, Err: err}
	}
	res.Content, res.IsError, res.Code, res.Message, res.Hint, res.Fields = m.Content, info.Status == "error",
		info.Code, info.Message, info.Hint, info.Fields
	res.Truncated, res.Size, res.Hash, res.Base, res.Changed, res.Spent = info.Truncated, info.Size, info.Hash,
		info.Base, info.Changed, info.Spent
	res.ProposalID = info.ProposalID
	if info.Undo != nil {
		res.Undo = info.Undo
	}
	return res, nil
}
