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

// call begins a host call.
//
// A call that is given a function, or that the host wants at once, is performed before anything else is heard: what the
// worker says next may follow from it.
func (r *run) call(f wire.Frame) error {
	m, err := wire.DecodeCall(f)
	if err != nil {
		return err
	}
	j, err := r.admit(f, m)
	if err != nil || j == nil {
		return err
	}
	inOrder := slices.ContainsFunc(j.args, func(a Arg) bool { return a.Func != nil })
	if n, ok := r.host.(CallNoter); ok {
		var now bool
		j.ctx, now = n.Note(r.ctx, j.name)
		inOrder = inOrder || now
	}
	done := newSignal()
	r.work.Go(func() {
		defer done.send()
		r.perform(*j)
	})
	if inOrder {
		select {
		case <-done.sent:
		case <-j.calls.sent: // it waits for a function of the script's, whose end is yet to be heard
		}
	}
	return nil
}

// admit checks a host call and counts it as open. It returns nil when the run has been aborted. The worker has checked
// all this too; one that did not is not to be trusted any further.
func (r *run) admit(f wire.Frame, m wire.Call) (*job, error) {
	if m.Function < 0 || m.Function >= int64(len(r.begin.Functions)) {
		return nil, wire.ErrMalformed
	}
	j := &job{ctx: r.ctx, id: f.ID, name: r.begin.Functions[m.Function], args: make([]Arg, len(m.Args)),
		calls: newSignal()}
	r.mu.Lock()
	defer r.mu.Unlock()
	if f.ID != r.lastCall+1 || len(r.open) >= r.limits.Calls {
		return nil, wire.ErrMalformed
	}
	for i, a := range m.Args {
		if a.Function == 0 {
			j.args[i].JSON = a.JSON
			continue
		}
		if r.lastHandle++; a.Function != r.lastHandle {
			return nil, wire.ErrMalformed
		}
		j.args[i].Func = &Func{run: r, call: f.ID, handle: a.Function, calls: j.calls}
	}
	if r.size += len(f.Body); r.size > 2*wire.MaxPending {
		return nil, wire.ErrMalformed
	}
	if r.fatal != nil {
		return nil, nil
	}
	r.lastCall, r.open[f.ID] = f.ID, len(f.Body)
	return j, nil
}

// job is a host call that is to be performed.
type job struct {
	ctx   context.Context
	id    uint32
	name  string
	args  []Arg
	calls *signal // sent when it calls a function of the script's and waits for it
}

// signal is an event that happens once.
type signal struct {
	sent chan struct{}
	once sync.Once
}

func newSignal() *signal { return &signal{sent: make(chan struct{})} }

func (s *signal) send() { s.once.Do(func() { close(s.sent) }) }

