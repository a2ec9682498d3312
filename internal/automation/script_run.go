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

// work is one run under way: what its script can call, and where it is.
type work struct {
	*Runner
	ctx    context.Context
	run    reeve.Run
	script reeve.ScriptVersion
	note   reeve.ScriptRun
	began  time.Time
	names  names

	mu        sync.Mutex
	idle      *sync.Cond // a call has ended
	open      *opened    // the item that is open; nil means none
	named     map[string]string
	places    map[string]*opened // items that calls belong to
	looks     map[string]bool    // calls of a dry run that are made, because they would change nothing
	refs      int
	carrier   string        // the call that takes the ledger along; see ledger.writing
	fatal     error         // why the run ends, whatever its script does
	stop      *reeve.RunEnd // how it ends, if that is no failure
	attention bool          // the open item needs a person
	over      bool
	ledger    ledger
	seen      time.Time // when the progress was last written
	log       []string
	logged    int // bytes
	failure   string
	planned   int // calls of the plan
	rows      int // of the plan

	looked time.Time // when it was last seen whether the automation is paused

	closed map[string]reeve.Item // items that a dry run has closed, by id; nothing of them is written

	trial *rehearsed // of a script that is only tried; nil means that this is a run
}

// newWork is a run that begins.
func (r *Runner) newWork(ctx context.Context, run reeve.Run) *work {
	w := &work{Runner: r, ctx: ctx, run: run, began: reeve.Monotonic(), named: map[string]string{},
		looks: map[string]bool{}, places: map[string]*opened{}, closed: map[string]reeve.Item{}}
	w.idle = sync.NewCond(&w.mu)
	return w
}

// opened is the item that is open.
type opened struct {
	reeve.Item
	settled bool           // nothing may be changed for it
	fresh   bool           // nothing can have been done for it before
	planned bool           // a dry run would change something for it
	busy    int            // calls under way
	left    bool           // its handler has come to its end
	threw   error          // what that threw
	counts  map[string]int // equal calls, by tool and identity
	flying  map[string]int // those under way
	keys    map[string]string
}

// abort ends the run: the first reason stands. The caller holds w.mu.
func (w *work) abort(err *reeve.Error) error {
	if w.fatal == nil {
		w.fatal = err
	}
	return w.fatal
}

// halt ends the run in a way that is no failure. The caller holds w.mu.
func (w *work) halt(end reeve.RunEnd) error {
	if w.stop == nil {
		w.stop = &end
	}
	return w.abort(reeve.Errorf(reeve.Canceled, "the run ends: it is %s", end.State))
}

func (w *work) dry() bool { return w.note.Type == reeve.DryRun }

// placeKey is the context's key of the item that was open when the script made a call; nil means none.
type placeKey struct{}

// Note notes which item a call belongs to: the one that is open when it is made, whatever is when it is performed. That
// item is not left before the call has ended. Lines of the log stay in their order.
func (w *work) Note(ctx context.Context, name string) (context.Context, bool) {
	if name == withItem {
		return ctx, false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	o := w.open
	if o != nil && o.left { // its handler has come to its end
		o = nil
	}
	if o != nil {
		o.busy++
	}
	return context.WithValue(ctx, placeKey{}, o), name == consoleLog
}

// place is the item that a call belongs to.
func place(ctx context.Context) *opened {
	o, _ := ctx.Value(placeKey{}).(*opened)
	return o
}

// ended notes that a call of an item has.
func (w *work) ended(o *opened) {
	if o == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if o.busy--; o.left && o.busy == 0 {
		w.shut(o)
	}
}

// Call performs a call of the script's.
func (w *work) Call(ctx context.Context, name string, args []js.Arg) (json.RawMessage, error) {
	defer w.ended(place(ctx))
	value, err := w.perform(ctx, name, args)
	if errors.As(err, new(store.Fault)) {
		err = w.serious(err)
	}
	w.mu.Lock()
	fatal := w.fatal
	w.mu.Unlock()
	if fatal != nil {
		return nil, js.Abort(fatal)
	}
	return value, err
}

func (w *work) perform(ctx context.Context, name string, args []js.Arg) (json.RawMessage, error) {
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
		return nil, w.total(at(0))
	case consoleLog:
		w.Log("log", said(args))
		return nil, nil
	case getDocs:
		return w.docs(at(0))
	case toolsCall:
		var id string
		if json.Unmarshal(at(0), &id) != nil || id == "" {
			return nil, reeve.Errorf(reeve.Validation, "Tools.call takes a tool's id, and its input")
		}
		return w.callTool(ctx, id, at(1))
	case listScripts, getScript, scriptHistory, scriptRuns:
		return w.consult(ctx, name, at(0))
	}
	return w.callTool(ctx, w.names.tool[name].ID, at(0))
}

