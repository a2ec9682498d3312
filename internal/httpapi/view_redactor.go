package httpapi

import (
	"context"
	"encoding/json"

	"reeve"
	"reeve/internal/chat"
	"reeve/internal/gate"
	"reeve/internal/store"
)

// viewRedactor redacts calls. Members, who decide on calls, see everything except stored secrets. Viewers do not see
// what only looks like a secret either.
type viewRedactor struct {
	db   *store.DB
	gate *gate.Gate
}

// forCaller returns the function that redacts a text of a call for a caller.
func forCaller(r gate.Redaction, who reeve.Principal) func(text string) string {
	if who.Role.Allows(reeve.Member) {
		return r.ForDeciders
	}
	return r.ForObservers
}

// redact redacts approvals and proposals in place.
func (v viewRedactor) redact(ctx context.Context, snap *store.Snap, who reeve.Principal, approvals []reeve.Approval,
	items []reeve.Proposal) error {
	if len(approvals)+len(items) == 0 {
		return nil
	}
	redaction, err := v.gate.Redaction(ctx, snap, who.Workspace)
	if err != nil {
		return err
	}
	shown := forCaller(redaction, who)
	for i := range approvals {
		a := &approvals[i]
		a.Args, a.Preview, a.Reason, a.Comment = shown(a.Args), shown(a.Preview), shown(a.Reason), shown(a.Comment)
	}
	for i := range items {
		p := &items[i]
		p.Args, p.Preview, p.Reason, p.Comment = shown(p.Args), shown(p.Preview), shown(p.Reason), shown(p.Comment)
	}
	return nil
}

// redactOne is like redact for one approval and one proposal. Both may be nil.
func (v viewRedactor) redactOne(ctx context.Context, snap *store.Snap, who reeve.Principal, a *reeve.Approval,
	item *reeve.Proposal) error {
	var approvals []reeve.Approval
	var items []reeve.Proposal
	if a != nil {
		approvals = append(approvals, *a)
	}
	if item != nil {
		items = append(items, *item)
	}
	err := v.redact(ctx, snap, who, approvals, items)
	if a != nil {
		*a = approvals[0]
	}
	if item != nil {
		*item = items[0]
	}
	return err
}

// decided redacts what a decision returns. The decision is made, so the caller gets it even if ctx is cancelled.
func (v viewRedactor) decided(ctx context.Context, who reeve.Principal, a *reeve.Approval, item *reeve.Proposal) error {
	ctx = context.WithoutCancel(ctx)
	return v.db.View(ctx, func(snap *store.Snap) error { return v.redactOne(ctx, snap, who, a, item) })
}

// redactFrame returns the JSON of a frame as the caller may see it.
func (v viewRedactor) redactFrame(ctx context.Context, who reeve.Principal,
	f chat.EncodedFrame) (json.RawMessage, error) {
	if f.Type != reeve.FrameApproval {
		return f.Data, nil
	}
	var frame reeve.Frame
	if err := json.Unmarshal(f.Data, &frame); err != nil {
		return nil, err
	}
	err := v.db.View(ctx, func(snap *store.Snap) error {
		redaction, err := v.gate.Redaction(ctx, snap, who.Workspace)
		if err == nil {
			frame.Preview = forCaller(redaction, who)(frame.Preview)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return json.Marshal(frame)
}
