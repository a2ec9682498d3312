package js

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"reeve"
	"reeve/internal/sandbox/js/wire"
)

// handleCall starts a host call in a goroutine.
//
// If the call has a function argument, or the host's Note returns now, handleCall waits until the call has returned or
// waits for the script. Otherwise the run could read frames that depend on the call before it was performed.
func (r *run) handleCall(f wire.Frame) error {
	m, err := wire.DecodeCall(f)
	if err != nil {
		return err
	}
	c, err := r.admitCall(f, m)
	if err != nil || c == nil {
		return err
	}
	waits := slices.ContainsFunc(c.args, func(a Arg) bool { return a.Func != nil })
	if n, ok := r.host.(CallNoter); ok {
		var now bool
		c.ctx, now = n.Note(r.ctx, c.name)
		waits = waits || now
	}
	done := newSignal()
	r.hostCalls.Go(func() {
		defer done.send()
		r.performCall(*c)
	})
	if waits {
		select {
		case <-done.sent:
		case <-c.waitsForScript.sent: // the result of the script's function is in a later frame
		}
	}
	return nil
}

// admitCall checks a host call and adds it to openCalls. It returns nil if the run is aborted. A correct worker makes
// the same checks, so a violation is a protocol error.
func (r *run) admitCall(f wire.Frame, m wire.Call) (*hostCall, error) {
	names := len(r.start.Functions) + len(r.start.Methods)
	if m.Function < 0 || m.Function >= int64(names) {
		return nil, wire.ErrMalformed
	}
	c := &hostCall{ctx: r.ctx, id: f.ID, args: make([]Arg, len(m.Args)), waitsForScript: newSignal()}
	if i := int(m.Function) - len(r.start.Functions); i >= 0 {
		c.name = r.start.Methods[i]
	} else {
		c.name = r.start.Functions[m.Function]
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if f.ID != r.lastCall+1 || len(r.openCalls) >= r.limits.Calls {
		return nil, wire.ErrMalformed
	}
	for i, a := range m.Args {
		if a.Function == 0 {
			c.args[i].JSON, c.args[i].Err = a.JSON, r.callErrors[a.Failed]
			continue
		}
		if r.lastHandle++; a.Function != r.lastHandle {
			return nil, wire.ErrMalformed
		}
		c.args[i].Func = &Func{run: r, call: f.ID, handle: a.Function, waitsForScript: c.waitsForScript}
	}
	if r.openSize += len(f.Body); r.openSize > 2*wire.MaxPending {
		return nil, wire.ErrMalformed
	}
	if r.abortErr != nil {
		return nil, nil
	}
	r.lastCall, r.openCalls[f.ID] = f.ID, len(f.Body)
	return c, nil
}

// hostCall is an admitted host call.
type hostCall struct {
	ctx            context.Context
	id             uint32
	name           string
	args           []Arg
	waitsForScript *signal // sent when the call invokes a function of the script and waits for it
}

// signal is an event that happens once.
type signal struct {
	sent chan struct{}
	once sync.Once
}

func newSignal() *signal { return &signal{sent: make(chan struct{})} }

func (s *signal) send() { s.once.Do(func() { close(s.sent) }) }

// performCall performs a host call and sends the result or the error to the worker.
func (r *run) performCall(c hostCall) {
	id, name := c.id, c.name
	value, err := r.host.Call(c.ctx, name, c.args)
	if err == nil && len(value) > wire.MaxBody {
		err = reeve.Errorf(reeve.TooLarge, "the result of %s is too large: %d bytes, at most %d are allowed", name,
			len(value), wire.MaxBody).Hintf("request less data at once")
	}
	if err == nil && len(value) > 0 && !json.Valid(value) {
		err = reeve.Errorf(reeve.Internal, "the result of %s is not JSON", name)
	}
	var notRun *NotRun
	if errors.As(err, &notRun) {
		r.endCall(id, nil)
		_ = r.send(wire.Placeholder(id, notRun.Text)) // readFrames detects that the worker is gone
		return
	}
	var fatal *abortError
	if errors.As(err, &fatal) {
		r.abort(id, fatal.err)
		return
	}
	r.mu.Lock()
	isDelegated := r.delegatedCalls[id]
	if delete(r.delegatedCalls, id); isDelegated {
		r.mu.Unlock()
		return // the script's function provides the result
	}
	r.mu.Unlock()
	r.endCall(id, err)
	if err == nil {
		_ = r.send(wire.JSON(wire.KindResolve, id, value)) // readFrames detects that the worker is gone
		return
	}
	e := reeve.AsError(err)
	m := wire.Reject{Message: e.Message, Code: string(e.Code), Hint: e.Hint}
	var thrown *Error
	if errors.As(err, &thrown) {
		m.Invocation, m.Message = thrown.invocation, thrown.Message
	}
	_ = r.send(m.Encode(id))
}

// endCall removes a call that is answered and keeps its error.
func (r *run) endCall(id uint32, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.openSize -= r.openCalls[id]
	delete(r.openCalls, id)
	if err != nil {
		r.callErrors[id] = err
		delete(r.callErrors, id-maxCallErrors)
	}
}

// abortGrace is how long the worker of an aborted run may take to report the position of the call.
const abortGrace = 200 * time.Millisecond

// abort ends the run because of an error of a host call. The first error is kept. No further call starts, and the
// context of calls in progress ends. The worker is asked for the position of the call, and killed after abortGrace.
func (r *run) abort(call uint32, err error) {
	r.mu.Lock()
	first := r.abortErr == nil
	if first {
		r.abortErr = err
	}
	r.mu.Unlock()
	if first {
		time.AfterFunc(abortGrace, r.proc.Kill)
		_ = r.send(wire.Abort(call)) // readFrames detects that the worker is gone
	}
	r.cancel(err)
}

// invoke calls a function of the script and waits for its result.
func (r *run) invoke(ctx context.Context, f *Func, args []json.RawMessage) (json.RawMessage, error) {
	m, err := newInvoke(f, args)
	if err != nil {
		return nil, err
	}
	result := make(chan outcome, 1)
	id, err := r.registerInvocation(f, func(id uint32) { r.waiters[id] = result })
	if err != nil {
		return nil, err
	}
	f.waitsForScript.send()
	if err := r.send(m.Encode(id)); err != nil {
		return nil, reeve.Errorf(reeve.Canceled, "the script has ended")
	}
	select {
	case o := <-result:
		return o.value, o.err
	case <-r.ended:
		return nil, reeve.Errorf(reeve.Canceled, "the script has ended")
	case <-ctx.Done():
		r.mu.Lock()
		if _, ok := r.waiters[id]; ok {
			r.waiters[id] = nil
		}
		r.mu.Unlock()
		return nil, context.Cause(ctx)
	}
}

// newInvoke returns the message that calls a function of the script. It fails if an argument is not JSON or the
// arguments are too large.
func newInvoke(f *Func, args []json.RawMessage) (wire.Invoke, error) {
	m := wire.Invoke{Function: f.handle, Args: make([]wire.Argument, len(args))}
	size := 0
	for i, a := range args {
		if len(a) > 0 && !json.Valid(a) {
			return m, reeve.Errorf(reeve.Internal, "argument %d for a function of the script is not JSON", i+1)
		}
		m.Args[i].JSON = a
		size += len(a)
	}
	if size > wire.MaxBody || len(args) > wire.MaxArgs {
		return m, reeve.Errorf(reeve.TooLarge, "arguments for a function of the script are too large: "+
			"%d arguments, %d bytes", len(args), size).
			Hintf("pass at most %d arguments and %d bytes", wire.MaxArgs, wire.MaxBody)
	}
	return m, nil
}

// registerInvocation assigns the next invocation id and calls record with it while r.mu is held. It fails if the host
// call that received f has ended.
func (r *run) registerInvocation(f *Func, record func(id uint32)) (uint32, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, open := r.openCalls[f.call]; !open {
		return 0, reeve.Errorf(reeve.Internal,
			"a function of the script was called after the host call that received it had ended")
	}
	r.lastInvocation++
	record(r.lastInvocation)
	return r.lastInvocation, nil
}

// delegate calls a function of the script and makes its result the result of the host call.
func (r *run) delegate(f *Func, args []json.RawMessage, done func(error)) error {
	m, err := newInvoke(f, args)
	if err != nil {
		return err
	}
	m.Last = true
	id, err := r.registerInvocation(f, func(id uint32) {
		r.delegations[id] = delegation{f.call, done}
		r.delegatedCalls[f.call] = true
	})
	if err != nil {
		return err
	}
	if r.send(m.Encode(id)) != nil {
		return reeve.Errorf(reeve.Canceled, "the script has ended")
	}
	return nil
}

// handleInvocationResult passes the result of a function of the script to the host call that invokes it.
func (r *run) handleInvocationResult(f wire.Frame) error {
	r.mu.Lock()
	waiter, ok := r.waiters[f.ID]
	delete(r.waiters, f.ID)
	delegated, isDelegated := r.delegations[f.ID]
	if delete(r.delegations, f.ID); isDelegated {
		r.openSize -= r.openCalls[delegated.call]
		delete(r.openCalls, delegated.call)
	}
	r.mu.Unlock()
	if !ok && !isDelegated {
		return wire.ErrMalformed
	}
	var o outcome
	if f.Kind == wire.KindReturned {
		value, err := wire.DecodeJSON(f)
		if err != nil {
			return err
		}
		o.value = value
	} else {
		t, err := wire.DecodeFault(f)
		if err != nil {
			return err
		}
		e := r.newScriptError(t)
		e.invocation = f.ID
		o.err = e
	}
	if isDelegated {
		delegated.done(o.err)
	}
	if waiter != nil {
		waiter <- o
	}
	return nil
}