// said is what was logged, as text.
func said(args []js.Arg) string {
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

// mostLogged is how many bytes of a run's log are kept: the last ones.
const mostLogged = 32 << 10

// Log keeps a line.
func (w *work) Log(level, text string) {
	if level != "log" && level != "info" {
		text = level + ": " + text
	}
	text = reeve.Truncate(text, mostLogged/4)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log, w.logged = append(w.log, text), w.logged+len(text)+1
	for w.logged > mostLogged {
		w.logged -= len(w.log[0]) + 1
		w.log = w.log[1:]
	}
	w.arm()
}

// noted is what there is to write of the run. The caller holds w.mu.
func (w *work) noted() reeve.ScriptRun {
	v := w.note
	v.Log = strings.Join(w.log, "\n")
	if v.Progress.Current = ""; w.open != nil {
		v.Progress.Current = w.open.Title
	}
	v.Progress.Planned = w.planned
	if s := reeve.Since(w.began).Seconds(); s > 0 {
		v.Progress.Rate = float64(int(10*float64(v.Progress.Done+v.Progress.Skipped)/s)) / 10
	}
	return v
}

// callTool makes a call through the gate.
func (w *work) callTool(ctx context.Context, id string, input json.RawMessage) (json.RawMessage, error) {
	if input == nil {
		input = json.RawMessage(`{}`)
	}
	t := w.names.byID[id]
	changes := t.ID != "" && t.Effect.Mutates() && !(w.dry() && reads(t, input))
	if !changes || w.dry() { // the write of a change finds out by itself
		if err := w.goesOn(ctx); err != nil {
			return nil, err
		}
	}
	if changes && !w.dry() {
		if err := w.stands(ctx, place(ctx)); err != nil {
			return nil, err
		}
	}
	c := w.request(id, input, place(ctx))
	defer w.landed(c.Ref)
	switch {
	case !changes && w.trial != nil:
		return w.trialRead(ctx, c)
	case !changes:
		return w.read(ctx, c)
	case w.dry():
		return w.preview(ctx, c, t)
	}
	return w.change(ctx, c, t)
}

// request is a call as the gate takes it, in an item or in none.
func (w *work) request(id string, input json.RawMessage, in *opened) reeve.Call {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refs++
	w.places[strconv.Itoa(w.refs)] = in
	c := reeve.Call{Workspace: w.run.WorkspaceID, Agent: w.run.AgentID, Tool: id, Args: input, Run: w.run.ID,
		Automation: w.run.AgentID, User: w.run.UserID,
		Session: reeve.AutomationSession,
		Via:     reeve.ViaScript, Ref: strconv.Itoa(w.refs), Reason: string(w.run.Reason)}
	if in != nil {
		c.Item, c.Attempt = in.ID, in.Attempt
	}
	if w.trial != nil { // which is no run that the gate could look up
		c.OnBehalfOf = w.run.OnBehalfOf
	}
	return c
}

// goesOn ends the run when its automation is paused.
func (w *work) goesOn(ctx context.Context) error {
	if w.trial != nil {
		return nil
	}
	var is bool
	err := w.DB.View(ctx, func(s *store.Snap) (err error) {
		is, err = s.Automations().Paused(ctx, w.run.AgentID)
		return err
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looked = reeve.Monotonic()
	if err == nil && is {
		return w.halt(reeve.RunEnd{State: reeve.RunPaused, Output: paused})
	}
	return err
}

func (w *work) read(ctx context.Context, c reeve.Call) (json.RawMessage, error) {
	if w.dry() {
		w.mu.Lock()
		w.looks[c.Ref] = true
		w.mu.Unlock()
	}
	if err := w.flush(ctx); err != nil { // a reader sees where the run is
		return nil, err
	}
	res, err := w.Gate.Call(ctx, c)
	return w.result(ctx, res, err)
}

// change makes a call that changes something. One whose effect is in our own database takes the ledger along in its
// transaction; before any other leaves, the ledger is written.
func (w *work) change(ctx context.Context, c reeve.Call, t reeve.Tool) (json.RawMessage, error) {
	if t.Effect != reeve.Local {
		if err := w.flush(ctx); err != nil {
			return nil, err
		}
		res, err := w.lastingCall(ctx, c)
		return w.result(ctx, res, err)
	}
	w.ledger.writing.Lock()
	w.carry(c.Ref)
	res, err := w.lastingCall(ctx, c)
	if taken := w.carry(""); taken && err == nil && (res.State == reeve.Committed || res.State == reeve.Failed) &&
		!res.Replayed {
		w.wrote()
		w.mu.Lock()
		w.looked = w.ledger.last // it would not have been written if the automation were paused
		w.mu.Unlock()
	}
	w.ledger.writing.Unlock()
	return w.result(ctx, res, err)
}

// lastingCall makes a call that was decided on, also when the server is told to stop meanwhile.
func (w *work) lastingCall(ctx context.Context, c reeve.Call) (reeve.Result, error) {
	ctx, done := reeve.DetachFromShutdown(ctx)
	defer done()
	return w.Gate.Call(ctx, c)
}

// carry names the call that takes the ledger along, or none, and tells whether the last one did. The caller holds
// w.ledger.writing.
func (w *work) carry(ref string) (taken bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	taken = w.ledger.taken
	w.carrier, w.ledger.taken = ref, false
	return taken
}

func (w *work) carries(ref string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.carrier == ref
}

// result is what the script is given of a call. One that waits parks the run: when it can go on, the script runs again,
// and what it had done is replayed.
func (w *work) result(ctx context.Context, res reeve.Result, err error) (json.RawMessage, error) {
	w.mu.Lock()
	if !res.Replayed { // what was done before cost something then
		w.spend(res.Spent)
	}
	w.mu.Unlock()
	if err != nil {
		return nil, w.serious(w.refused(ctx, err))
	}
	switch res.State {
	case reeve.Parked, reeve.Unknown, reeve.Prepared, reeve.Dispatched:
		if res.Deferred || res.Code == reeve.Skipped {
			break
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		return nil, w.halt(reeve.RunEnd{State: reeve.RunParked, Output: "a call waits: " + res.Message})
	case reeve.Committed, reeve.Failed, reeve.DeniedOp, reeve.ProposedOp:
	}
	if res.IsError {
		return nil, w.serious(&reeve.Error{Code: res.Code, Message: res.Message, Hint: res.Hint, Fields: res.Fields})
	}
	content := res.Content
	if res.Truncated {
		if content, err = w.whole(ctx, res.Hash); err != nil {
			return nil, w.serious(err)
		}
	}
	return asJSON(content), nil
}

// spend adds what a call cost. The caller holds w.mu.
func (w *work) spend(a reeve.Amount) {
	w.note.Progress.Spent = w.note.Progress.Spent.Plus(a)
}

// refused looks at a refusal: one that says that the run is over, or must not do anything, ends it.
func (w *work) refused(ctx context.Context, err error) error {
	code := reeve.CodeOf(err)
	if code != reeve.Stopped && code != reeve.Denied && code != reeve.Conflict {
		return err
	}
	var state reeve.RunState
	var parked string
	if e := w.DB.View(ctx, func(s *store.Snap) (err error) {
		if state, err = s.Runs().RunState(ctx, w.run.WorkspaceID, w.run.ID); err == nil {
			parked, err = s.Ledger().RunIsParked(ctx, w.run.WorkspaceID, w.run.ID)
		}
		return err
	}); e != nil {
		return e
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case state.Final() && state != "", code == reeve.Stopped:
		return w.halt(reeve.RunEnd{State: reeve.RunCancelled, Err: reeve.AsError(err)})
	case parked != "":
		return w.halt(reeve.RunEnd{State: reeve.RunParked, Output: "a call waits for a person"})
	}
	return err
}

// serious ends the run when a call failed for a reason that no script can do anything about: a credential, a
// permission, the network, or a fault of our own. The script never learns of it, so that it cannot take it for success.
// A tool's refusal is the script's to deal with, and so is that an agent which it asked had no model to answer with.
func (w *work) serious(err error) error {
	if unanswered(reeve.CodeOf(err)) {
		return err
	}
	switch reeve.ClassOf(reeve.CodeOf(err)) {
	case reeve.AuthFailure, reeve.PermissionFailure, reeve.NetworkFailure, reeve.InternalFailure:
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.abort(reeve.AsError(err))
	case reeve.LogicFailure, "":
	}
	return err
}

// unanswered tells whether a code says that a model did not answer.
func unanswered(c reeve.Code) bool { return c == reeve.ModelFailed || c == reeve.AssemblyFailed }

// whole reads an output that was too long to be shown.
func (w *work) whole(ctx context.Context, hash string) (content string, err error) {
	err = w.DB.View(ctx, func(s *store.Snap) error {
		p, err := s.Ledger().GetPayload(ctx, w.run.WorkspaceID, store.Output, hash, 0, -1)
		content = string(p.Body)
		return err
	})
	if reeve.CodeOf(err) == reeve.NotFound {
		err = reeve.Errorf(reeve.NotFound, "the whole output of this call is no longer kept").
			Hintf("the server's setting retention says how long outputs are kept")
	}
	return content, err
}

// asJSON gives a tool's output as a value: JSON as what it says, anything else as a string.
func asJSON(content string) json.RawMessage {
	if json.Valid([]byte(content)) {
		return json.RawMessage(content)
	}
	b, err := json.Marshal(content)
	if err != nil {
		return json.RawMessage(`null`)
	}
	return b
}
