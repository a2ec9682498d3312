package automation

import (
	"context"
	"encoding/json"
	"sync"

	"reeve"
	"reeve/internal/store"
)

// Items knows the scripts that run in this process, and decides on their calls: it is the gate's item rule. It needs no
// gate, so it is made before the gate is.
type Items struct {
	mu   sync.Mutex
	live map[string]*work // by run
}

// NewItems makes an Items that knows no script yet.
func NewItems() *Items { return &Items{live: map[string]*work{}} }

// CheckCall is the item rule: a call that changes something is made inside one item that is not settled, and its
// operation id derives from that item. A script that breaks the rule has its run aborted.
func (i *Items) CheckCall(ctx context.Context, c reeve.Call, t reeve.Tool,
	args json.RawMessage) (op string, err error) {
	w := i.working(c.Run)
	if w == nil {
		return "", reeve.Errorf(reeve.Denied, "no script of run %s is under way here", c.Run)
	}
	if t.Pack == scriptsPack {
		return "", reeve.Errorf(reeve.NotFound, "tool %q not found", t.ID).
			Hintf("it is for planning and mending scripts, and never for a script itself")
	}
	if !mutates(t, args) {
		return "", nil
	}
	base, err := w.claim(c, t, args)
	switch {
	case err != nil:
		return "", err
	case base.named: // it was overtaken: by a pause perhaps
		return base.operation, w.goesOn(ctx)
	}
	if op = base.operation; !base.fresh {
		if op, err = w.settleName(ctx, base, t, args); err != nil {
			return "", err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.named[c.Ref] = op
	return op, nil
}

// WriteItems writes the unwritten records of a run's items into the transaction of the call that carries them.
func (i *Items) WriteItems(ctx context.Context, tx *store.Tx, c reeve.Call) error {
	w := i.working(c.Run)
	if w == nil || !w.carries(c.Ref) {
		return nil
	}
	return w.write(ctx, tx, false)
}

// working returns the run that is under way here, or nil.
func (i *Items) working(run string) *work {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.live[run]
}

// add makes the calls of a run known.
func (i *Items) add(w *work) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.live[w.run.ID] = w
}

// remove forgets a run, unless the same run was added again since.
func (i *Items) remove(w *work) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.live[w.run.ID] == w {
		delete(i.live, w.run.ID)
	}
}
