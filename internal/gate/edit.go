package gate

import (
	"context"
	"encoding/json"

	"reeve"
	"reeve/internal/canonjson"
	"reeve/internal/store"
)

// Edit is a person's change of the arguments of a parked call. Without arguments they stay the same, and the person
// asks for a fresh preview.
type Edit struct {
	Args    json.RawMessage
	By      string // the person
	Comment string // kept with the approval that is replaced
	Shown   string // hash of what the person saw; see Inbox.DecideApproval
}

// replacement is the parked call that a new call replaces.
type replacement struct {
	approval reeve.Approval
	edit     Edit
}

// EditApproval makes a new call with other arguments in place of a pending one and returns the approval of the new
// call. The new call passes the gate and always waits for a person. The old approval becomes replaced in the
// transaction that writes the new one.
func (i *Inbox) EditApproval(ctx context.Context, workspace, id string, e Edit) (a reeve.Approval, err error) {
	var op reeve.Operation
	var info reeve.ActionInfo
	if err := i.g.DB.View(ctx, func(s *store.Snap) error {
		if err := checkNotHeld(ctx, s); err != nil {
			return err
		}
		if a, err = s.Ledger().GetApproval(ctx, workspace, id); err != nil {
			return err
		}
		if err := checkEditable(a, e, s); err != nil {
			return err
		}
		if op, err = s.Ledger().GetOperation(ctx, workspace, a.OperationID); err != nil {
			return err
		}
		info, err = getRequestInfo(ctx, s, op)
		return err
	}); err != nil {
		return a, err
	}
	switch {
	case info.Undoes != "":
		return a, reeve.Errorf(reeve.Unsupported, "the arguments of an undo cannot be changed").
			Hintf("approve or deny it")
	case info.Via == reeve.ViaScript:
		return a, reeve.Errorf(reeve.Unsupported, "a script made this call, so its arguments cannot be changed").
			Hintf("deny it with a reason, then change the script")
	}
	args, err := i.newArgs(ctx, op, e)
	if err != nil {
		return a, err
	}
	res, err := i.g.call(ctx, reeve.Call{Workspace: workspace, Agent: op.AgentID, Tool: op.Tool, Args: args,
		Session: info.Session, Run: op.RunID, User: info.User, Via: reeve.ViaREST, Tools: info.Tools, Reason: a.Reason},
		origin{replaces: &replacement{a, e}})
	if err != nil {
		return a, err
	}
	i.g.notifyChange()
	return a, i.g.DB.View(ctx, func(s *store.Snap) error {
		a, err = s.Ledger().GetApproval(ctx, workspace, res.ApprovalID)
		return err
	})
}

// newArgs returns the arguments of the call that replaces an operation: those of the edit, or else the same.
func (i *Inbox) newArgs(ctx context.Context, op reeve.Operation, e Edit) (args json.RawMessage, err error) {
	if e.Args == nil {
		err = i.g.DB.View(ctx, func(s *store.Snap) error {
			c, err := s.Ledger().GetCall(ctx, op.WorkspaceID, op.CallID)
			args = json.RawMessage(c.Args)
			return err
		})
		return args, err
	}
	if args, err = canonjson.Canonical(e.Args); err != nil {
		return nil, invalidField("/args", "a JSON object", "the arguments are not valid JSON")
	}
	if reeve.Hash(args) == op.ArgsHash {
		return nil, invalidField("/args", "other arguments, or none to preview the call again",
			"the arguments are the same")
	}
	return args, nil
}

// checkEditable returns an error if the arguments of a call can no longer be changed.
func checkEditable(a reeve.Approval, e Edit, s *store.Snap) error {
	if err := checkAnswerable(a, s.Now()); err != nil {
		return err
	}
	if a.State != reeve.ApprovalPending {
		return reeve.Errorf(reeve.Conflict, "approval %s was decided already", a.ID).
			Hintf("read the approval to see the decision; the first decision counts")
	}
	if e.Shown != "" && e.Shown != a.ShownHash() {
		return reeve.Errorf(reeve.Stale, "the approval no longer shows what the person saw").
			Hintf("read the approval again, then decide")
	}
	return nil
}

// inTx replaces the old call in the transaction that writes the new operation and its approval.
func (r *replacement) inTx(ctx context.Context, tx *store.Tx, op reeve.Operation, by reeve.Approval) error {
	a, err := tx.Ledger().GetApproval(ctx, by.WorkspaceID, r.approval.ID)
	if err != nil {
		return err
	}
	if err := checkEditable(a, r.edit, &tx.Snap); err != nil {
		return err
	}
	was, err := tx.Ledger().GetOperation(ctx, by.WorkspaceID, a.OperationID)
	if err != nil {
		return err
	}
	a.State, a.DecidedBy, a.Comment = reeve.ApprovalReplaced, r.edit.By, r.edit.Comment
	if err := tx.Ledger().TransitionApproval(ctx, a, reeve.ApprovalPending); err != nil {
		return err
	}
	why := reeve.Errorf(reeve.Denied, "a person changed the arguments of this call to %s", truncateText(by.Args, 2000))
	if r.edit.Args == nil {
		why = reeve.Errorf(reeve.Denied, "what this call is based on has changed, so a person previewed it again")
	}
	why = why.Hintf("do not repeat it: the new call is operation %s and runs if a person approves", op.ID)
	if r.edit.Comment != "" {
		why.Message += "; " + r.edit.Comment
	}
	if err := denyReplaced(ctx, tx, was, why, refusedApprovalStep(why), op.ID); err != nil {
		return err
	}
	by.CreatedAt = tx.Now()
	return tx.Ledger().SaveResponse(ctx, by)
}
