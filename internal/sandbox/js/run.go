package js

import (
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"reeve"
	"reeve/internal/sandbox/child"
	"reeve/internal/sandbox/js/guest"
	"reeve/internal/sandbox/js/wire"
)

// maxCallErrors is the number of recent host call errors that a run keeps, to find the one that made a script fail.
const maxCallErrors = 256

// run is the host's side of one running script. One goroutine reads the worker's frames, and each host call has a
// goroutine of its own.
type run struct {
	proc   *child.Process
	start  wire.Start
	limits Limits
	host   Host

	ctx       context.Context // context of host calls
	cancel    context.CancelCauseFunc
	ended     chan struct{}  // closed when the worker's last frame has been read
	hostCalls sync.WaitGroup // host calls in progress

	writeMu sync.Mutex // held while a frame is written

	mu             sync.Mutex
	abortErr       error          // error that aborted the run; no call starts after it is set
	killedLate     bool           // the worker was killed because its time limit had passed
	openCalls      map[uint32]int // size of the arguments of each host call in progress, by id
	openSize       int            // sum of openCalls
	lastCall       uint32
	lastHandle     uint32
	waiters        map[uint32]chan outcome // receivers of invocation results, by id; nil if the receiver gave up
	lastInvocation uint32
	delegations    map[uint32]delegation // invocations whose result becomes that of a host call, by id
	delegatedCalls map[uint32]bool       // host calls of the delegations, until Host.Call has returned
	callErrors     map[uint32]error      // the last maxCallErrors errors of host calls, by call id
	outputSize     int64                 // bytes of console output and result

	diedBeforeStart bool // the worker was dead before it received the script
}

// outcome is the result of a function of the script, or of the script itself.
type outcome struct {
	value json.RawMessage
	err   error
}

// delegation is a host call whose result is provided by a function of the script.
type delegation struct {
	call uint32
	done func(error)
}

// newStart checks a script and its limits, and returns them as a message for the worker.
func newStart(s Script, l Limits) (wire.Start, Limits, error) {
	l, err := l.withDefaults()
	if err != nil {
		return wire.Start{}, l, err
	}
	if !guest.Supported {
		return wire.Start{}, l, reeve.Errorf(reeve.Unsupported,
			"scripts cannot run here: the JavaScript engine does not support this platform")
	}
	if s.Language == "" {
		s.Language = JavaScript
	}
	if s.Language != JavaScript && s.Language != TypeScript {
		return wire.Start{}, l, reeve.Errorf(reeve.Validation, "unknown script language %q", s.Language).
			Hintf("use js or ts")
	}
	if s.Name == "" {
		s.Name = "script." + string(s.Language)
	}
	if len(s.Source) > wire.MaxBody {
		return wire.Start{}, l, reeve.Errorf(reeve.TooLarge, "the script is too large: %d bytes", len(s.Source)).
			Hintf("use at most %d bytes", wire.MaxBody)
	}
	if !utf8.ValidString(s.Source) {
		return wire.Start{}, l, reeve.Errorf(reeve.Validation, "the script is not UTF-8 text")
	}
	if len(s.Input) > wire.MaxBody {
		return wire.Start{}, l, reeve.Errorf(reeve.TooLarge, "the script's input is too large: %d bytes", len(s.Input)).
			Hintf("use at most %d bytes", wire.MaxBody)
	}
	if s.Input != nil && !json.Valid(s.Input) {
		return wire.Start{}, l, reeve.Errorf(reeve.Validation, "the script's input is not JSON")
	}
	if err := checkNames(s.Functions); err != nil {
		return wire.Start{}, l, err
	}
	if err := checkNames(s.Methods); err != nil {
		return wire.Start{}, l, err
	}
	return wire.Start{Name: s.Name, Language: string(s.Language), Source: s.Source, Functions: s.Functions,
		Methods: s.Methods, Sync: s.Sync, Compute: l.Compute, Input: s.Input, Now: reeve.Millis(s.Now), Seed: s.Seed,
		Memory: l.Memory, Stack: int64(l.Stack), Time: l.Time, Output: l.Output, Calls: int64(l.Calls)}, l, nil
}

func newRun(p *child.Process, s wire.Start, l Limits, h Host) *run {
	return &run{proc: p, start: s, limits: l, host: h, ended: make(chan struct{}),
		openCalls: map[uint32]int{}, waiters: map[uint32]chan outcome{}, delegations: map[uint32]delegation{},
		delegatedCalls: map[uint32]bool{}, callErrors: map[uint32]error{}}
}

// execute runs the script in the worker and returns its value. When it returns, the worker and all host calls have
// ended.
func (r *run) execute(ctx context.Context) (json.RawMessage, error) {
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	defer r.cancel(nil)
	defer context.AfterFunc(ctx, r.proc.Kill)()
	timer := time.AfterFunc(r.limits.Time, func() {
		r.cancel(r.timeoutError())
		_ = r.send(wire.Stop()) // a worker that does not react is killed below
	})
	killer := time.AfterFunc(r.limits.Time+guest.Grace, func() {
		r.mu.Lock()
		r.killedLate = true
		r.mu.Unlock()
		r.proc.Kill()
	})
	defer timer.Stop()
	defer killer.Stop()
	r.diedBeforeStart = r.send(r.start.Encode()) != nil
	result := r.readFrames()
	close(r.ended)
	r.proc.End()
	r.hostCalls.Wait()
	return result.value, r.finalError(ctx, result.err)
}

