package automation

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"

	"reeve"
	"reeve/internal/sandbox/js"
	"reeve/internal/store"
)

// handlerArgument encodes the argument of an item's handler.
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

// withItem implements Items.withItem: it enters an item, calls the handler and records the item as done or failed. The
// handler of a done item is called, but may change nothing. An item that was skipped or needs attention is passed over.
func (w *execution) withItem(ctx context.Context, args []js.Arg) (json.RawMessage, error) {
	id, title, handler, err := parseItemArgs(args)
	if err != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		return nil, w.abort(reeve.AsError(err))
	}
	w.mu.Lock()
	recently, full := reeve.Since(w.pauseCheckedAt) < flushDelay, len(w.buffer.entries) > maxPending
	w.mu.Unlock()
	if full {
		if err := w.flush(ctx); err != nil {
			return nil, err
		}
	}
	if !recently { // a script may pass over many items
		if err := w.checkPaused(ctx); err != nil {
			return nil, err
		}
	}
	o, err := w.enterItem(ctx, id, title)
	if err != nil || o == nil {
		return nil, err
	}
	argument, err := handlerArgument(o.Item)
	if err != nil {
		return nil, err
	}
	return nil, handler.CallAndReturn(func(err error) { w.handlerReturned(o, err) }, argument)
}