// perform has the host perform a call, and answers the script.
func (r *run) perform(j job) {
	id, name := j.id, j.name
	value, err := r.host.Call(j.ctx, name, j.args)
	if err == nil && len(value) > wire.MaxBody {
		err = reeve.Errorf(reeve.TooLarge, "the result of %s has %d bytes", name, len(value)).
			Hintf("ask for less at once; at most %d", wire.MaxBody)
	}
	if err == nil && len(value) > 0 && !json.Valid(value) {
		err = reeve.Errorf(reeve.Internal, "the result of %s is not JSON", name)
	}
	var fatal *abort
	if errors.As(err, &fatal) {
		r.abort(id, fatal.err)
		return
	}
	r.mu.Lock()
	handed := r.handed[id]
	if delete(r.handed, id); handed {
		r.mu.Unlock()
		return // the script's own function answers
	}
	r.size -= r.open[id]
	delete(r.open, id)
	if err != nil {
		r.errors[id] = err
		delete(r.errors, id-keptErrors)
	}
	r.mu.Unlock()
	if err == nil {
		_ = r.send(wire.JSON(wire.KindResolve, id, value)) // the reader finds out if the worker is gone
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

// lastWord is how long a worker whose run is aborted may take to say where the call was made.
const lastWord = 200 * time.Millisecond

// abort ends the run for good: the first reason stands, no further call begins, and those under way are told to stop.
// The worker is asked for the place of the call, and killed if it is busy with something else.
func (r *run) abort(call uint32, err error) {
	r.mu.Lock()
	first := r.fatal == nil
	if first {
		r.fatal = err
	}
	r.mu.Unlock()
	if first {
		time.AfterFunc(lastWord, r.proc.Kill)
		_ = r.send(wire.Abort(call)) // the reader finds out if the worker is gone
	}
	r.cancel(err)
}

// invoke calls a function of the script's and waits for it.
func (r *run) invoke(ctx context.Context, f *Func, args []json.RawMessage) (json.RawMessage, error) {
	m, err := invocation(f, args)
	if err != nil {
		return nil, err
	}
	answer := make(chan outcome, 1)
	id, err := r.number(f, func(id uint32) { r.waiting[id] = answer })
	if err != nil {
		return nil, err
	}
	f.calls.send()
	if err := r.send(m.Encode(id)); err != nil {
		return nil, reeve.Errorf(reeve.Canceled, "the script has ended")
	}
	select {
	case o := <-answer:
		return o.value, o.err
	case <-r.ended:
		return nil, reeve.Errorf(reeve.Canceled, "the script has ended")
	case <-ctx.Done():
		r.mu.Lock()
		if _, ok := r.waiting[id]; ok {
			r.waiting[id] = nil
		}
		r.mu.Unlock()
		return nil, context.Cause(ctx)
	}
}

// invocation is a call of a script's function, as the worker takes it.
func invocation(f *Func, args []json.RawMessage) (wire.Invoke, error) {
	m := wire.Invoke{Function: f.handle, Args: make([]wire.Argument, len(args))}
	size := 0
	for i, a := range args {
		if len(a) > 0 && !json.Valid(a) {
			return m, reeve.Errorf(reeve.Internal, "argument %d of a script's function is not JSON", i+1)
		}
		m.Args[i].JSON = a
		size += len(a)
	}
	if size > wire.MaxBody || len(args) > wire.MaxArgs {
		return m, reeve.Errorf(reeve.TooLarge, "the arguments of a script's function have %d bytes", size).
			Hintf("at most %d", wire.MaxBody)
	}
	return m, nil
}

// number gives an invocation its id, and notes it while nothing else is.
func (r *run) number(f *Func, note func(id uint32)) (uint32, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, open := r.open[f.call]; !open {
		return 0, reeve.Errorf(reeve.Internal,
			"a script's function was called after the host call that it was given to")
	}
	r.lastInvocation++
	note(r.lastInvocation)
	return r.lastInvocation, nil
}

// handOver calls a function of the script's whose outcome becomes that of the host call.
func (r *run) handOver(f *Func, args []json.RawMessage, done func(error)) error {
	m, err := invocation(f, args)
	if err != nil {
		return err
	}
	m.Last = true
	id, err := r.number(f, func(id uint32) { r.become[id], r.handed[f.call] = becoming{f.call, done}, true })
	if err != nil {
		return err
	}
	if r.send(m.Encode(id)) != nil {
		return reeve.Errorf(reeve.Canceled, "the script has ended")
	}
	return nil
}

// settle hands the outcome of a script's function to whoever called it.
func (r *run) settle(f wire.Frame) error {
	r.mu.Lock()
	answer, ok := r.waiting[f.ID]
	delete(r.waiting, f.ID)
	last, became := r.become[f.ID]
	if delete(r.become, f.ID); became {
		r.size -= r.open[last.call]
		delete(r.open, last.call)
	}
	r.mu.Unlock()
	if !ok && !became {
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
		e := r.failure(t)
		e.invocation = f.ID
		o.err = e
	}
	if became {
		last.done(o.err)
	}
	if answer != nil {
		answer <- o
	}
	return nil
}
