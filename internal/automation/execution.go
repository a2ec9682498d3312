package automation

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"reeve"
	"reeve/internal/sandbox/js"
	"reeve/internal/store"
)

// execution is one run of a script in progress, or one trial.
type execution struct {
	*Runner
	ctx       context.Context
	run       reeve.Run
	script    reeve.ScriptVersion
	record    reeve.ScriptRun
	startedAt time.Time
	functions functionTable

	mu                sync.Mutex
	itemClosed        *sync.Cond           // signals that an item was closed
	openItem          *openItem            // the open item, or nil
	operations        map[string]string    // operation ids by call
	itemOfCall        map[string]*openItem // open items by call
	dryReads          map[string]bool      // calls of a dry run that are made because they change nothing
	lastRef           int                  // number of the last call
	carrierRef        string               // the call that carries the pending records; guarded by buffer.writing
	fatalErr          error                // why the run is aborted
	end               *reeve.RunEnd        // how the run ends, if it is aborted without a failure
	needsAttention    bool                 // the open item needs a person
	isOver            bool
	buffer            itemBuffer
	progressWrittenAt time.Time // when the progress was last written
	logLines          []string
	logBytes          int // bytes
	firstFailure      string
	plannedCalls      int // calls of the plan
	planRows          int // rows of the plan, including items without changes

	pauseCheckedAt time.Time // when checkPaused last ran

	dryItems map[string]reeve.Item // items that a dry run has closed, by id; they are not stored

	trial *trialRecord // nil means that this is a run
}

// newExecution returns the execution of a run.
func (r *Runner) newExecution(ctx context.Context, run reeve.Run) *execution {
	w := &execution{Runner: r, ctx: ctx, run: run, startedAt: reeve.Monotonic(), operations: map[string]string{},
		dryReads: map[string]bool{}, itemOfCall: map[string]*openItem{}, dryItems: map[string]reeve.Item{}}
	w.itemClosed = sync.NewCond(&w.mu)
	return w
}

// openItem is an item whose handler, or whose calls, are in progress.
type openItem struct {
	reeve.Item
	wasDone         bool           // the item was done before; nothing may be changed for it
	isNew           bool           // the item has no calls of earlier runs
	hasPlannedCalls bool           // a dry run would change something for it
	activeCalls     int            // calls in progress
	handlerReturned bool           // the handler has returned
	handlerErr      error          // error that the handler threw
	callCounts      map[string]int // equal calls, by tool and identity
	inFlight        map[string]int // equal calls in progress
	callKeys        map[string]string
	failures        []callFailure // failed changes that the script has not ignored
}

// abort ends the run with a failure. The first reason counts. The caller holds w.mu.
func (w *execution) abort(err *reeve.Error) error {
	if w.fatalErr == nil {
		w.fatalErr = err
	}
	return w.fatalErr
}

// endWith ends the run with a state that is not a failure. The caller holds w.mu.
func (w *execution) endWith(end reeve.RunEnd) error {
	if w.end == nil {
		w.end = &end
	}
	return w.abort(reeve.Errorf(reeve.Canceled, "the run ends as %s", end.State))
}

func (w *execution) isDryRun() bool { return w.record.Type == reeve.DryRun }

// openItemKey is the context key of the item that was open when the script made a call.
type openItemKey struct{}

