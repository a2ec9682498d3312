package automation

import (
	"context"
	"encoding/json"

	"reeve"
	"reeve/internal/store"
)

// preview writes down a call that a dry run would make: what it would change where its tool can say so, and otherwise
// that the gate would let it through. The script is given null.
func (w *work) preview(ctx context.Context, c reeve.Call, t reeve.Tool) (json.RawMessage, error) {
	p := reeve.PlannedCall{Tool: t.ID, Args: string(c.Args)}
	if t.Previews {
		c.PreviewOnly = true
		res, err := w.Gate.Call(ctx, c)
		if err != nil {
			return nil, w.serious(err)
		}
		if p.Preview, p.Base = res.Content, res.Base; res.Truncated {
			if p.Preview, err = w.whole(ctx, res.Hash); err != nil {
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
	o := w.places[c.Ref]
	if o == nil || w.named[c.Ref] == "" { // by its arguments it changes nothing
		w.mu.Unlock()
		return nil, nil
	}
	o.planned = true
	w.planned++
	w.rows++
	p.Ordinal, p.ItemID, p.Title, p.Attempt, p.Operation = w.rows, o.ID, o.Title, o.Attempt, w.named[c.Ref]
	if w.trial != nil {
		w.trial.changes = append(w.trial.changes, triedCall{p.ItemID, p.Tool, json.RawMessage(p.Args),
			reeve.Truncate(p.Preview, 2000)})
		w.mu.Unlock()
		return nil, nil
	}
	w.mu.Unlock()
	return nil, w.DB.Update(ctx, func(tx *store.Tx) error {
		return tx.Automations().InsertPlannedCall(ctx, w.run.WorkspaceID, w.run.ID, p)
	})
}

// noteUnchanged notes in a plan that an item would be done without any change. The caller holds w.mu.
func (w *work) noteUnchanged(o *opened) {
	if !w.dry() || w.trial != nil || o.planned {
		return
	}
	w.rows++
	w.ledger.waits = append(w.ledger.waits,
		entry{planned: &reeve.PlannedCall{Ordinal: w.rows, ItemID: o.ID, Title: o.Title, Attempt: o.Attempt}})
	w.arm()
}

// somePlanned is how many calls of a plan are read at once.
const somePlanned = 200

// apply performs a plan: its calls, item by item, as they were shown, and nothing else. A call whose base has changed
// is refused, and its item fails; the others are performed all the same.
func (w *work) apply(ctx context.Context) error {
	var list []reeve.PlannedCall
	for after := 0; ; after = list[len(list)-1].Ordinal {
		var page []reeve.PlannedCall
		if err := w.DB.View(ctx, func(s *store.Snap) (err error) {
			page, err = s.Automations().ListPlannedCalls(ctx, w.run.WorkspaceID, w.note.PlanOf, after, somePlanned)
			return err
		}); err != nil {
			return err
		}
		list = append(list, page...)
		if len(page) < somePlanned {
			break
		}
	}
	w.mu.Lock()
	w.note.Progress.Total = countItems(list)
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
func (w *work) applyItem(ctx context.Context, calls []reeve.PlannedCall) error {
	if err := w.goesOn(ctx); err != nil {
		return err
	}
	o, err := w.enter(ctx, calls[0].ItemID, calls[0].Title)
	if err != nil || o == nil {
		return err
	}
	var why *reeve.Error
	for _, p := range calls {
		if o.settled {
			break // it was done since
		}
		if o.Attempt != p.Attempt {
			why = reeve.Errorf(reeve.Stale, "item %q is at another attempt than when the plan was made", o.ID).
				Hintf("plan again")
			break
		}
		if p.Tool == "" {
			break // it is done without any change
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
	if w.fatal != nil {
		return w.fatal
	}
	w.open = nil
	switch {
	case o.settled:
	case why != nil:
		w.note.Progress.Failed++
		if w.failure == "" {
			w.failure = why.Message
		}
		w.close(o.Item, reeve.ItemFailed, why)
	default:
		w.note.Progress.Done++
		w.close(o.Item, reeve.ItemDone, nil)
	}
	return nil
}

// applyCall performs one call of a plan, and gives why that failed. An error is that the run must end.
func (w *work) applyCall(ctx context.Context, o *opened, p reeve.PlannedCall) (why *reeve.Error, err error) {
	if err := w.goesOn(ctx); err != nil {
		return nil, err
	}
	if err := w.flush(ctx); err != nil {
		return nil, err
	}
	if err := w.stands(ctx, o); err != nil {
		return nil, err
	}
	c := w.request(p.Tool, json.RawMessage(p.Args), o)
	c.Base = p.Base
	defer w.landed(c.Ref)
	res, err := w.lastingCall(ctx, c)
	if _, err = w.result(ctx, res, err); err != nil {
		return reeve.AsError(err), nil
	}
	return nil, nil
}
