package gate

import (
	"context"

	"reeve"
	"reeve/internal/store"
)

// PlanUndo returns the call that would undo an operation with a preview of what it changes, or why that is not
// possible. It changes nothing and records nothing.
func (g *Gate) PlanUndo(ctx context.Context, workspace, id string) (p reeve.UndoPlan, err error) {
	var op reeve.Operation
	var info reeve.ActionInfo
	if err := g.DB.View(ctx, func(s *store.Snap) (err error) {
		if op, err = s.Ledger().GetOperation(ctx, workspace, id); err == nil {
			if p, err = planUndo(ctx, s, op); err == nil {
				info, err = getRequestInfo(ctx, s, op)
			}
		}
		return err
	}); err != nil || !p.CanUndo {
		return p, err
	}
	g.viewCache.invalidateAgents(workspace) // no write follows that would detect an outdated view
	req, err := g.newRequest(ctx, reeve.Call{Workspace: workspace, Agent: op.AgentID, Tool: op.Undo.Tool,
		Args: op.Undo.Args, Tools: []string{op.Undo.Tool}, Session: info.Session, Run: op.RunID, User: info.User,
		Via: reeve.ViaREST, PreviewOnly: true})
	if err != nil {
		return p, err
	}
	p.Undo = req.view.workspace.redactUndo(op.Undo)
	if e, ok := req.view.workspace.tools[op.Undo.Tool]; ok && e.tool.Preview == nil {
		return p, nil
	}
	req.undoes = op.ID
	d := g.decide(ctx, req)
	if d.refusal != nil {
		e := reeve.AsError(d.refusal)
		p.CanUndo, p.Why = false, d.redactAndTruncate(e.Message)
		return p, nil
	}
	p.Preview = d.previewOutput().content
	return p, nil
}

// planUndo returns whether an operation can be undone, as far as the ledger shows.
func planUndo(ctx context.Context, s *store.Snap, op reeve.Operation) (reeve.UndoPlan, error) {
	p := reeve.UndoPlan{OperationID: op.ID, Tool: op.Tool, State: op.State, At: op.CreatedAt}
	switch {
	case op.State == reeve.Unknown:
		p.Why = "its outcome is unknown; a person must resolve it first"
	case op.State != reeve.Committed:
		p.Why = "it is " + string(op.State)
	case op.Undo == nil:
		p.Why = "the tool provides no undo"
	default:
		key, err := nextUsableID(ctx, s, op.WorkspaceID, undoKey(op.ID))
		if err != nil {
			return p, err
		}
		undo, made, err := s.Ledger().FindOperation(ctx, op.WorkspaceID, key)
		if err != nil {
			return p, err
		}
		if made {
			p.UndoneBy, p.Why = undo.ID, "it is undone already"
			if undo.State != reeve.Committed {
				p.Why = "its undo is " + string(undo.State)
			}
			return p, nil
		}
		p.CanUndo, p.Undo = true, op.Undo
	}
	return p, nil
}

// PlanUndoOfRun returns what an undo of a run would do, in its order: the latest change first. Calls that changed
// nothing and undos are left out, and so are calls that the viewer does not see; see [store.Ledger.VisibleTo].
func (g *Gate) PlanUndoOfRun(ctx context.Context, workspace, run string,
	viewer *string) (list []reeve.UndoPlan, err error) {
	return list, g.DB.View(ctx, func(s *store.Snap) error {
		redaction, err := g.Redaction(ctx, s, workspace)
		if err != nil {
			return err
		}
		for before := ""; ; {
			page, err := s.Ledger().VisibleTo(viewer).ListOperations(ctx, workspace,
				store.OperationFilter{Run: run, Before: before, Limit: itemsPerPage})
			if err != nil || len(page) == 0 {
				return err
			}
			before = page[len(page)-1].CallID
			for _, op := range page {
				if !op.Effect.Mutates() || op.State != reeve.Committed && op.State != reeve.Unknown &&
					op.State != reeve.Dispatched {
					continue
				}
				info, err := getRequestInfo(ctx, s, op)
				if err != nil {
					return err
				}
				if info.Undoes != "" {
					continue
				}
				p, err := planUndo(ctx, s, op)
				if err != nil {
					return err
				}
				p.Undo = redaction.view.redactUndo(p.Undo)
				list = append(list, p)
			}
		}
	})
}

// UndoRun undoes what the viewer sees of a run and can be undone, the latest change first. Each undo passes the gate by
// itself, so some can fail or wait for a person; the result of each says so.
func (g *Gate) UndoRun(ctx context.Context, workspace, run, by string, via reeve.Via,
	viewer *string) ([]reeve.UndoPlan, error) {
	list, err := g.PlanUndoOfRun(ctx, workspace, run, viewer)
	for i := range list {
		if err != nil || !list[i].CanUndo {
			continue
		}
		p := &list[i]
		res, undoErr := g.Undo(ctx, workspace, p.OperationID, by, via)
		if p.UndoneBy = res.OperationID; undoErr != nil {
			p.UndoneBy, p.CanUndo, p.Why = "", false, reeve.AsError(undoErr).Message
			continue
		}
		switch p.CanUndo = false; {
		case res.State == reeve.Committed:
			p.Why = "undone"
		case res.ApprovalID != "":
			p.Why = "the undo waits for approval"
		case res.ProposalID != "":
			p.Why = "the undo is a proposal"
		default:
			p.Why = "the undo is " + string(res.State)
			if res.Message != "" {
				p.Why += ": " + res.Message
			}
		}
	}
	return list, err
}
