package automation

import (
	"context"
	"encoding/json"
	"sync"

	"reeve"
	"reeve/internal/store"
)

// ItemRule is the gate's rule for calls of scripts. It knows the scripts that run in this process. It does not need the
// gate, so it is built first.
type ItemRule struct {
	mu         sync.Mutex
	executions map[string]*execution // by run id
}

// NewItemRule returns a rule that knows no script yet.
func NewItemRule() *ItemRule { return &ItemRule{executions: map[string]*execution{}} }

// CheckCall returns the operation id of a script's call, or "" for a read. A call that changes something must be made
// inside one item that is not finished; its operation id derives from that item. A violation aborts the run.
func (i *ItemRule) CheckCall(ctx context.Context, c reeve.Call, t reeve.Tool,
	args json.RawMessage) (op string, err error) {
	w := i.get(c.Run)
	if w == nil {
		return "", reeve.Errorf(reeve.Denied, "run %s has no script running in this process", c.Run)
	}
	if t.Pack == scriptsPack {
		return "", reeve.Errorf(reeve.NotFound, "tool %q not found", t.ID).
			Hintf("scripts_* tools are for the planner and the maintainer; scripts cannot call them")
	}
	if !isMutation(t, args) {
		return "", nil
	}
	base, err := w.claimCall(c, t, args)
	switch {
	case err != nil:
		return "", err
	case base.isRepeat: // the gate repeats a check after a conflict, for example with a pause
		return base.operation, w.checkPaused(ctx)
	}
	if op = base.operation; !base.itemIsNew {
		if op, err = w.resolveOperation(ctx, base, t, args); err != nil {
			return "", err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.operations[c.Ref] = op
	return op, nil
}

// WriteItems writes the pending item records of a run into the transaction of the call that carries them.
func (i *ItemRule) WriteItems(ctx context.Context, tx *store.Tx, c reeve.Call) error {
	w := i.get(c.Run)
	if w == nil || !w.isCarrier(c.Ref) {
		return nil
	}
	return w.writePending(ctx, tx, false)
}

// get returns the execution of a run in this process, or nil.
func (i *ItemRule) get(run string) *execution {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.executions[run]
}

// add registers an execution.
func (i *ItemRule) add(w *execution) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.executions[w.run.ID] = w
}

// remove deletes an execution, unless the same run was added again.
func (i *ItemRule) remove(w *execution) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.executions[w.run.ID] == w {
		delete(i.executions, w.run.ID)
	}
}
