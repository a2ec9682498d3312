package automation

import (
	"context"
	"encoding/json"

	"reeve"
	"reeve/internal/canonjson"
	"reeve/internal/store"
)

// reads tells whether a call that was not judged yet will be found to change nothing.
func reads(t reeve.Tool, input json.RawMessage) bool {
	v, err := canonjson.Parse(input)
	return err == nil && !mutates(t, canonjson.CanonicalValue(v))
}

// mutates tells whether a call changes something. A tool that does not say does.
func mutates(t reeve.Tool, args json.RawMessage) bool {
	return t.Effect.Mutates() && (t.Reads == nil || !t.Reads(args))
}

// claimed is the place of a call within its item.
type claimed struct {
	operation string
	item      string
	fresh     bool // nothing can have been done for the item before
	named     bool // the call had its name already
}

// claim checks the rule and counts the call among equal ones of its item.
func (w *work) claim(c reeve.Call, t reeve.Tool, args json.RawMessage) (claimed, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if op, ok := w.named[c.Ref]; ok {
		return claimed{operation: op, named: true}, nil
	}
	if w.fatal != nil {
		return claimed{}, w.fatal
	}
	if w.looks[c.Ref] { // its arguments were repaired to others, or the tool came after the run had begun
		return claimed{}, reeve.Errorf(reeve.Denied, "%s would change something, which a dry run does not", t.ID)
	}
	o := w.places[c.Ref]
	switch {
	case o == nil:
		return claimed{}, w.abort(reeve.Errorf(reeve.Conflict,
			"%s changes something, and was called outside Items.withItem", t.ID).
			Hintf("call it inside the handler of the item that it is for, and await it there"))
	case o.settled:
		return claimed{}, w.abort(reeve.Errorf(reeve.Conflict, "%s was called for item %q, which is %s", t.ID, o.ID,
			o.State).
			Hintf("look at ctx.item.isDone before anything is changed"))
	}
	identity := string(pick(args, t.Identity))
	key := t.ID + "\x00" + identity
	if o.flying[key] > 0 {
		return claimed{}, w.abort(reeve.Errorf(reeve.Conflict,
			"%s was called twice at once for the same thing, in item %q", t.ID, o.ID).
			Hintf("await the first call before the second"))
	}
	n := o.counts[key]
	o.counts[key]++
	o.flying[key]++
	o.keys[c.Ref] = key
	return claimed{operation: reeve.ItemKey(w.run.AgentID, o.ID, o.Attempt, t.ID, identity, n), item: o.ID,
		fresh: o.fresh}, nil
}

// landed notes that a call is over.
func (w *work) landed(ref string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if o := w.places[ref]; o != nil {
		if key, ok := o.keys[ref]; ok {
			o.flying[key]--
			delete(o.keys, ref)
		}
	}
	delete(w.named, ref)
	delete(w.looks, ref)
	delete(w.places, ref)
}

// settleName finds the operation that the call is, of an item that was begun before. One that failed in an earlier run,
// and is proven to have had no effect, is made again under a name of its own. The same thing with other content is a
// person's to decide.
func (w *work) settleName(ctx context.Context, c claimed, t reeve.Tool, args json.RawMessage) (op string, err error) {
	op = c.operation
	for again := 1; ; again++ {
		var was reeve.Operation
		var found bool
		err := w.DB.View(ctx, func(s *store.Snap) (err error) {
			was, found, err = s.Ledger().FindOperation(ctx, w.run.WorkspaceID, op)
			return err
		})
		switch {
		case err != nil:
			return "", err
		case !found:
			return op, nil
		case (was.State == reeve.Failed || was.State == reeve.DeniedOp) && was.RunID != w.run.ID:
			op = reeve.RetryKey(c.operation, again)
			continue
		case was.ArgsHash != reeve.Hash(args):
			w.mu.Lock()
			defer w.mu.Unlock()
			w.attention = true
			return "", w.abort(reeve.Errorf(reeve.Conflict,
				"%s was called before for the same thing of item %q, with other content (operation %s)", t.ID, c.item,
				was.ID).
				Hintf("a person decides: reprocess the item to do it anew, or skip it"))
		}
		return op, w.goesOn(ctx) // nothing is written that would find out
	}
}

// pick gives the arguments that say which thing is acted on; all of them if the tool names none.
func pick(args json.RawMessage, names []string) json.RawMessage {
	if len(names) == 0 {
		return args
	}
	var all map[string]json.RawMessage
	if json.Unmarshal(args, &all) != nil {
		return args
	}
	some := map[string]json.RawMessage{}
	for _, n := range names {
		if v, ok := all[n]; ok {
			some[n] = v
		}
	}
	out, err := json.Marshal(some) // sorted by name, and the values are canonical already
	if err != nil {
		return args
	}
	return out
}
