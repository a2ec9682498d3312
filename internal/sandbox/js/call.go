package js

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"reeve"
	"reeve/internal/sandbox/js/wire"
)

// call notes a host call, which is to be performed. The worker has checked all this too; a worker that did not is not to be trusted any further.
func (r *run) call(f wire.Frame) (*job, error) {
	m, err := wire.DecodeCall(f)
	if err != nil {
		return nil, err
	}
	if m.Function < 0 || m.Function >= int64(len(r.begin.Functions)) {
		return nil, wire.ErrMalformed
	}
	args := make([]Arg, len(m.Args))
	r.mu.Lock()
	defer r.mu.Unlock()
	if f.ID != r.lastCall+1 || f.ID >= begun || len(r.open) >= r.limits.Calls || len(m.Begun) > 0 && m.Function != r.foreseen {
		return nil, wire.ErrMalformed
	}
	for i, a := range m.Args {
		if a.Function == 0 {
			args[i].JSON = a.JSON
			continue
		}
		if r.lastHandle++; a.Function != r.lastHandle {
			return nil, wire.ErrMalformed
		}
		args[i].Func = &Func{run: r, call: f.ID, handle: a.Function, function: m.Function, begun: m.Begun}
	}
	if r.size += len(f.Body); r.size > 2*wire.MaxPending {
		return nil, wire.ErrMalformed
	}
	if r.fatal != nil {
		return nil, nil
	}
	r.lastCall, r.open[f.ID] = f.ID, len(f.Body)
	r.busy++
	r.work.Add(1)
	j := &job{ctx: r.ctx, id: f.ID, name: r.begin.Functions[m.Function], args: args, begun: m.Begun}
	j.inOrder = slices.ContainsFunc(args, func(a Arg) bool { return a.Func != nil })
	return j, nil
}

// alone tells whether nothing can be heard from a worker before its call is answered: it has heard everything that was said to it,
// and nobody is about to say anything else.
func (r *run) alone(heard uint32) bool {
	r.mu.Lock()
	others := r.busy - 1
	r.mu.Unlock()
	r.write.Lock() // after that: those who are not busy any more have said what they had to say
	defer r.write.Unlock()
	return others == 0 && r.sent == heard
}

// share has a call performed beside others.
func (r *run) share(j job) {
	select {
	case r.jobs <- j:
	default:
		r.crew.Go(func() { r.serve(j) })
	}
}

// performHere performs a call in place of reading. False means that the call had something to hear: somebody else reads since then.
func (r *run) performHere(j job) (back bool) {
	r.mu.Lock()
	r.away = true
	reader := r.reader
	r.mu.Unlock()
	if j.alone {
		j.early = &Early{run: r, call: j.id}
		j.ctx = context.WithValue(j.ctx, earlyKey{}, j.early)
	}
	r.perform(j)
	r.mu.Lock()
	defer r.mu.Unlock()
	if back = r.reader == reader; back {
		r.away = false
	}
	return back
}

// listenOn sees to it that somebody reads. The caller holds r.mu.
func (r *run) listenOn() {
	if !r.away {
		return
	}
	r.away = false
	r.reader++
	r.crew.Go(func() {
		if last, told := r.listen(); told {
			r.heard <- last
		}
	})
}

// note tells the host of a call.
func (r *run) note(j *job) {
	if n, ok := r.host.(Noter); ok {
		var now bool
		j.ctx, now = n.Note(r.ctx, j.name)
		j.inOrder = j.inOrder || now
	}
}

// job is a host call that is to be performed.
type job struct {
	ctx  context.Context
	id   uint32
	name string
	args []Arg

	begun   []byte // what its function was called with already
	inOrder bool   // it is given a function: what the worker says next may follow from what it does with that
	alone   bool   // nothing is heard of the worker before it is performed
	early   *Early // what the script was told meanwhile; nil means that it cannot be
}

// serve performs one call after another, until the run has ended: the stack of a new goroutine would have to grow for each.
func (r *run) serve(j job) {
	for {
		r.perform(j)
		select {
		case j = <-r.jobs:
		case <-r.ended:
			return
		}
	}
}

