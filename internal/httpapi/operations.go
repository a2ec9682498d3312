package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"reeve"
	"reeve/internal/gate"
	"reeve/internal/store"
)

// inboxLimit is how much of each kind the inbox shows.
const inboxLimit = 200

func (s *server) listOperations(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Page
	Agent string      `query:"agent" maxLength:"128" doc:"Id or name"`
	State reeve.State `query:"state" enum:"prepared,parked,dispatched,committed,failed,unknown,denied,proposed"`
}) (*body[reeve.OperationList], error) {
	if err := checkCursor(in.Cursor); err != nil {
		return nil, err
	}
	out := &body[reeve.OperationList]{}
	err := s.DB.View(ctx, func(snap *store.Snap) error {
		agent, err := agentFilter(ctx, snap, who.Workspace, in.Agent)
		if err != nil {
			return err
		}
		if out.Body.Operations, err = snap.ListOperations(ctx, who.Workspace, store.OperationFilter{Agent: agent, State: in.State, Before: in.Cursor, Limit: in.Limit}); err != nil {
			return err
		}
		shown, err := s.Gate.Shown(ctx, snap, who.Workspace)
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

func (s *server) getOperation(ctx context.Context, who reeve.Principal, in *IDPath) (*body[reeve.Operation], error) {
	out := &body[reeve.Operation]{}
	return out, s.DB.View(ctx, func(snap *store.Snap) (err error) {
		if out.Body, err = snap.GetOperation(ctx, who.Workspace, in.ID); err != nil {
			return err
		}
		shown, err := s.Gate.Shown(ctx, snap, who.Workspace)
		if err != nil {
			return err
		}
		shown.Operation(&out.Body)
		return withArgs(ctx, snap, &out.Body)
	})
}

// withArgs shows an operation with what was asked for: a person cannot judge it without.
func withArgs(ctx context.Context, snap *store.Snap, op *reeve.Operation) error {
	c, err := snap.GetCall(ctx, op.WorkspaceID, op.CallID)
	op.Args = c.Args
	return err
}

func (s *server) resolve(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	Body reeve.ResolveRequest
}) (*body[reeve.Operation], error) {
	op, err := s.Gate.Inbox.Resolve(ctx, who.Workspace, in.ID, in.Body, who.User)
	return &body[reeve.Operation]{op}, err
}

// deliver takes an outcome that comes from outside.
func (s *server) deliver(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	Body    reeve.ResultRequest
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
		return nil, (&reeve.Error{Code: reeve.Validation, Message: message, Fields: []reeve.Field{{Path: "/content", Message: message}, {Path: "/error", Message: message}}}).
			Hintf(`send {"content": ...}, which may be empty text but not null, or {"error": "why"}`)
	}
	if err := s.DB.View(ctx, func(snap *store.Snap) error {
		op, err := snap.GetOperation(ctx, who.Workspace, in.ID)
		if err != nil {
			return err
		}
		if no, err := hiddenRun(ctx, snap, who, op.RunID); err != nil || no {
			return cmp.Or(err, error(reeve.Errorf(reeve.NotFound, "operation %q not found", in.ID)))
		}
		return nil
	}); err != nil {
		return nil, err
	}
	op, err := s.Gate.Deliver(ctx, who.Workspace, in.ID, gate.Delivery{Content: in.Body.Content, Failure: in.Body.Error})
	return &body[reeve.Operation]{op}, err
}

func (s *server) undo(ctx context.Context, who reeve.Principal, in *IDPath) (*callOutput, error) {
	res, err := s.Gate.Undo(ctx, who.Workspace, in.ID, who.User, reeve.ViaREST)
	if err != nil {
		return nil, &refusedCall{res.CallID, err}
	}
	return answer(res), nil
}

func (s *server) inbox(ctx context.Context, who reeve.Principal, _ *Scoped) (*body[reeve.Inbox], error) {
	out := &body[reeve.Inbox]{}
	return out, s.DB.View(ctx, func(snap *store.Snap) (err error) {
		if out.Body, err = waiting(ctx, snap, who); err == nil {
			err = s.oversee(ctx, snap, who, out.Body.Approvals, out.Body.Proposals)
		}
		if err == nil {
			out.Body.Hold, err = snap.Hold(ctx)
		}
		for i := 0; i < len(out.Body.Unknown) && err == nil; i++ {
			err = withArgs(ctx, snap, &out.Body.Unknown[i])
		}
		return err
	})
}

// waiting reads what waits for a person: of each kind so much as the inbox shows.
func waiting(ctx context.Context, snap *store.Snap, who reeve.Principal) (in reeve.Inbox, err error) {
	const most = inboxLimit + 1
	if in.Approvals, err = snap.ListApprovals(ctx, who.Workspace, reeve.Pending, "", most); err != nil {
		return in, err
	}
	if in.Unknown, err = snap.ListUnknown(ctx, who.Workspace, most); err != nil {
		return in, err
	}
	if in.Proposals, err = snap.ListProposals(ctx, who.Workspace, store.ProposalFilter{State: reeve.ProposalPending, Limit: most}); err != nil {
		return in, err
	}
	if in.Items, err = snap.WaitingItems(ctx, who.Workspace, most); err != nil {
		return in, err
	}
	in.Questions, err = snap.AskingErrands(ctx, who.Workspace, eyes(who), most)
	in.More = max(len(in.Approvals), len(in.Unknown), len(in.Proposals), len(in.Items), len(in.Questions)) > inboxLimit
	in.Approvals, in.Unknown, in.Proposals = shownOf(in.Approvals), shownOf(in.Unknown), shownOf(in.Proposals)
	in.Items, in.Questions = shownOf(in.Items), shownOf(in.Questions)
	return in, err
}

func shownOf[T any](list []T) []T { return list[:min(len(list), inboxLimit)] }

func (s *server) listApprovals(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Page
	State reeve.ApprovalState `query:"state" enum:"pending,approved,denied,expired,lapsed"`
}) (*body[reeve.ApprovalList], error) {
	if err := checkCursor(in.Cursor); err != nil {
		return nil, err
	}
	out := &body[reeve.ApprovalList]{}
	err := s.DB.View(ctx, func(snap *store.Snap) (err error) {
		if out.Body.Approvals, err = snap.ListApprovals(ctx, who.Workspace, in.State, in.Cursor, in.Limit); err != nil {
			return err
		}
		return s.oversee(ctx, snap, who, out.Body.Approvals, nil)
	})
	if n := len(out.Body.Approvals); n == in.Limit {
		out.Body.Next = out.Body.Approvals[n-1].ID
	}
	return out, err
}

