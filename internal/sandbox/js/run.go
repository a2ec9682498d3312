package js

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"reeve"
	"reeve/internal/sandbox/child"
	"reeve/internal/sandbox/js/guest"
	"reeve/internal/sandbox/js/wire"
)

// keptErrors is how many errors of host calls a run remembers, to say which of them a script died of.
const keptErrors = 256

// run is one script on its way, as the host sees it. One goroutine reads what the worker says, and each host call has a
// goroutine of its own.
type run struct {
	proc   *child.Process
	begin  wire.Start
	limits Limits
	host   Host

	ctx    context.Context // of host calls
	cancel context.CancelCauseFunc
	ended  chan struct{}  // closed when the worker's last word has been heard
	work   sync.WaitGroup // host calls under way

	write sync.Mutex // one frame at a time

	mu             sync.Mutex
	fatal          error          // a host call aborted the run: nothing that begins after this is performed
	late           bool           // the worker was killed because its time was over
	open           map[uint32]int // host calls under way, and the size of their arguments
	size           int            // of all their arguments
	lastCall       uint32
	lastHandle     uint32
	waiting        map[uint32]chan outcome // functions of the script's that were called; nil if nobody waits any more
	lastInvocation uint32
	become         map[uint32]becoming // invocations whose outcome is that of a call
	handed         map[uint32]bool     // those calls, until whoever performs them has returned
	errors         map[uint32]error    // of the last host calls that failed
	output         int64

	stillborn bool // the worker was dead before it saw the script
}

// outcome is what became of a call of a script's function.
type outcome struct {
	value json.RawMessage
	err   error
}

// becoming is a call whose outcome is that of a function of the script's.
type becoming struct {
	call uint32
	done func(error)
}

// newStart checks a script and its limits, and puts them in the form that the worker takes.
func newStart(s Script, l Limits) (wire.Start, Limits, error) {
	l, err := l.withDefaults()
	if err != nil {
		return wire.Start{}, l, err
	}
	if !guest.Supported {
		return wire.Start{}, l, reeve.Errorf(reeve.Unsupported,
			"there is no JavaScript engine for this kind of machine")
	}
	if s.Language == "" {
		s.Language = JavaScript
	}
	if s.Language != JavaScript && s.Language != TypeScript {
		return wire.Start{}, l, reeve.Errorf(reeve.Validation, "language %q", s.Language).Hintf("js or ts")
	}
	if s.Name == "" {
		s.Name = "script." + string(s.Language)
	}
	if len(s.Source) > wire.MaxBody {
		return wire.Start{}, l, reeve.Errorf(reeve.TooLarge, "the script has %d bytes", len(s.Source)).
			Hintf("at most %d", wire.MaxBody)
	}
	if !utf8.ValidString(s.Source) {
		return wire.Start{}, l, reeve.Errorf(reeve.Validation, "the script is not UTF-8 text")
	}
	if len(s.Input) > wire.MaxBody {
		return wire.Start{}, l, reeve.Errorf(reeve.TooLarge, "the script's input has %d bytes", len(s.Input)).
			Hintf("at most %d", wire.MaxBody)
	}
	if s.Input != nil && !json.Valid(s.Input) {
		return wire.Start{}, l, reeve.Errorf(reeve.Validation, "the script's input is not JSON")
	}
	if err := checkNames(s.Functions); err != nil {
		return wire.Start{}, l, err
	}
	return wire.Start{Name: s.Name, Language: string(s.Language), Source: s.Source, Functions: s.Functions,
		Input: s.Input, Now: reeve.Millis(s.Now), Seed: s.Seed,
		Memory: l.Memory, Stack: int64(l.Stack), Time: l.Time, Output: l.Output, Calls: int64(l.Calls)}, l, nil
}

func newRun(p *child.Process, s wire.Start, l Limits, h Host) *run {
	return &run{proc: p, begin: s, limits: l, host: h, ended: make(chan struct{}),
		open: map[uint32]int{}, waiting: map[uint32]chan outcome{}, become: map[uint32]becoming{},
		handed: map[uint32]bool{}, errors: map[uint32]error{}}
}

// do runs the script to its end.
func (r *run) do(ctx context.Context) (json.RawMessage, error) {
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	defer r.cancel(nil)
	defer context.AfterFunc(ctx, r.proc.Kill)()
	timer := time.AfterFunc(r.limits.Time, func() {
		r.cancel(r.timeout())
		_ = r.send(wire.Stop()) // one that cannot hear it is killed
	})
	killer := time.AfterFunc(r.limits.Time+guest.Grace, func() {
		r.mu.Lock()
		r.late = true
		r.mu.Unlock()
		r.proc.Kill()
	})
	defer timer.Stop()
	defer killer.Stop()
	r.stillborn = r.send(r.begin.Encode()) != nil
	last := r.listen()
	close(r.ended)
	r.proc.End()
	r.work.Wait()
	return last.value, r.verdict(ctx, last.err)
}

