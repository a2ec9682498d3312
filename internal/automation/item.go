package automation

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"

	"reeve"
	"reeve/internal/sandbox/js"
	"reeve/internal/store"
)

// handlerArgument is what the handler of an item is called with.
func handlerArgument(v reeve.Item) (json.RawMessage, error) {
	type item struct {
		ID      string `json:"id"`
		Title   string `json:"title"`
		IsDone  bool   `json:"isDone"`
		Attempt int    `json:"attempt"`
	}
	return json.Marshal(struct {
		Item item `json:"item"`
	}{item{v.ID, v.Title, v.State == reeve.ItemDone, v.Attempt}})
}

// withItem works on one item: it enters it, lets the handler work, and leaves it done or failed. An item that is done
// is only looked at; one that a person skipped, or must decide on, is passed over.
func (w *work) withItem(ctx context.Context, args []js.Arg) (json.RawMessage, error) {
	id, title, handler, err := itemArgs(args)
	if err != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		return nil, w.abort(reeve.AsError(err))
	}
	w.mu.Lock()
	recently, full := reeve.Since(w.looked) < soon, len(w.ledger.waits) > mostWaiting
	w.mu.Unlock()
	if full {
		if err := w.flush(ctx); err != nil {
			return nil, err
		}
	}
	if !recently { // items that only pass by need not ask each time
		if err := w.goesOn(ctx); err != nil {
			return nil, err
		}
	}
	o, err := w.enter(ctx, id, title)
	if err != nil || o == nil {
		return nil, err
	}
	argument, err := handlerArgument(o.Item)
	if err != nil {
		return nil, err
	}
	return nil, handler.CallAndReturn(func(err error) { w.leave(o, err) }, argument)
}

func itemArgs(args []js.Arg) (id, title string, handler *js.Func, err error) {
	for i, p := range []struct {
		name string
		to   *string
	}{{"id", &id}, {"title", &title}} {
		if i >= len(args) || args[i].JSON == nil || json.Unmarshal(args[i].JSON, p.to) != nil ||
			bytes.Equal(args[i].JSON, []byte("null")) {
			return "", "", nil, reeve.Errorf(reeve.Validation,
				"Items.withItem: the %s must be a string that is not empty", p.name)
		}
		if half(args[i].JSON) {
			return "", "", nil, reeve.Errorf(reeve.Validation,
				"Items.withItem: the %s holds half a character, which is no text", p.name)
		}
		if err := reeve.CheckItemName(p.name, *p.to); err != nil {
			return "", "", nil, reeve.Errorf(reeve.Validation, "Items.withItem: %s", reeve.AsError(err).Message)
		}
	}
	if len(args) < 3 || args[2].Func == nil {
		return "", "", nil, reeve.Errorf(reeve.Validation, "Items.withItem: the handler must be a function")
	}
	return id, title, args[2].Func, nil
}

// half tells whether a string in JSON holds half of a surrogate pair. All of those would be read as the same
// replacement character, and two items as one. The engine writes whole characters as they are, so that an escape of one
// is half of one.
func half(text []byte) bool {
	for i := 0; i+3 < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		if i++; text[i] == 'u' && (text[i+1]|0x20) == 'd' && text[i+2] >= '8' {
			return true
		}
	}
	return false
}

// enter opens an item; nil means that it is passed over.
func (w *work) enter(ctx context.Context, id, title string) (*opened, error) {
	o := &opened{Item: reeve.Item{AgentID: w.run.AgentID, WorkspaceID: w.run.WorkspaceID, ID: id, Title: title,
		State: reeve.ItemProcessing, Attempt: 1, CreatedBy: "automation",
		FirstRun: w.run.ID, LastRun: w.run.ID}, counts: map[string]int{}, flying: map[string]int{},
		keys: map[string]string{}}
	w.mu.Lock()
	for w.open != nil && w.open.left && w.fatal == nil {
		w.idle.Wait() // its handler has returned, and calls that it did not wait for are under way
	}
	if w.open != nil && w.fatal == nil {
		defer w.mu.Unlock()
		return nil, w.abort(reeve.Errorf(reeve.Conflict, "Items.withItem was called for item %q while item %q is open",
			id, w.open.ID).
			Hintf("one item at a time: await each call of Items.withItem, and nest none"))
	}
	if w.fatal != nil {
		defer w.mu.Unlock()
		return nil, w.fatal
	}
	w.open = o
	w.mu.Unlock()
	was, found, err := w.find(ctx, id)
	if err == nil && found {
		err = w.free(ctx, was)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err != nil:
		w.open = nil
		return nil, err
	case found && was.State == reeve.ItemDone:
		o.Item, o.settled = was, true
		w.noteTried(o, true)
		w.note.Progress.Skipped++
		w.tick()
		return o, nil
	case found && was.State.IsSettled():
		w.open = nil
		w.noteTried(o, true)
		w.note.Progress.Skipped++
		w.tick()
		return nil, nil
	case found:
		o.Attempt, o.FirstRun, o.CreatedAt = was.Attempt, was.FirstRun, was.CreatedAt
	}
	o.fresh = !found
	w.noteTried(o, false)
	w.noteEntry(entry{item: o.Item, enter: true})
	return o, nil
}

