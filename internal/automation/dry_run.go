package automation

import (
	"context"
	"encoding/json"
	"fmt"

	"reeve"
	"reeve/internal/canonjson"
	"reeve/internal/store"
)

// previewCall stores a call that a dry run would make. It stores the tool's preview or, for a tool without previews,
// checks that the gate would allow the call. The script gets a placeholder for the result. A call that uses such a
// placeholder has no preview, because its arguments are not known yet.
func (w *execution) previewCall(ctx context.Context, c reeve.Call, t reeve.Tool) (json.RawMessage, error) {
	p := reeve.PlannedCall{Tool: t.ID, Args: string(c.Args), DependsOn: findPlaceholders(c.Args)}
	if o := itemOf(ctx); o != nil {
		p.DependsOn = findPlaceholders(c.Args, json.RawMessage(o.ID), json.RawMessage(o.Title))
	}
	if len(p.DependsOn) > 0 {
		if err := w.claimPlanned(ctx, c, t); err != nil {
			return nil, err
		}
	} else if t.Previews {
		c.PreviewOnly = true
		res, err := w.Gate.Call(ctx, c)
		if err != nil {
			return nil, w.checkFatal(err)
		}
		if p.Preview, p.Base = res.Content, res.Base; res.Truncated {
			if p.Preview, err = w.readFullOutput(ctx, res.Hash); err != nil {
				return nil, err
			}
		}
	} else {
		x, err := w.Gate.Preview(ctx, c)
		if err != nil {
			return nil, err
		}
		for _, s := range x.Steps {
			if s.Verdict == reeve.Refused {
				return nil, reeve.Errorf(reeve.Denied, "%s", x.Outcome)
			}
		}
	}
	w.mu.Lock()
	o := w.itemOfCall[c.Ref]
	if o == nil || w.operations[c.Ref] == "" { // a call that changes nothing is not part of the plan
		w.mu.Unlock()
		return nil, nil
	}
	o.hasPlannedCalls = true
	w.plannedCalls++
	w.planRows++
	p.Ordinal, p.ItemID, p.Title, p.Attempt, p.Operation = w.planRows, o.ID, o.Title, o.Attempt, w.operations[c.Ref]
	result := newPlaceholder(t.ID, p.Ordinal)
	if len(p.DependsOn) > 0 {
		p.Operation = "" // it derives from the arguments
	}
	if w.trial != nil {
		w.trial.changes = append(w.trial.changes, trialChange{p.ItemID, p.Tool, json.RawMessage(p.Args),
			reeve.Truncate(p.Preview, 2000), p.DependsOn})
		w.mu.Unlock()
		return nil, result
	}
	w.mu.Unlock()
	if err := w.DB.Update(ctx, func(tx *store.Tx) error {
		return tx.Automations().InsertPlannedCall(ctx, w.run.WorkspaceID, w.run.ID, p)
	}); err != nil {
		return nil, err
	}
	return nil, result
}

// claimPlanned checks the item rule for a planned call whose arguments are not known yet.
func (w *execution) claimPlanned(ctx context.Context, c reeve.Call, t reeve.Tool) error {
	args := c.Args
	if v, err := canonjson.Parse(args); err == nil {
		args = canonjson.CanonicalValue(v)
	}
	_, err := w.ItemRule.CheckCall(ctx, c, t, args)
	return err
}

// recordUnchangedItem adds an item without changes to the plan. The caller holds w.mu.
func (w *execution) recordUnchangedItem(o *openItem) {
	if !w.isDryRun() || w.trial != nil || o.hasPlannedCalls {
		return
	}
	w.planRows++
	w.buffer.entries = append(w.buffer.entries,
		itemEntry{planned: &reeve.PlannedCall{Ordinal: w.planRows, ItemID: o.ID, Title: o.Title, Attempt: o.Attempt}})
	w.scheduleFlush()
}

// planPageSize is how many calls of a plan are read at once.
const planPageSize = 200

