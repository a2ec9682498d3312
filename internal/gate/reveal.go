package gate

import (
	"context"
	"slices"
	"time"

	"reeve"
	"reeve/internal/store"
)

// Reveal returns the exact arguments of a call that an approval is about, and its preview without redaction. Nothing of
// that is recorded. The preview is empty if the tool has none; it fails if the call would be refused now.
func (g *Gate) Reveal(ctx context.Context, workspace, approval string) (args, preview string, err error) {
	op, err := g.getWaitingOperation(ctx, workspace, approval)
	if err != nil {
		return "", "", err
	}
	req, err := g.loadCurrentRequest(ctx, op)
	if err != nil {
		return "", "", err
	}
	args = string(req.call.Args)
	if e, ok := req.view.workspace.tools[op.Tool]; !ok || e.tool.Preview == nil || op.State != reeve.Parked {
		return args, "", nil
	}
	d := g.previewAgain(ctx, req)
	if d.refusal != nil || d.preview == nil {
		return args, "", d.refusal
	}
	return args, d.preview.Change, nil
}

// WhyStale returns why an approval of a waiting call would run nothing: what the call is based on has changed since the
// person was asked, or the agent may no longer make the call. It returns an empty string if nothing has changed, and
// also if the tool does not answer within previewTimeout.
func (g *Gate) WhyStale(ctx context.Context, workspace, approval string) (string, error) {
	op, err := g.getWaitingOperation(ctx, workspace, approval)
	if err != nil || op.State != reeve.Parked {
		return "", err
	}
	return g.whyStale(ctx, op)
}

// WhyProposalStale is WhyStale for a pending proposal.
func (g *Gate) WhyProposalStale(ctx context.Context, p reeve.Proposal) (string, error) {
	var op reeve.Operation
	if err := g.DB.View(ctx, func(s *store.Snap) error {
		c, err := s.Ledger().GetCall(ctx, p.WorkspaceID, p.CallID)
		op = c.Operation
		return err
	}); err != nil {
		return "", err
	}
	op.ToolVersion, op.Base = p.ToolVersion, p.Base
	return g.whyStale(ctx, op)
}

// previewTimeout bounds how long a person waits for the preview that WhyStale makes.
const previewTimeout = 2 * time.Second

// whyStale returns why the call of an operation would run nothing.
func (g *Gate) whyStale(ctx context.Context, op reeve.Operation) (string, error) {
	req, err := g.loadCurrentRequest(ctx, op)
	if isLastingRefusal(err) {
		return reeve.AsError(err).Message, nil
	}
	if err != nil {
		return "", err
	}
	if e, ok := req.view.workspace.tools[op.Tool]; ok && e.fingerprint != op.ToolVersion {
		return "the tool has changed since the agent asked", nil
	}
	ctx, cancel := context.WithTimeout(ctx, previewTimeout)
	defer cancel()
	d := g.previewAgain(ctx, req)
	if isLastingRefusal(d.refusal) {
		return d.redactAndTruncate(reeve.AsError(d.refusal).Message), nil
	}
	if op.Base != "" && d.preview != nil && d.preview.Base != op.Base {
		return "the target has changed since the agent asked", nil
	}
	return "", nil
}

// isLastingRefusal reports whether a call that was refused now would also be refused after an approval. A spent budget,
// for example, makes the call wait again.
func isLastingRefusal(err error) bool {
	codes := []reeve.Code{reeve.Denied, reeve.Forbidden, reeve.NotFound, reeve.Stale}
	return err != nil && slices.Contains(codes, reeve.CodeOf(err))
}

// getWaitingOperation returns the operation that an approval is about.
func (g *Gate) getWaitingOperation(ctx context.Context, workspace, approval string) (op reeve.Operation, err error) {
	err = g.DB.View(ctx, func(s *store.Snap) error {
		a, err := s.Ledger().GetApproval(ctx, workspace, approval)
		if err == nil {
			op, err = s.Ledger().GetOperation(ctx, workspace, a.OperationID)
		}
		return err
	})
	return op, err
}

// loadCurrentRequest loads the call of an operation with the present rights of its agent.
func (g *Gate) loadCurrentRequest(ctx context.Context, op reeve.Operation) (*request, error) {
	g.viewCache.invalidateAgents(op.WorkspaceID) // no write follows that would detect an outdated view
	return g.loadRequest(ctx, op)
}

// previewAgain decides on a waiting call as if it were a new one that only asks for a preview, without redaction.
func (g *Gate) previewAgain(ctx context.Context, req *request) *Decision {
	req.resumed, req.approval, req.proposal, req.hasCallerID = nil, nil, nil, false
	req.call.Run, req.call.PreviewOnly, req.showsSecrets = "", true, true
	return g.decide(ctx, req)
}

// LookUp asks the tool of an operation with unknown outcome whether it took effect, and returns the answer with what
// the tool found, without secrets. It records nothing and sends nothing again.
func (g *Gate) LookUp(ctx context.Context, workspace, operation string) (what reeve.Outcome, found string, err error) {
	var op reeve.Operation
	if err := g.DB.View(ctx, func(s *store.Snap) (err error) {
		op, err = s.Ledger().GetOperation(ctx, workspace, operation)
		return err
	}); err != nil {
		return "", "", err
	}
	if op.State != reeve.Unknown {
		return "", "", reeve.Errorf(reeve.Conflict, "operation %s is %s, so its outcome is known or still open", op.ID,
			op.State).Hintf("read the operation again")
	}
	req, err := g.loadCurrentRequest(ctx, op)
	if err != nil {
		return "", "", err
	}
	d, callable := req.resumeDecision()
	if !callable || d.tool().Verify == nil {
		return "", "", reeve.Errorf(reeve.Unsupported, "the tool %q cannot look up what happened", op.Tool).
			Hintf("look at the other side, then resolve the operation")
	}
	if err := req.checkNotStopped(); err != nil {
		return "", "", err
	}
	inv := d.invocation(op.CallID, op.Attempts)
	defer inv.Close()
	type answer struct {
		what reeve.Outcome
		text string
	}
	out, err := runWithTimeout(ctx, d.tool().Timeout(), func(ctx context.Context) (a answer, err error) {
		what, v, err := d.tool().Verify(ctx, inv)
		return answer{what, g.renderValue(v)}, err
	})
	return out.what, d.redactAndTruncate(out.text), err
}