// free ends the run if another one is at an item. Runs of one automation follow each other, but for those that are
// steps of others'.
func (w *work) free(ctx context.Context, v reeve.Item) error {
	if v.State != reeve.ItemProcessing || v.LastRun == w.run.ID || v.LastRun == "" || w.dry() {
		return nil
	}
	var state reeve.RunState
	err := w.DB.View(ctx, func(s *store.Snap) (err error) {
		state, err = s.Runs().RunState(ctx, w.run.WorkspaceID, v.LastRun)
		return err
	})
	if err != nil || state == "" || state.Final() {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.abort(reeve.Errorf(reeve.Conflict, "item %q is being worked on by another run of this automation, %s",
		v.ID, v.LastRun).
		Hintf("wait for that run, or give runs that go side by side items of their own"))
}

// stands ends the run if a person has settled its item meanwhile. An item whose entry is not written yet is nobody's to
// settle.
func (w *work) stands(ctx context.Context, o *opened) error {
	if o == nil || o.settled {
		return nil
	}
	w.mu.Lock()
	waits := slices.ContainsFunc(w.ledger.waits, func(e entry) bool { return e.item.ID == o.ID })
	w.mu.Unlock()
	if waits {
		return nil
	}
	var is reeve.Item
	if err := w.DB.View(ctx, func(s *store.Snap) (err error) {
		is, err = s.Automations().GetItem(ctx, w.run.AgentID, o.ID)
		return err
	}); err != nil {
		return err
	}
	if is.State == reeve.ItemProcessing && is.Attempt == o.Attempt {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.abort(reeve.Errorf(reeve.Conflict, "item %q was settled by somebody else meanwhile", o.ID).
		Hintf("what it had done stays; run the automation again for the items that are left"))
}

// tick has the progress written now and then while only items pass by that change nothing.
func (w *work) tick() {
	if !w.ledger.behind() && reeve.Since(w.seen) > 25*soon {
		w.arm()
	}
}

// leave is told what the handler of an item came to. The item is closed once its calls have ended, too.
func (w *work) leave(o *opened, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if o.left, o.threw = true, err; o.busy == 0 {
		w.shut(o)
	}
}

// shut closes an item. A run that is ended from outside leaves its item as it is: see Room.Run. The caller holds w.mu.
func (w *work) shut(o *opened) {
	defer w.idle.Broadcast()
	var thrown *js.Error
	switch {
	case w.fatal != nil, o.threw != nil && !errors.As(o.threw, &thrown):
		return
	case o.settled:
	case o.threw == nil:
		w.noteUnchanged(o)
		w.note.Progress.Done++
		w.close(o.Item, reeve.ItemDone, nil)
	default:
		w.note.Progress.Failed++
		if w.failure == "" {
			w.failure = thrown.Error()
		}
		w.close(o.Item, reeve.ItemFailed, &reeve.Error{Code: reeve.CodeOf(o.threw), Message: thrown.Error()})
	}
	w.open = nil
}

// close notes how an item is left. The caller holds w.mu.
func (w *work) close(v reeve.Item, state reeve.ItemState, why *reeve.Error) {
	v.State = state
	if why != nil {
		v.Code, v.Message = why.Code, reeve.Truncate(why.Message, 4000)
	}
	w.noteEntry(entry{item: v})
	if w.dry() {
		w.closed[v.ID] = v
	}
}

// listItems lists the automation's own items.
func (w *work) listItems(ctx context.Context, input json.RawMessage) (json.RawMessage, error) {
	var f reeve.ItemFilter
	if input != nil {
		d := json.NewDecoder(bytes.NewReader(input))
		d.DisallowUnknownFields()
		if err := d.Decode(&f); err != nil {
			return nil, reeve.Errorf(reeve.Validation, "Items.list takes {status, id, limit, offset}: %v", err)
		}
		var said struct{ Limit *int }
		if json.Unmarshal(input, &said) == nil && said.Limit != nil && *said.Limit == 0 {
			return nil, reeve.InvalidField("/limit", "is out of bounds", "1 to 1000")
		}
	}
	if err := f.Validate(); err != nil {
		return nil, err
	}
	if err := w.goesOn(ctx); err != nil {
		return nil, err
	}
	if err := w.flush(ctx); err != nil {
		return nil, err
	}
	var l reeve.ItemList
	if err := w.DB.View(ctx, func(s *store.Snap) (err error) {
		l, err = s.Automations().ListItems(ctx, w.run.AgentID, f)
		return err
	}); err != nil {
		return nil, err
	}
	return json.Marshal(l)
}

// total notes how many items there are in all.
func (w *work) total(input json.RawMessage) error {
	const most = 1 << 53 // from which on a script's numbers are not exact
	var n *int           // NaN and Infinity come as null
	if json.Unmarshal(input, &n) != nil || n == nil || *n < 0 || *n >= most {
		return reeve.Errorf(reeve.Validation, "Items.total takes the number of items")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note.Progress.Total = *n
	w.arm()
	return nil
}