// listen takes what the worker says until its last word.
func (r *run) listen() outcome {
	for {
		f, err := wire.ReadFrame(r.proc.Read)
		if err != nil {
			return outcome{err: err}
		}
		if r.over() { // whatever it says now does not count any more, but where it was
			if t, err := wire.DecodeFault(f); f.Kind == wire.KindFailed && err == nil {
				return outcome{err: r.failure(t)}
			}
			continue
		}
		switch f.Kind {
		case wire.KindCall:
			err = r.call(f)
		case wire.KindReturned, wire.KindThrew:
			err = r.settle(f)
		case wire.KindLog:
			err = r.log(f)
		case wire.KindDone:
			value, err := wire.DecodeJSON(f)
			if err == nil {
				err = r.count(len(value))
			}
			return outcome{value, err}
		case wire.KindFailed:
			t, err := wire.DecodeFault(f)
			if err == nil {
				err = r.failure(t)
			}
			return outcome{err: err}
		case wire.KindStart, wire.KindResolve, wire.KindReject, wire.KindInvoke, wire.KindStop, wire.KindAbort,
			wire.KindReady:
			err = wire.ErrMalformed
		}
		if err != nil {
			return outcome{err: err}
		}
	}
}

// verdict says how the run ended. What the host decided outweighs what the worker said.
func (r *run) verdict(ctx context.Context, err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var failed *Error
	switch {
	case r.fatal != nil:
		e := &Error{Kind: Aborted, Script: r.begin.Name, Message: words(r.fatal), Err: r.fatal}
		if errors.As(err, &failed) {
			return failed.at(e)
		}
		return e
	case err == nil:
		return nil
	case ctx.Err() != nil: // and what the script died of may be a host call that was told so first
		return canceled(ctx, r.begin.Name)
	case errors.As(err, &failed):
		// so may this be
		if KindOf(context.Cause(r.ctx)) == Timeout && (failed.Kind == Thrown || failed.Kind == Unhandled) {
			return failed.at(r.timeout())
		}
		return failed
	case r.late:
		return r.timeout()
	case errors.Is(err, wire.ErrMalformed):
		return newError(Crashed, r.begin.Name, "the script's worker did not keep to the protocol")
	case r.proc.PeakMemory() >= r.limits.Memory:
		return newError(Memory, r.begin.Name, "out of memory")
	}
	e := newError(Crashed, r.begin.Name, "the script's worker died")
	e.Err = errors.Join(e.Err, r.proc.ExitError())
	return e
}

func (r *run) timeout() *Error { return newError(Timeout, r.begin.Name, "the time is over") }

// words are an error's message, without its code.
func words(err error) string {
	var e *reeve.Error
	if errors.As(err, &e) {
		return e.Message
	}
	return err.Error()
}

// failure is what a worker reported.
func (r *run) failure(t wire.Fault) *Error {
	e := &Error{Kind: Kind(t.Failure), Name: t.Name, Message: strings.ToValidUTF8(t.Message, "\uFFFD"),
		Script: r.begin.Name, Stack: t.Stack}
	if len(t.Stack) > 0 {
		e.Line, e.Column = t.Stack[0].Line, t.Stack[0].Column
	}
	r.mu.Lock()
	e.Err = r.errors[t.Call]
	r.mu.Unlock()
	if t.Call == wire.Refused {
		e.Err = reeve.Errorf(reeve.TooLarge, "%s", e.Message)
	}
	if e.Err == nil {
		e.Err = e.cause()
	}
	return e
}

// over says whether the run was aborted.
func (r *run) over() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.fatal != nil
}

// send writes a frame. An error means that the worker is gone, which the reader finds too.
func (r *run) send(frame []byte) error {
	r.write.Lock()
	defer r.write.Unlock()
	_, err := r.proc.In.Write(frame)
	return err
}

// count adds to what the script has said.
func (r *run) count(n int) error {
	if r.output += int64(n); r.output > r.limits.Output {
		return newError(Output, r.begin.Name, "more output than allowed")
	}
	return nil
}

func (r *run) log(f wire.Frame) error {
	if int(f.ID) >= len(wire.Levels) {
		return wire.ErrMalformed
	}
	if err := r.count(len(f.Body) + 1); err != nil {
		return err
	}
	r.host.Log(wire.Levels[f.ID], strings.ToValidUTF8(string(f.Body), "\uFFFD"))
	return nil
}
