package httpapi

import (
	"context"
	"encoding/json"

	"reeve"
	"reeve/internal/chat"
	"reeve/internal/gate"
	"reeve/internal/store"
)

// A person who decides on a call sees all of what it would do. Those who may look but not decide are not shown what
// looks like a secret in it.

// viewRedactor hides likely secrets in approvals and proposals from callers who may look but not decide.
type viewRedactor struct {
	db   *store.DB
	gate *gate.Gate
}

// redact makes approvals and proposals fit for who asks for them.
func (v viewRedactor) redact(ctx context.Context, snap *store.Snap, who reeve.Principal, approvals []reeve.Approval,
	items []reeve.Proposal) error {
	if who.Role.Allows(reeve.Member) || len(approvals)+len(items) == 0 {
		return nil
	}
	shown, err := v.gate.Redaction(ctx, snap, who.Workspace)
	if err != nil {
		return err
	}
	for i := range approvals {
		approvals[i].Args, approvals[i].Preview = shown.ForObservers(approvals[i].Args),
			shown.ForObservers(approvals[i].Preview)
	}
	for i := range items {
		items[i].Args, items[i].Preview = shown.ForObservers(items[i].Args), shown.ForObservers(items[i].Preview)
	}
	return nil
}

// redactOne is oversee for one of each, which may be nil.
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

// redactFrame makes one line of a conversation fit for who listens.
func (v viewRedactor) redactFrame(ctx context.Context, who reeve.Principal, l chat.EncodedFrame) (json.RawMessage, error) {
	if l.Type != reeve.FrameApproval || who.Role.Allows(reeve.Member) {
		return l.Data, nil
	}
	var f reeve.Frame
	if err := json.Unmarshal(l.Data, &f); err != nil {
		return nil, err
	}
	err := v.db.View(ctx, func(snap *store.Snap) error {
		shown, err := v.gate.Redaction(ctx, snap, who.Workspace)
		if err == nil {
			f.Preview = shown.ForObservers(f.Preview)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return json.Marshal(f)
}