// parseItemArgs parses the arguments of Items.withItem.
func parseItemArgs(args []js.Arg) (id, title string, handler *js.Func, err error) {
	for i, p := range []struct {
		name string
		to   *string
	}{{"id", &id}, {"title", &title}} {
		if i >= len(args) || args[i].JSON == nil || json.Unmarshal(args[i].JSON, p.to) != nil ||
			bytes.Equal(args[i].JSON, []byte("null")) {
			return "", "", nil, reeve.Errorf(reeve.Validation,
				"Items.withItem: the %s must be a non-empty string", p.name)
		}
		if hasLoneSurrogate(args[i].JSON) {
			return "", "", nil, reeve.Errorf(reeve.Validation,
				"Items.withItem: the %s has half a surrogate pair, which is not valid text", p.name)
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

// hasLoneSurrogate reports whether a JSON string has half of a surrogate pair. Decoding replaces every such half by the
// same character, so two items would get one id. The engine does not escape whole characters, so an escaped surrogate
// is a lone one.
func hasLoneSurrogate(text []byte) bool {
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

// enterItem opens an item. It returns nil if the item is passed over.
func (w *execution) enterItem(ctx context.Context, id, title string) (*openItem, error) {
	o := &openItem{Item: reeve.Item{AgentID: w.run.AgentID, WorkspaceID: w.run.WorkspaceID, ID: id, Title: title,
		State: reeve.ItemProcessing, Attempt: 1, CreatedBy: "automation",
		FirstRun: w.run.ID, LastRun: w.run.ID}, callCounts: map[string]int{}, inFlight: map[string]int{},
		callKeys: map[string]string{}}
	w.mu.Lock()
	for w.openItem != nil && w.openItem.handlerReturned && w.fatalErr == nil {
		w.itemClosed.Wait() // the handler has returned, but calls that it did not await are in progress
	}
	if w.openItem != nil && w.fatalErr == nil {
		defer w.mu.Unlock()
		return nil, w.abort(reeve.Errorf(reeve.Conflict, "Items.withItem was called for item %q while item %q is open",
			id, w.openItem.ID).
			Hintf("process one item at a time: await each call of Items.withItem and do not nest calls"))
	}
	if w.fatalErr != nil {
		defer w.mu.Unlock()
		return nil, w.fatalErr
	}
	w.openItem = o
	w.mu.Unlock()
	was, found, err := w.findItem(ctx, id)
	if err == nil && found {
		err = w.checkItemFree(ctx, was)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err != nil:
		w.openItem = nil
		return nil, err
	case found && was.State == reeve.ItemDone:
		o.Item, o.wasDone = was, true
		w.recordTrialItem(o, true)
		w.record.Progress.Skipped++
		w.flushProgressSometimes()
		return o, nil
	case found && was.State.IsSettled():
		w.openItem = nil
		w.recordTrialItem(o, true)
		w.record.Progress.Skipped++
		w.flushProgressSometimes()
		return nil, nil
	case found:
		o.Attempt, o.FirstRun, o.CreatedAt = was.Attempt, was.FirstRun, was.CreatedAt
	}
	o.isNew = !found
	w.recordTrialItem(o, false)
	w.addEntry(itemEntry{item: o.Item, isStart: true})
	return o, nil
}

// checkItemFree aborts the run if another run is processing the item. Only a run that is a step of another
// run can overlap with this one.
func (w *execution) checkItemFree(ctx context.Context, v reeve.Item) error {
	if v.State != reeve.ItemProcessing || v.LastRun == w.run.ID || v.LastRun == "" || w.isDryRun() {
		return nil
	}
	var state reeve.RunState
	err := w.DB.View(ctx, func(s *store.Snap) (err error) {
		state, err = s.Runs().RunState(ctx, w.run.WorkspaceID, v.LastRun)
		return err
	})
	if err != nil || state == "" || state.IsFinal() {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.abort(reeve.Errorf(reeve.Conflict, "item %q is being processed by another run of this automation, %s",
		v.ID, v.LastRun).
		Hintf("wait for that run, or give concurrent runs different items"))
}

// checkItemUnresolved aborts the run if a person has resolved its item meanwhile. An item whose start is not written
// yet cannot have been resolved.
func (w *execution) checkItemUnresolved(ctx context.Context, o *openItem) error {
	if o == nil || o.wasDone {
		return nil
	}
	w.mu.Lock()
	waits := slices.ContainsFunc(w.buffer.entries, func(e itemEntry) bool { return e.item.ID == o.ID })
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
	return w.abort(reeve.Errorf(reeve.Conflict, "a person skipped or restarted item %q while it was processed", o.ID).
		Hintf("completed calls remain; run the automation again for the other items"))
}

// flushProgressSometimes schedules a write of the progress while a script only passes over items.
func (w *execution) flushProgressSometimes() {
	if !w.buffer.hasPending() && reeve.Since(w.progressWrittenAt) > 25*flushDelay {
		w.scheduleFlush()
	}
}

// handlerReturned records the result of an item's handler. The item is closed when its calls have ended, too.
func (w *execution) handlerReturned(o *openItem, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if o.handlerReturned, o.handlerErr = true, err; o.activeCalls == 0 {
		w.closeItem(o)
	}
}

// closeItem closes an item. If the run is being aborted, the item stays open: see finish. The caller holds w.mu.
func (w *execution) closeItem(o *openItem) {
	defer w.itemClosed.Broadcast()
	var thrown *js.Error
	switch {
	case w.fatalErr != nil, o.handlerErr != nil && !errors.As(o.handlerErr, &thrown):
		return
	case o.wasDone:
	case o.handlerErr == nil && len(o.failures) > 0:
		why := o.failures[0].asItemError()
		w.record.Progress.Failed++
		if w.firstFailure == "" {
			w.firstFailure = why.Message
		}
		w.recordItemEnd(o.Item, reeve.ItemFailed, why)
	case o.handlerErr == nil:
		w.recordUnchangedItem(o)
		w.record.Progress.Done++
		w.recordItemEnd(o.Item, reeve.ItemDone, nil)
	default:
		w.record.Progress.Failed++
		if w.firstFailure == "" {
			w.firstFailure = thrown.Error()
		}
		w.recordItemEnd(o.Item, reeve.ItemFailed, &reeve.Error{Code: reeve.CodeOf(o.handlerErr),
			Message: thrown.Error()})
	}
	w.openItem = nil
}

// recordItemEnd queues the record of a finished item. The caller holds w.mu.
func (w *execution) recordItemEnd(v reeve.Item, state reeve.ItemState, why *reeve.Error) {
	v.State = state
	if why != nil {
		v.Code, v.Message = why.Code, reeve.Truncate(why.Message, 4000)
	}
	w.addEntry(itemEntry{item: v})
	if w.isDryRun() {
		w.dryItems[v.ID] = v
	}
}

// listItems implements Items.list.
func (w *execution) listItems(ctx context.Context, input json.RawMessage) (json.RawMessage, error) {
	var f struct {
		reeve.ItemFilter
		LogicalItemID string `json:"logical_item_id"` // another name of id
	}
	if input != nil {
		d := json.NewDecoder(bytes.NewReader(input))
		d.DisallowUnknownFields()
		if err := d.Decode(&f); err != nil {
			return nil, reeve.Errorf(reeve.Validation,
				"Items.list accepts {status, id, logical_item_id, limit, offset}: %v", err)
		}
		if f.ID != "" && f.LogicalItemID != "" && f.ID != f.LogicalItemID {
			return nil, reeve.InvalidField("/logical_item_id", "differs from id", "one of the two names")
		}
		f.ID = cmp.Or(f.ID, f.LogicalItemID)
		var said struct{ Limit *int }
		if json.Unmarshal(input, &said) == nil && said.Limit != nil && *said.Limit == 0 {
			return nil, reeve.InvalidField("/limit", "is out of range", "1 to 1000")
		}
	}
	if err := f.Validate(); err != nil {
		return nil, err
	}
	if err := w.checkPaused(ctx); err != nil {
		return nil, err
	}
	if err := w.flush(ctx); err != nil {
		return nil, err
	}
	var l reeve.ItemList
	if err := w.DB.View(ctx, func(s *store.Snap) (err error) {
		l, err = s.Automations().ListItems(ctx, w.run.AgentID, f.ItemFilter)
		return err
	}); err != nil {
		return nil, err
	}
	return json.Marshal(newScriptItems(l))
}

// setTotal implements Items.total.
func (w *execution) setTotal(input json.RawMessage) error {
	const most = 1 << 53 // larger numbers are not exact in JavaScript
	var n *int           // NaN and Infinity are null
	if json.Unmarshal(input, &n) != nil || n == nil || *n < 0 || *n >= most {
		return reeve.Errorf(reeve.Validation, "Items.total requires the number of items, a whole number of at least 0")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.record.Progress.Total = *n
	w.scheduleFlush()
	return nil
}