// perform has the host perform a call, and answers the script.
func (r *run) perform(j job) {
	id, name := j.id, j.name
	defer func() { // when the script has been answered; see alone
		r.mu.Lock()
		r.busy--
		r.mu.Unlock()
		r.work.Done()
	}()
	value, err := r.host.Call(j.ctx, name, j.args)
	if err == nil && len(value) > wire.MaxBody {
		err = reeve.Errorf(reeve.TooLarge, "the result of %s has %d bytes", name, len(value)).Hintf("ask for less at once; at most %d", wire.MaxBody)
	}
	if err == nil && len(value) > 0 && !json.Valid(value) {
		err = reeve.Errorf(reeve.Internal, "the result of %s is not JSON", name)
	}
	var fatal *abort
	if errors.As(err, &fatal) {
		r.abort(id, fatal.err)
		return
	}
	if j.early.isTold() && err != nil {
		r.abort(id, err)
		return
	}
	r.mu.Lock()
	handed := r.handed[id]
	if delete(r.handed, id); handed {
		r.mu.Unlock()
		return // the script's own function answers
	}
	if j.begun != nil {
		r.mu.Unlock()
		if err == nil {
			err = errUnforeseen
		}
		r.abort(id, err)
		return
	}
	r.size -= r.open[id]
	delete(r.open, id)
	if err != nil {
		r.errors[id] = err
		delete(r.errors, id-keptErrors)
	}
	r.mu.Unlock()
	if j.early.isTold() {
		return
	}
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

// abort ends the run for good: the first reason stands, no further call begins, and those under way are told to stop. The worker is
// asked for the place of the call, and killed if it is busy with something else.
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
	id, err := r.number(f, func(id uint32) { r.waiting[id] = answer; r.listenOn() })
	if err != nil {
		return nil, err
	}
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
		return m, reeve.Errorf(reeve.TooLarge, "the arguments of a script's function have %d bytes", size).Hintf("at most %d", wire.MaxBody)
	}
	return m, nil
}

// number gives an invocation its id, and notes it while nothing else is.
func (r *run) number(f *Func, note func(id uint32)) (uint32, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, open := r.open[f.call]; !open {
		return 0, reeve.Errorf(reeve.Internal, "a script's function was called after the host call that it was given to")
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
	if f.begun != nil {
		return r.handOn(f, args, done)
	}
	id, err := r.number(f, func(id uint32) { r.become[id], r.handed[f.call] = becoming{f.call, done}, true })
	if err != nil {
		return err
	}
	if r.send(m.Encode(id)) != nil {
		return reeve.Errorf(reeve.Canceled, "the script has ended")
	}
	return nil
}

// begun marks invocations that the worker made ahead of the host, of functions that were given to the call whose id it is otherwise.
const begun = 1 << 31

// errUnforeseen is why a run ends whose script began what turned out to be otherwise.
var errUnforeseen = reeve.Errorf(reeve.Conflict, "what the script was about to work on has changed meanwhile").Hintf("run it again")

// handOn hands a host call over to a function that the worker has called already, provided that it was with the same arguments.
func (r *run) handOn(f *Func, args []json.RawMessage, done func(error)) error {
	if len(args) != 1 || !bytes.Equal(args[0], f.begun) {
		return Abort(errUnforeseen)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.become[f.call|begun], r.handed[f.call] = becoming{f.call, done}, true
	return nil
}

// foresee tells the worker what calls will be answered with.
func (r *run) foresee(f *Func, s Foresight) error {
	m := wire.Foresee{Function: f.function, From: s.From, To: s.To, Open: s.Open, Others: s.Others}
	for key, given := range s.Known {
		if given == nil {
			m.Asked = append(m.Asked, key)
			continue
		}
		m.Known, m.Given = append(m.Known, key), append(m.Given, given)
	}
	frame := m.Encode()
	if len(frame) > wire.MaxBody {
		return nil // it is only ever a help
	}
	r.mu.Lock()
	r.foreseen = f.function
	r.mu.Unlock()
	if r.send(frame) != nil {
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