func (s *server) getApproval(ctx context.Context, who reeve.Principal, in *IDPath) (*body[reeve.Approval], error) {
	out := &body[reeve.Approval]{}
	return out, s.DB.View(ctx, func(snap *store.Snap) (err error) {
		a, err := snap.GetApproval(ctx, who.Workspace, in.ID)
		if err != nil {
			return err
		}
		out.Body = a.At(snap.Now())
		return s.overseeOne(ctx, snap, who, &out.Body, nil)
	})
}

func (s *server) decide(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	Body reeve.DecisionRequest
}) (*body[reeve.Approval], error) {
	a, err := s.Gate.Inbox.Decide(ctx, who.Workspace, in.ID, in.Body.Decision == "approve", who.User, in.Body.Comment)
	return &body[reeve.Approval]{a}, err
}

func (s *server) stop(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Body reeve.StopRequest
}) (*none, error) {
	agent, why := "", "everything in this workspace was stopped"
	if in.Body.Reason != "" {
		why += ": " + in.Body.Reason
	}
	if in.Body.Agent != "" { // before the switch is set: the caller may leave then
		if err := s.DB.View(ctx, func(snap *store.Snap) error {
			a, err := snap.GetAgent(ctx, who.Workspace, in.Body.Agent)
			agent, why = a.ID, "the agent "+a.Name+" was stopped"
			return err
		}); err != nil {
			return nil, err
		}
	}
	if err := s.Gate.Stop(ctx, who.Workspace, agent, in.Body.Reason); err != nil {
		return nil, err
	}
	s.Wake.Interrupt(who.Workspace, agent, reeve.Errorf(reeve.Stopped, "%s", why))
	return nil, nil
}