// applyPlan performs the calls of a plan, item by item. If the base of a call has changed, the call is refused and its
// item fails; the other items are still applied.
func (w *execution) applyPlan(ctx context.Context) error {
	var list []reeve.PlannedCall
	for after := 0; ; after = list[len(list)-1].Ordinal {
		var page []reeve.PlannedCall
		if err := w.DB.View(ctx, func(s *store.Snap) (err error) {
			page, err = s.Automations().ListPlannedCalls(ctx, w.run.WorkspaceID, w.record.PlanOf, after, planPageSize)
			return err
		}); err != nil {
			return err
		}
		list = append(list, page...)
		if len(page) < planPageSize {
			break
		}
	}
	w.mu.Lock()
	w.record.Progress.Total = countItems(list)
	w.mu.Unlock()
	for len(list) > 0 {
		n := 1
		for n < len(list) && list[n].ItemID == list[0].ItemID {
			n++
		}
		if err := w.applyItem(ctx, list[:n]); err != nil {
			return err
		}
		list = list[n:]
	}
	return nil
}

func countItems(list []reeve.PlannedCall) int {
	seen := map[string]bool{}
	for _, c := range list {
		seen[c.ItemID] = true
	}
	return len(seen)
}

// applyItem performs the calls of one item. It fails only when the run must end.
func (w *execution) applyItem(ctx context.Context, calls []reeve.PlannedCall) error {
	if err := w.checkPaused(ctx); err != nil {
		return err
	}
	for _, p := range calls {
		if len(p.DependsOn) > 0 {
			w.refuseDependentItem(p)
			return nil
		}
	}
	o, err := w.enterItem(ctx, calls[0].ItemID, calls[0].Title)
	if err != nil || o == nil {
		return err
	}
	var why *reeve.Error
	for _, p := range calls {
		if o.wasDone {
			break // another run finished the item
		}
		if o.Attempt != p.Attempt {
			why = reeve.Errorf(reeve.Stale, "item %q was restarted after the plan was made", o.ID).
				Hintf("make a new plan")
			break
		}
		if p.Tool == "" {
			break // the item has no changes
		}
		if why, err = w.applyCall(ctx, o, p); err != nil {
			return err
		}
		if why != nil {
			break
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fatalErr != nil {
		return w.fatalErr
	}
	w.openItem = nil
	switch {
	case o.wasDone:
	case why != nil:
		w.record.Progress.Failed++
		if w.firstFailure == "" {
			w.firstFailure = why.Message
		}
		w.recordItemEnd(o.Item, reeve.ItemFailed, why)
	default:
		w.record.Progress.Done++
		w.recordItemEnd(o.Item, reeve.ItemDone, nil)
	}
	return nil
}

// refuseDependentItem counts an item as failed, and leaves it as it is, because a call of it uses a result that is
// known only when the script runs.
func (w *execution) refuseDependentItem(p reeve.PlannedCall) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.record.Progress.Failed++
	if w.firstFailure == "" {
		w.firstFailure = fmt.Sprintf("item %q was not touched: step %d (%s) uses the result of step %d, which is "+
			"known only when the script runs; run the automation for it", p.ItemID, p.Ordinal, p.Tool, p.DependsOn[0])
	}
}

// applyCall performs one call of a plan. It returns why the call failed; err means that the run must end.
func (w *execution) applyCall(ctx context.Context, o *openItem, p reeve.PlannedCall) (why *reeve.Error, err error) {
	if err := w.checkPaused(ctx); err != nil {
		return nil, err
	}
	if err := w.flush(ctx); err != nil {
		return nil, err
	}
	if err := w.checkItemUnresolved(ctx, o); err != nil {
		return nil, err
	}
	c := w.newCall(p.Tool, json.RawMessage(p.Args), o)
	c.Base = p.Base
	defer w.releaseCall(c.Ref)
	res, err := w.callDetached(ctx, c)
	if _, err = w.scriptValue(ctx, res, err); err != nil {
		return reeve.AsError(err), nil
	}
	return nil, nil
}