// Note assigns a call to the item that is open when the script makes it. That item stays open until the call has ended.
// The result reports whether the call must run in order; log lines must.
func (w *execution) Note(ctx context.Context, name string) (context.Context, bool) {
	if name == withItem {
		return ctx, false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	o := w.openItem
	if o != nil && o.handlerReturned {
		o = nil
	}
	if o != nil {
		o.activeCalls++
	}
	return context.WithValue(ctx, openItemKey{}, o), name == consoleLog
}

// itemOf returns the item that a call belongs to, or nil.
func itemOf(ctx context.Context) *openItem {
	o, _ := ctx.Value(openItemKey{}).(*openItem)
	return o
}

// callEnded closes an item whose handler has returned, after its last call.
func (w *execution) callEnded(o *openItem) {
	if o == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if o.activeCalls--; o.handlerReturned && o.activeCalls == 0 {
		w.closeItem(o)
	}
}

// Call performs a function call of the script.
func (w *execution) Call(ctx context.Context, name string, args []js.Arg) (json.RawMessage, error) {
	defer w.callEnded(itemOf(ctx))
	value, err := w.dispatch(ctx, name, args)
	if errors.As(err, new(store.Fault)) {
		err = w.checkFatal(err)
	}
	w.mu.Lock()
	fatal := w.fatalErr
	w.mu.Unlock()
	if fatal != nil {
		return nil, js.Abort(fatal)
	}
	return value, err
}

func (w *execution) dispatch(ctx context.Context, name string, args []js.Arg) (json.RawMessage, error) {
	at := func(i int) json.RawMessage {
		if i < len(args) {
			return args[i].JSON
		}
		return nil
	}
	switch name {
	case withItem:
		return w.withItem(ctx, args)
	case listItems:
		return w.listItems(ctx, at(0))
	case totalItems:
		return nil, w.setTotal(at(0))
	case consoleLog:
		w.Log(renderLogCall(args))
		return nil, nil
	case getDocs:
		return w.renderDocs(at(0))
	case ignoreError:
		return nil, w.ignore(itemOf(ctx), args)
	case toolsCall:
		var id string
		if json.Unmarshal(at(0), &id) != nil || id == "" {
			return nil, reeve.Errorf(reeve.Validation, "Tools.call requires a tool's id and its input")
		}
		return w.callTool(ctx, "", id, at(1))
	case listScripts, getScript, scriptHistory, scriptRuns:
		return w.queryScripts(ctx, name, at(0))
	}
	id := w.functions.byName[name].ID
	if id == "" {
		id = w.functions.uncallable[name]
	}
	return w.callTool(ctx, name, id, renameArguments(name, id, at(0)))
}

// renderLogCall returns the level and the text of a call of Console.log. An object {type, line} has both.
func renderLogCall(args []js.Arg) (level, text string) {
	var one struct{ Type, Line *string }
	if len(args) == 1 && args[0].JSON != nil && json.Unmarshal(args[0].JSON, &one) == nil && one.Line != nil {
		if level = "log"; one.Type != nil {
			level = *one.Type
		}
		return level, *one.Line
	}
	return "log", renderLogArgs(args)
}

// renderLogArgs joins the arguments of Console.log.
func renderLogArgs(args []js.Arg) string {
	parts := make([]string, 0, len(args))
	for _, a := range args {
		var s string
		switch {
		case a.JSON == nil:
			s = "undefined"
		case json.Unmarshal(a.JSON, &s) != nil:
			s = string(a.JSON)
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, " ")
}

// maxLogBytes bounds the stored log of a run. The last lines are kept.
const maxLogBytes = 32 << 10

// Log adds a line to the run's log.
func (w *execution) Log(level, text string) {
	if level != "log" && level != "info" {
		text = level + ": " + text
	}
	text = reeve.Truncate(text, maxLogBytes/4)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.logLines, w.logBytes = append(w.logLines, text), w.logBytes+len(text)+1
	for w.logBytes > maxLogBytes {
		w.logBytes -= len(w.logLines[0]) + 1
		w.logLines = w.logLines[1:]
	}
	w.scheduleFlush()
}

// snapshotRecord returns the script run with its current log and progress. The caller holds w.mu.
func (w *execution) snapshotRecord() reeve.ScriptRun {
	v := w.record
	v.Log = strings.Join(w.logLines, "\n")
	if v.Progress.Current = ""; w.openItem != nil {
		v.Progress.Current = w.openItem.Title
	}
	v.Progress.Planned = w.plannedCalls
	if s := reeve.Since(w.startedAt).Seconds(); s > 0 {
		v.Progress.Rate = float64(int(10*float64(v.Progress.Done+v.Progress.Skipped)/s)) / 10
	}
	return v
}

// callTool calls a tool through the gate, for a function of the script if name is not empty. An item remembers its
// failed changes.
func (w *execution) callTool(ctx context.Context, name, id string, input json.RawMessage) (value json.RawMessage,
	err error) {
	if input == nil {
		input = json.RawMessage(`{}`)
	}
	t, o := w.functions.byID[id], itemOf(ctx)
	if id != "" {
		value, err = w.makeCall(ctx, id, input)
	}
	if t.ID == "" && (err != nil || id == "") {
		err = w.explainUncallable(ctx, name, id, err)
	}
	mayChange := t.ID == "" || t.Effect.Mutates() && !isRead(t, input)
	if o != nil && err != nil && mayChange && !errors.As(err, new(*js.NotRun)) {
		w.mu.Lock()
		defer w.mu.Unlock()
		o.failures = append(o.failures, callFailure{id, err})
	}
	return value, err
}

func (w *execution) makeCall(ctx context.Context, id string, input json.RawMessage) (json.RawMessage, error) {
	t := w.functions.byID[id]
	changes := t.ID != "" && t.Effect.Mutates() && !(w.isDryRun() && isRead(t, input))
	if !changes || w.isDryRun() { // the write of a change detects a pause itself
		if err := w.checkPaused(ctx); err != nil {
			return nil, err
		}
	}
	if changes && !w.isDryRun() {
		if err := w.checkItemUnresolved(ctx, itemOf(ctx)); err != nil {
			return nil, err
		}
	}
	c := w.newCall(id, input, itemOf(ctx))
	defer w.releaseCall(c.Ref)
	switch {
	case t.ID != "" && !changes && w.isDryRun() && len(findPlaceholders(input)) > 0:
		return nil, &js.NotRun{Text: "result of " + id + " with the " + placeholderText(input)}
	case !changes && w.trial != nil:
		return w.readInTrial(ctx, c)
	case !changes:
		return w.callRead(ctx, c)
	case w.isDryRun():
		return w.previewCall(ctx, c, t)
	}
	return w.callMutation(ctx, c, t)
}

// newCall returns a call for the gate and registers its item.
func (w *execution) newCall(id string, input json.RawMessage, in *openItem) reeve.Call {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lastRef++
	w.itemOfCall[strconv.Itoa(w.lastRef)] = in
	c := reeve.Call{Workspace: w.run.WorkspaceID, Agent: w.run.AgentID, Tool: id, Args: input, Run: w.run.ID,
		Automation: w.run.AgentID, User: w.run.UserID,
		Session: reeve.AutomationSession,
		Via:     reeve.ViaScript, Ref: strconv.Itoa(w.lastRef), Reason: string(w.run.Reason)}
	if in != nil {
		c.Item, c.Attempt = in.ID, in.Attempt
	}
	if w.trial != nil { // a trial has no run that the gate could read
		c.OnBehalfOf = w.run.OnBehalfOf
	}
	return c
}

// checkPaused ends the run if its automation is paused.
func (w *execution) checkPaused(ctx context.Context) error {
	if w.trial != nil {
		return nil
	}
	var is bool
	err := w.DB.View(ctx, func(s *store.Snap) (err error) {
		is, err = s.Automations().IsPaused(ctx, w.run.AgentID)
		return err
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pauseCheckedAt = reeve.Monotonic()
	if err == nil && is {
		return w.endWith(reeve.RunEnd{State: reeve.RunPaused, Output: pausedOutput})
	}
	return err
}

func (w *execution) callRead(ctx context.Context, c reeve.Call) (json.RawMessage, error) {
	if w.isDryRun() {
		w.mu.Lock()
		w.dryReads[c.Ref] = true
		w.mu.Unlock()
	}
	if err := w.flush(ctx); err != nil { // so that the tool sees the current items
		return nil, err
	}
	res, err := w.Gate.Call(ctx, c)
	return w.scriptValue(ctx, res, err)
}

// callMutation makes a call that changes something. A call with a local effect carries the pending records in its
// transaction. Before any other call they are flushed.
func (w *execution) callMutation(ctx context.Context, c reeve.Call, t reeve.Tool) (json.RawMessage, error) {
	if t.Effect != reeve.Local {
		if err := w.flush(ctx); err != nil {
			return nil, err
		}
		res, err := w.callDetached(ctx, c)
		return w.scriptValue(ctx, res, err)
	}
	w.buffer.writing.Lock()
	w.setCarrier(c.Ref)
	res, err := w.callDetached(ctx, c)
	if taken := w.setCarrier(""); taken && err == nil && (res.State == reeve.Committed || res.State == reeve.Failed) &&
		!res.Replayed {
		w.markCommitted()
		w.mu.Lock()
		w.pauseCheckedAt = w.buffer.committedAt // the write fails if the automation is paused
		w.mu.Unlock()
	}
	w.buffer.writing.Unlock()
	return w.scriptValue(ctx, res, err)
}

// callDetached makes a call that a stopping server does not cancel.
func (w *execution) callDetached(ctx context.Context, c reeve.Call) (reeve.Result, error) {
	ctx, done := reeve.DetachFromShutdown(ctx)
	defer done()
	return w.Gate.Call(ctx, c)
}

// setCarrier sets the call that carries the pending records, or none. It reports whether the previous carrier wrote
// them. The caller holds w.buffer.writing.
func (w *execution) setCarrier(ref string) (taken bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	taken = w.buffer.included
	w.carrierRef, w.buffer.included = ref, false
	return taken
}

func (w *execution) isCarrier(ref string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.carrierRef == ref
}

// scriptValue returns the result of a call as a script value. A call that waits parks the run. Later the script runs
// again and completed calls are replayed.
func (w *execution) scriptValue(ctx context.Context, res reeve.Result, err error) (json.RawMessage, error) {
	w.mu.Lock()
	if !res.Replayed { // replayed calls were charged before
		w.addSpent(res.Spent)
	}
	w.mu.Unlock()
	if err != nil {
		return nil, w.checkFatal(w.checkRefusal(ctx, err))
	}
	switch res.State {
	case reeve.Parked, reeve.Unknown, reeve.Prepared, reeve.Dispatched:
		if res.Deferred || res.Code == reeve.Skipped {
			break
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		return nil, w.endWith(reeve.RunEnd{State: reeve.RunParked, Output: "a call waits: " + res.Message})
	case reeve.Committed, reeve.Failed, reeve.DeniedOp, reeve.ProposedOp:
	}
	if res.IsError {
		return nil, w.checkFatal(&reeve.Error{Code: res.Code, Message: res.Message, Hint: res.Hint, Fields: res.Fields})
	}
	content := res.Content
	if res.Truncated {
		if content, err = w.readFullOutput(ctx, res.Hash); err != nil {
			return nil, w.checkFatal(err)
		}
	}
	for _, v := range res.Warnings {
		w.Log("warn", v.Code+": "+v.Message)
	}
	return toJSON(content), nil
}

// addSpent adds the cost of a call. The caller holds w.mu.
func (w *execution) addSpent(a reeve.Amount) {
	w.record.Progress.Spent = w.record.Progress.Spent.Plus(a)
}

// checkRefusal ends the run if a refusal means that the run has ended, is parked or is stopped.
func (w *execution) checkRefusal(ctx context.Context, err error) error {
	code := reeve.CodeOf(err)
	if code != reeve.Stopped && code != reeve.Denied && code != reeve.Conflict {
		return err
	}
	var state reeve.RunState
	var parked string
	if e := w.DB.View(ctx, func(s *store.Snap) (err error) {
		if state, err = s.Runs().RunState(ctx, w.run.WorkspaceID, w.run.ID); err == nil {
			parked, err = s.Ledger().FindParkedOperation(ctx, w.run.WorkspaceID, w.run.ID)
		}
		return err
	}); e != nil {
		return e
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case state.IsFinal() && state != "", code == reeve.Stopped:
		return w.endWith(reeve.RunEnd{State: reeve.RunCancelled, Err: reeve.AsError(err)})
	case parked != "":
		return w.endWith(reeve.RunEnd{State: reeve.RunParked, Output: "a call waits for a person"})
	}
	return err
}

// checkFatal aborts the run if a call failed for a reason that a script cannot handle: a credential, a permission, the
// network or an internal error. The script does not see the error, so it cannot ignore it. Other errors, including a
// failed model of an agent that the script asked, are returned to the script.
func (w *execution) checkFatal(err error) error {
	if isModelFailure(reeve.CodeOf(err)) {
		return err
	}
	switch reeve.FailureClassOf(reeve.CodeOf(err)) {
	case reeve.AuthFailure, reeve.PermissionFailure, reeve.NetworkFailure, reeve.InternalFailure:
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.abort(reeve.AsError(err))
	case reeve.LogicFailure, "":
	}
	return err
}

// isModelFailure reports whether a code means that a model did not answer.
func isModelFailure(c reeve.Code) bool { return c == reeve.ModelFailed || c == reeve.AssemblyFailed }

// readFullOutput reads an output that was truncated in the result.
func (w *execution) readFullOutput(ctx context.Context, hash string) (content string, err error) {
	err = w.DB.View(ctx, func(s *store.Snap) error {
		p, err := s.Ledger().GetPayload(ctx, w.run.WorkspaceID, store.OutputPayload, hash, 0, -1)
		content = string(p.Body)
		return err
	})
	if reeve.CodeOf(err) == reeve.NotFound {
		err = reeve.Errorf(reeve.NotFound, "the full output of this call is no longer stored").
			Hintf("the server setting retention limits how long outputs are stored")
	}
	return content, err
}

// toJSON returns a tool's output as JSON. Text that is not JSON becomes a string.
func toJSON(content string) json.RawMessage {
	if json.Valid([]byte(content)) {
		return json.RawMessage(content)
	}
	b, err := json.Marshal(content)
	if err != nil {
		return json.RawMessage(`null`)
	}
	return b
}
