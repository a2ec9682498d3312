package gate

import (
	"context"
	"encoding/json"

	"reeve"
	"reeve/internal/store"
)

// Withdraw takes back the calls of an automation's item that wait for a person, or that were approved and have not begun: a person has settled the item otherwise. Their approvals lapse,
// and say why.
func (g *Gate) Withdraw(ctx context.Context, tx *store.Tx, v reeve.Item, why string) error {
	list, err := tx.WaitingOperations(ctx, v.WorkspaceID, v.LastRun)
	if err != nil {
		return err
	}
	for _, op := range list {
		info, err := askedAs(ctx, tx, op)
		if err != nil {
			return err
		}
		if op.AgentID != v.AgentID || info.Item != v.ID || info.Attempt != v.Attempt {
			continue
		}
		a, asked, err := tx.LastApproval(ctx, op.ID)
		if err != nil {
			return err
		}
		if asked && a.State == reeve.Pending {
			a.State, a.Comment = reeve.Lapsed, why
			if err := tx.MoveApproval(ctx, a, reeve.Pending); err != nil {
				return err
			}
		}
		if err := g.deny(ctx, tx, op, reeve.Errorf(reeve.Denied, "%s", why), reeve.Step{Name: "approval", Verdict: reeve.Refused, Why: why}); err != nil {
			return err
		}
	}
	return nil
}

// settled says why a call of a script must not run any more: a person has skipped its item, or begun it anew, while it waited.
func settled(ctx context.Context, tx *store.Tx, op reeve.Operation, info reeve.ActionInfo) (void, err error) {
	if info.Item == "" {
		return nil, nil
	}
	v, err := tx.GetItem(ctx, op.AgentID, info.Item)
	switch {
	case err != nil:
		return nil, err
	case v.State == reeve.ItemSkipped:
		return reeve.Errorf(reeve.Denied, "the item %q that it was for was skipped by a person", v.ID), nil
	case v.Attempt != info.Attempt:
		return reeve.Errorf(reeve.Denied, "the item %q that it was for was begun anew by a person", v.ID), nil
	}
	return nil, nil
}

// askedAs is what an operation's call said of itself.
func askedAs(ctx context.Context, tx *store.Tx, op reeve.Operation) (info reeve.ActionInfo, err error) {
	m, err := tx.GetMessage(ctx, op.WorkspaceID, op.CallID)
	if err == nil {
		err = json.Unmarshal(m.Metadata, &info)
	}
	return info, err
}
