package automation

import (
	"context"
	"encoding/json"

	"reeve"
	"reeve/internal/canonjson"
	"reeve/internal/store"
)

// isRead reports whether a call, before the gate has checked it, changes nothing.
func isRead(t reeve.Tool, input json.RawMessage) bool {
	v, err := canonjson.Parse(input)
	return err == nil && !isMutation(t, canonjson.CanonicalValue(v))
}

// isMutation reports whether a call changes something. If the tool has no IsRead, its effect decides.
func isMutation(t reeve.Tool, args json.RawMessage) bool {
	return t.Effect.Mutates() && (t.IsRead == nil || !t.IsRead(args))
}

// callClaim is the position of a call within its item.
type callClaim struct {
	operation string
	item      string
	itemIsNew bool // the item has no calls of earlier runs
	isRepeat  bool // the gate has checked this call before
}

// claimCall checks the item rule and counts the call among the equal calls of its item.
func (w *execution) claimCall(c reeve.Call, t reeve.Tool, args json.RawMessage) (callClaim, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if op, ok := w.operations[c.Ref]; ok {
		return callClaim{operation: op, isRepeat: true}, nil
	}
	if w.fatalErr != nil {
		return callClaim{}, w.fatalErr
	}
	if w.dryReads[c.Ref] { // the gate changed the arguments, or the tool was attached after the run began
		return callClaim{}, reeve.Errorf(reeve.Denied, "%s would change something, which a dry run must not do", t.ID)
	}
	o := w.itemOfCall[c.Ref]
	switch {
	case o == nil:
		return callClaim{}, w.abort(reeve.Errorf(reeve.Conflict,
			"%s changes something and was called outside Items.withItem", t.ID).
			Hintf("call it inside the handler of its item and await it there"))
	case o.wasDone:
		return callClaim{}, w.abort(reeve.Errorf(reeve.Conflict, "%s was called for item %q, which is %s", t.ID, o.ID,
			o.State).
			Hintf("check ctx.item.isDone before making changes"))
	}
	identity := string(identityArgs(args, t.Identity))
	key := t.ID + "\x00" + identity
	if o.inFlight[key] > 0 {
		return callClaim{}, w.abort(reeve.Errorf(reeve.Conflict,
			"%s was called twice concurrently with the same identity, in item %q", t.ID, o.ID).
			Hintf("await the first call before the second"))
	}
	n := o.callCounts[key]
	o.callCounts[key]++
	o.inFlight[key]++
	o.callKeys[c.Ref] = key
	return callClaim{operation: reeve.ItemKey(w.run.AgentID, o.ID, o.Attempt, t.ID, identity, n), item: o.ID,
		itemIsNew: o.isNew}, nil
}

// releaseCall removes a call that is over.
func (w *execution) releaseCall(ref string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if o := w.itemOfCall[ref]; o != nil {
		if key, ok := o.callKeys[ref]; ok {
			o.inFlight[key]--
			delete(o.callKeys, ref)
		}
	}
	delete(w.operations, ref)
	delete(w.dryReads, ref)
	delete(w.itemOfCall, ref)
}

// resolveOperation returns the operation id of a call for an item that an earlier run began. A call that failed in an
// earlier run without effect is made again under a retry id. If the same thing was called with other content, the run
// is aborted and the item needs attention.
func (w *execution) resolveOperation(ctx context.Context, c callClaim, t reeve.Tool,
	args json.RawMessage) (op string, err error) {
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
			w.needsAttention = true
			return "", w.abort(reeve.Errorf(reeve.Conflict,
				"item %[2]q has already called %[1]s for the same target with other arguments (operation %[3]s)",
				t.ID, c.item, was.ID).
				Hintf("a person must decide: reprocess the item, or skip it"))
		}
		return op, w.checkPaused(ctx) // a replayed call writes nothing that would detect a pause
	}
}

// identityArgs returns the arguments that identify what is acted on, or all arguments if the tool names none.
func identityArgs(args json.RawMessage, names []string) json.RawMessage {
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
	out, err := json.Marshal(some) // sorted by name; the values are canonical already
	if err != nil {
		return args
	}
	return out
}
