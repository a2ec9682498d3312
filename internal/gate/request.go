package gate

import (
	"context"
	"slices"
	"strings"

	"reeve"
	"reeve/internal/store"
)

// request is a call together with the data that the gate loads before it decides.
type request struct {
	caller
	g               *Gate
	draftID         string // id of the call until it is recorded; see Recorder.assignID
	operation       string // id of the operation, if the call leaves one
	hasCallerID     bool   // the caller chose the operation id, so it may have been used before
	idUsedElsewhere bool   // another workspace uses the operation id
	origin
	showsSecrets bool   // the preview is for a person who may see stored secrets, and is not recorded
	session      string // key under which session-scoped tools store their data
	thread       string // the thread that the call is written to
	leaseLapses  int64  // lease.lapseCount when the call began

	resumed  *reeve.Operation // the stored operation if a recorded call is resumed; nil for a new call
	approval *reeve.Approval  // the latest approval of the resumed call
	proposal *reeve.Proposal  // the proposal that the resumed call applies
}

// newRequest loads the agent that makes a call and its principals. It fails if the agent does not exist or if the
// session or run is not valid. Such a call cannot be recorded.
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
	var a ancestry
	if c.Run != "" {
		if a, err = g.ancestry.get(ctx, g.DB, c.Workspace, c.Run); err != nil {
			return nil, err
		}
	}
	req.thread = req.chooseThread(a)
	if err := req.loadPrincipals(ctx, a); err != nil {
		return nil, err
	}
	if !req.hasCallerID {
		req.operation = g.DB.NewID(reeve.PrefixOperation)
	}
	return req, nil
}

// checkThreadPart checks that a session or run can be part of a thread id.
func checkThreadPart(what, s string) error {
	if len(s) > 128 || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0xfffd }) {
		return &reeve.Error{Code: reeve.Validation, Message: "the " + what + " is not valid",
			Fields: []reeve.Field{{Path: "/" + what,
				Message:  "is too long or contains control characters",
				Expected: "at most 128 printable characters, with the user of a private session"}}}
	}
	return nil
}

// sessionKey returns the key under which session-scoped tools store the data of the call's agent in its session or run.
func sessionKey(c reeve.Call) string {
	if c.Run != "" && c.Session == "" {
		return reeve.RunThread(c.Agent, c.Run)
	}
	return reeve.SessionThread(c.Agent, c.Session)
}

// chooseThread returns the thread that the call belongs to, given the ancestry of its run.
func (r *request) chooseThread(a ancestry) string {
	switch {
	case r.call.Run == "":
	case r.call.Via == reeve.ViaScript && a.agent == "": // a dry run has no run row
		return reeve.RunThread(r.call.Agent, r.call.Run)
	case r.call.Via.IsFromBrain() && a.agent == r.call.Agent:
		return a.thread // in a conversation that another agent leads, the thread belongs to that agent
	}
	return r.session
}

// loadPrincipals loads the principals of the call, all at one revision of the workspace. The revision check at the
// write then covers all of them.
func (r *request) loadPrincipals(ctx context.Context, a ancestry) error {
	r.creators = slices.Concat(a.delegators, r.call.OnBehalfOf)
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

// tryLoadPrincipals loads the principals of the call. It returns false if one of them was loaded at another revision
// than the caller.
func (r *request) tryLoadPrincipals(ctx context.Context, list []principalRef) (same bool, err error) {
	r.chain = nil
	for _, s := range list {
		v, err := r.g.viewCache.getAgent(ctx, r.g, r.call.Workspace, s.AgentID)
		if reeve.CodeOf(err) == reeve.NotFound {
			return false, reeve.Errorf(reeve.Denied, "the agent on whose behalf this runs no longer exists").
				Hintf("its calls can be neither continued nor undone; another agent must start over")
		}
		if err != nil {
			return false, err
		}
		if v.ws.Revision != r.view.ws.Revision {
			return false, nil
		}
		r.chain = append(r.chain, principal{v, s.Ancestor, s.isCreator})
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
	var found bool
	err := g.DB.View(ctx, func(s *store.Snap) (err error) {
		if c, err = s.Ledger().GetCall(ctx, op.WorkspaceID, op.CallID); err != nil {
			return err
		}
		a, found, err = s.Ledger().LastApproval(ctx, op.ID)
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
	if found {
		req.approval = &a
	}
	return req, nil
}

// getAppliedProposal returns the proposal that an operation applies, or nil if it applies none.
func (g *Gate) getAppliedProposal(ctx context.Context, op reeve.Operation,
	info reeve.ActionInfo) (*reeve.Proposal, error) {
	if info.ProposalID == "" {
		return nil, nil
	}
	var item reeve.Proposal
	return &item, g.DB.View(ctx, func(s *store.Snap) (err error) {
		item, err = s.Ledger().GetProposal(ctx, op.WorkspaceID, info.ProposalID)
		return err
	})
}
