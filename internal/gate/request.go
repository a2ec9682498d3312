package gate

import (
	"context"
	"slices"
	"strings"

	"reeve"
	"reeve/internal/store"
)

// request is a call with all that is known of it before it is decided.
type request struct {
	caller
	g               *Gate
	draftID         string // id of the call until it is recorded; see Recorder.assignID
	operation       string // id of the operation that the call leaves if it changes something
	hasCallerID     bool   // the caller chose the operation id, so it may have been used before
	idUsedElsewhere bool   // the operation id is used in another workspace
	undoes          string // id of the operation that the call takes back
	session         string // key under which session-scoped tools keep their data
	thread          string // the thread that the call is written to
	leaseLapses     int64  // how often this process had lost its lease when the call began

	resumed  *reeve.Operation // the stored operation, when a recorded call is taken up again
	approval *reeve.Approval  // the approval that resumed it
	proposal *reeve.Proposal  // the proposal that it applies
}

// newRequest finds out who makes a call and on whose behalf. It fails only if the call cannot be recorded for anybody,
// or cannot be decided.
func (g *Gate) newRequest(ctx context.Context, c reeve.Call) (*request, error) {
	v, err := g.viewCache.getAgent(ctx, g, c.Workspace, c.Agent)
	if err == nil && v.runsBeforeWrite(c) {
		v, err = g.viewCache.refreshAgent(ctx, g, v, c.Agent)
	}
	if err != nil {
		return nil, err
	}
	c.Agent = v.agent.ID
	if c.Session == "" && c.Run == "" {
		c.Session = reeve.DefaultSession(c.User)
	}
	if err := checkThreadPart("session", c.Session); err != nil {
		return nil, err
	}
	if err := checkThreadPart("run", c.Run); err != nil {
		return nil, err
	}
	req := &request{caller: caller{call: c, view: v}, g: g, draftID: g.DB.NewID(reeve.PrefixMessage),
		operation:   c.Operation,
		hasCallerID: c.Operation != "", session: sessionKey(c), leaseLapses: g.lease.lapseCount.Load()}
	req.thread = req.session
	if err := req.loadPrincipals(ctx); err != nil {
		return nil, err
	}
	if !req.hasCallerID {
		req.operation = g.DB.NewID(reeve.PrefixOperation)
	}
	return req, nil
}

// checkThreadPart refuses a text that cannot be part of a thread's name.
func checkThreadPart(what, s string) error {
	if len(s) > 128 || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0xfffd }) {
		return &reeve.Error{Code: reeve.Validation, Message: "the " + what + " is not a name",
			Fields: []reeve.Field{{Path: "/" + what,
				Message: "too long, or holds control characters", Expected: "at most 128 printable characters"}}}
	}
	return nil
}

// sessionKey returns the key under which session-scoped tools keep their data: one agent's, in one session or run.
func sessionKey(c reeve.Call) string {
	if c.Run != "" && c.Session == "" {
		return reeve.RunThread(c.Agent, c.Run)
	}
	return reeve.SessionThread(c.Agent, c.Session)
}

// loadPrincipals reads the agents on whose behalf the call is made, all at one revision of the workspace, so that the
// revision check when the call is written holds for all of them. It also finds the thread of a call in a run.
func (r *request) loadPrincipals(ctx context.Context) error {
	var a ancestry
	if r.call.Run != "" {
		var err error
		if a, err = r.g.ancestry.get(ctx, r.g.DB, r.call.Workspace, r.call.Run); err != nil {
			return err
		}
		// in a conversation led by another agent the thread is that agent's
		if r.call.Via.FromBrain() && a.agent == r.call.Agent {
			r.thread = a.thread
		}
		if r.call.Via == reeve.ViaScript && a.agent == "" { // a dry run has no run row
			r.thread = reeve.RunThread(r.call.Agent, r.call.Run)
		}
	}
	r.delegated = slices.Concat(a.delegators, r.call.OnBehalfOf)
	list := a.principalRefs(r.call.OnBehalfOf)
	for range maxDecisions {
		same, err := r.tryLoadPrincipals(ctx, list)
		if same || err != nil {
			return err
		}
		r.g.viewCache.invalidate(r.call.Workspace)
		if r.view, err = r.g.viewCache.getAgent(ctx, r.g, r.call.Workspace, r.call.Agent); err != nil {
			return err
		}
	}
	return errKeepsChanging
}

// tryLoadPrincipals reads the principals of the call. It returns false if one of them is at another revision than the
// caller.
func (r *request) tryLoadPrincipals(ctx context.Context, list []principalRef) (same bool, err error) {
	r.chain = nil
	for _, s := range list {
		v, err := r.g.viewCache.getAgent(ctx, r.g, r.call.Workspace, s.AgentID)
		if reeve.CodeOf(err) == reeve.NotFound {
			return false, reeve.Errorf(reeve.Denied, "the agent on whose behalf this runs is gone").
				Hintf("what was begun for it neither goes on nor is undone; an agent that is there must do it anew")
		}
		if err != nil {
			return false, err
		}
		if v.ws.Revision != r.view.ws.Revision {
			return false, nil
		}
		r.chain = append(r.chain, principal{v, s.Ancestor, s.delegated})
		if s.rights != nil {
			then, tools := v.withRights(*s.rights)
			r.chain = append(r.chain, principal{then, reeve.Ancestor{AgentID: s.AgentID, Tools: tools}, true})
		}
	}
	return true, nil
}

// loadRequest rebuilds the request of a recorded call from its rows.
func (g *Gate) loadRequest(ctx context.Context, op reeve.Operation) (*request, error) {
	var c store.Call
	var a reeve.Approval
	var asked bool
	err := g.DB.View(ctx, func(s *store.Snap) (err error) {
		if c, err = s.Ledger().GetCall(ctx, op.WorkspaceID, op.CallID); err != nil {
			return err
		}
		a, asked, err = s.Ledger().LastApproval(ctx, op.ID)
		return err
	})
	if err != nil {
		return nil, err
	}
	info, err := c.RequestInfo()
	if err != nil {
		return nil, err
	}
	item, err := g.getAppliedProposal(ctx, op, info)
	if err != nil {
		return nil, err
	}
	args, err := g.getOriginalArgs(ctx, op, info, c.Args)
	if err != nil {
		return nil, err
	}
	req, err := g.newRequest(ctx, reeve.Call{Workspace: op.WorkspaceID, Agent: op.AgentID, Tool: op.Tool, Args: args,
		Session: info.Session, Run: op.RunID, User: info.User, Via: info.Via, Tools: info.Tools, Base: info.Base,
		Reason: info.Reason, Ref: info.Ref})
	if err != nil {
		return nil, err
	}
	req.draftID, req.operation, req.undoes, req.resumed = op.CallID, op.ID, info.Undoes, &op
	req.thread, req.proposal = op.ThreadID, item
	if asked {
		req.approval = &a
	}
	return req, nil
}

// getAppliedProposal returns the proposal that an operation applies, or nil.
func (g *Gate) getAppliedProposal(ctx context.Context, op reeve.Operation, info reeve.ActionInfo) (*reeve.Proposal, error) {
	if info.ProposalID == "" {
		return nil, nil
	}
	var item reeve.Proposal
	return &item, g.DB.View(ctx, func(s *store.Snap) (err error) {
		item, err = s.Ledger().GetProposal(ctx, op.WorkspaceID, info.ProposalID)
		return err
	})
}