// readFrames handles the worker's frames until the last one, and returns the result of the script.
func (r *run) readFrames() outcome {
	for {
		f, err := wire.ReadFrame(r.proc.Read)
		if err != nil {
			return outcome{err: err}
		}
		if r.isAborted() { // ignore every frame except the one that reports the position of the call
			if t, err := wire.DecodeFault(f); f.Kind == wire.KindFailed && err == nil {
				return outcome{err: r.newScriptError(t)}
			}
			continue
		}
		switch f.Kind {
		case wire.KindCall:
			err = r.handleCall(f)
		case wire.KindReturned, wire.KindThrew:
			err = r.handleInvocationResult(f)
		case wire.KindLog:
			err = r.handleLog(f)
		case wire.KindDone:
			value, err := wire.DecodeJSON(f)
			if err == nil {
				err = r.addOutput(len(value))
			}
			return outcome{value, err}
		case wire.KindFailed:
			t, err := wire.DecodeFault(f)
			if err == nil {
				err = r.newScriptError(t)
			}
			return outcome{err: err}
		case wire.KindStart, wire.KindResolve, wire.KindReject, wire.KindInvoke, wire.KindStop, wire.KindAbort,
			wire.KindPlaceholder, wire.KindReady:
			err = wire.ErrMalformed
		}
		if err != nil {
			return outcome{err: err}
		}
	}
}

// finalError returns the error of the run, given the error that readFrames returned. A decision of the host, such as
// an abort, takes precedence over what the worker reported.
func (r *run) finalError(ctx context.Context, err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var failed *Error
	switch {
	case r.abortErr != nil:
		e := &Error{Kind: Aborted, Script: r.start.Name, Message: errorMessage(r.abortErr), Err: r.abortErr}
		if errors.As(err, &failed) {
			return failed.copyPlaceTo(e)
		}
		return e
	case err == nil:
		return nil
	case ctx.Err() != nil: // the script may have failed because a host call saw the cancellation first
		return canceledError(ctx, r.start.Name)
	case errors.As(err, &failed):
		// The script may have failed because a host call saw the timeout first.
		if KindOf(context.Cause(r.ctx)) == Timeout && (failed.Kind == Thrown || failed.Kind == Unhandled) {
			return failed.copyPlaceTo(r.timeoutError())
		}
		return failed
	case r.killedLate:
		return r.timeoutError()
	case r.exitCode() == guest.ExitComputing:
		return newError(Compute, r.start.Name, "%s", wire.ComputeMessage(r.limits.Compute))
	case errors.Is(err, wire.ErrMalformed):
		return newError(Crashed, r.start.Name, "the script worker sent an invalid message")
	case r.proc.PeakMemory() >= r.limits.Memory:
		return newError(Memory, r.start.Name, "out of memory")
	}
	e := newError(Crashed, r.start.Name, "the script worker died")
	e.Err = errors.Join(e.Err, r.proc.ExitError())
	return e
}

// exitCode returns the exit code of the worker, or 0 if it was killed.
func (r *run) exitCode() int {
	var e *exec.ExitError
	if errors.As(r.proc.ExitError(), &e) {
		return max(e.ExitCode(), 0)
	}
	return 0
}

func (r *run) timeoutError() *Error { return newError(Timeout, r.start.Name, wire.TimeoutMessage) }

// errorMessage returns the message of an error without its code.
func errorMessage(err error) string {
	var e *reeve.Error
	if errors.As(err, &e) {
		return e.Message
	}
	return err.Error()
}

// newScriptError converts a fault that the worker reported to an Error.
func (r *run) newScriptError(t wire.Fault) *Error {
	e := &Error{Kind: Kind(t.Failure), Name: t.Name, Message: strings.ToValidUTF8(t.Message, "\uFFFD"),
		Script: r.start.Name, Stack: t.Stack}
	if len(t.Stack) > 0 {
		e.Line, e.Column = t.Stack[0].Line, t.Stack[0].Column
	}
	r.mu.Lock()
	e.Err = r.callErrors[t.Call]
	r.mu.Unlock()
	if t.Call == wire.Refused {
		e.Err = reeve.Errorf(reeve.TooLarge, "%s", e.Message)
	}
	if e.Err == nil {
		e.Err = e.reeveError()
	}
	return e
}

// isAborted reports whether a host call aborted the run.
func (r *run) isAborted() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.abortErr != nil
}

// send writes a frame to the worker. An error means that the worker is gone, which readFrames detects too.
func (r *run) send(frame []byte) error {
	r.writeMu.Lock()
	defer r.writeMu.Unlock()
	_, err := r.proc.In.Write(frame)
	return err
}

// addOutput adds n to the script's output and returns an error if that exceeds the limit.
func (r *run) addOutput(n int) error {
	if r.outputSize += int64(n); r.outputSize > r.limits.Output {
		return newError(Output, r.start.Name, wire.OutputMessage)
	}
	return nil
}

func (r *run) handleLog(f wire.Frame) error {
	if int(f.ID) >= len(wire.Levels) {
		return wire.ErrMalformed
	}
	if err := r.addOutput(len(f.Body) + 1); err != nil {
		return err
	}
	r.host.Log(wire.Levels[f.ID], strings.ToValidUTF8(string(f.Body), "\uFFFD"))
	return nil
}
