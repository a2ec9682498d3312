package py

import (
	"context"
	"encoding/json"
	"errors"
	"time"
	"unicode/utf8"

	"reeve"
	"reeve/internal/sandbox/child"
	"reeve/internal/sandbox/js/wire"
	"reeve/internal/sandbox/py/report"
)

// Code is Python code to run.
type Code struct {
	// owner of the code; a worker serves only one owner, and only one run if this is empty
	Owner  string
	Source string // UTF-8
}

// Limits are the resource limits of a run. Zero means the default.
type Limits struct {
	Time   time.Duration // default 5 s
	Memory int64         // bytes, including about 11 MB for the interpreter itself; default 50 MiB
	Output int64         // bytes kept of each of stdout and stderr; default 256 KiB
}

// Defaults and ranges of the limits, and the maximum size of the source.
const (
	DefaultTime         = 5 * time.Second
	DefaultMemory       = 50 << 20
	DefaultOutput       = 256 << 10
	MaxTime             = 10 * time.Minute
	MinMemory           = 16 << 20
	MaxMemory           = 1 << 30
	MaxOutput           = 4<<20 + reeve.RedactWindow // what may be shown, and what redaction reads beyond it
	MaxSource           = 4 << 20
	MaxExceptionMessage = 2000 // characters of an exception's message; prepare.py cuts it there
)

// Result is the result of a run.
type Result struct {
	Stdout, Stderr         []byte     // the first bytes of each, not necessarily text
	StdoutSize, StderrSize int64      // bytes written; if the run was killed, bytes received
	ExitCode               int        // 0 means success; 137 means killed at the time limit
	Exception              *Exception // exception that the code did not catch; nil if none
	TimedOut               bool       // killed at the time limit
	Duration               time.Duration
}

// Exception is an exception that the code did not catch.
type Exception = report.Exception

// Truncated reports whether some output was not kept.
func (r *Result) Truncated() bool {
	return r.StdoutSize > int64(len(r.Stdout)) || r.StderrSize > int64(len(r.Stderr))
}

func (l Limits) withDefaults() (Limits, error) {
	if l.Time == 0 {
		l.Time = DefaultTime
	}
	if l.Memory == 0 {
		l.Memory = DefaultMemory
	}
	if l.Output == 0 {
		l.Output = DefaultOutput
	}
	if l.Time < 0 || l.Time > MaxTime || l.Memory < MinMemory || l.Memory > MaxMemory || l.Output < 0 ||
		l.Output > MaxOutput {
		return l, reeve.Errorf(reeve.Validation, "a Python limit is out of range").
			Hintf("use at most %s, %d to %d bytes of memory, and at most %d bytes of output", MaxTime, MinMemory,
				MaxMemory, MaxOutput)
	}
	return l, nil
}

func (c Code) check() error {
	if len(c.Source) > MaxSource {
		return reeve.Errorf(reeve.TooLarge, "the code is too large: %d bytes", len(c.Source)).
			Hintf("use at most %d bytes", MaxSource)
	}
	if !utf8.ValidString(c.Source) {
		return reeve.Errorf(reeve.Validation, "the code is not UTF-8 text")
	}
	return nil
}

// errWorkerGone means that a worker was dead before it received the code.
var errWorkerGone = errors.New("the worker is gone")

// runCode runs code in a worker. Reusable reports whether the worker can run more code.
func runCode(ctx context.Context, proc *child.Process, c Code, l Limits) (r Result, reusable bool, err error) {
	begin := reeve.Monotonic()
	var late bool
	done := make(chan struct{})
	timer := time.AfterFunc(l.Time, func() {
		defer close(done)
		late = true
		proc.Kill()
	})
	stop := context.AfterFunc(ctx, proc.Kill)
	start := wire.Start{Source: c.Source, Memory: l.Memory, Time: l.Time, Output: l.Output}
	if _, err = proc.In.Write(start.Encode()); err == nil {
		var f wire.Frame
		if f, err = wire.ReadFrame(proc.Read); err == nil && f.Kind != wire.KindReady {
			err = wire.ErrMalformed
		}
	}
	if err == nil {
		reusable, err = r.readOutput(proc, l)
	} else if !errors.Is(err, wire.ErrMalformed) {
		err = errWorkerGone
	}
	if !timer.Stop() {
		<-done
	}
	canceled := !stop()
	r.Duration = reeve.Since(begin)
	switch {
	case err == nil && !late && !canceled:
		return r, reusable, nil
	case err == nil: // the run ended just before its worker was killed, so the result is valid
		return r, false, nil
	case canceled:
		return r, false, reeve.Errorf(reeve.Canceled, "the run was cancelled: %w", context.Cause(ctx))
	case late:
		r.TimedOut, r.ExitCode = true, 137
		return r, false, nil
	case errors.Is(err, errWorkerGone):
		return r, false, err
	case errors.Is(err, wire.ErrMalformed):
		return r, false, reeve.Errorf(reeve.ToolFailed, "the Python worker sent an invalid message")
	}
	return r, false, reeve.Errorf(reeve.ToolFailed, "the Python worker died").
		Hintf("the code may have crashed it; the next run uses a new worker")
}

// readOutput reads the worker's frames until the last one into r. The frames are validated as untrusted input. Reusable
// reports whether the worker can run more code.
func (r *Result) readOutput(proc *child.Process, l Limits) (reusable bool, err error) {
	for {
		f, err := wire.ReadFrame(proc.Read)
		if err != nil {
			return false, err
		}
		switch {
		case f.Kind == wire.KindLog && f.ID == 1:
			r.Stdout = append(r.Stdout, f.Body...)
		case f.Kind == wire.KindLog && f.ID == 2:
			r.Stderr = append(r.Stderr, f.Body...)
		case f.Kind == wire.KindDone:
			return r.readEnding(f)
		default:
			return false, wire.ErrMalformed
		}
		if int64(len(r.Stdout)) > l.Output || int64(len(r.Stderr)) > l.Output {
			return false, wire.ErrMalformed
		}
		r.StdoutSize, r.StderrSize = int64(len(r.Stdout)), int64(len(r.Stderr))
	}
}

// maxExceptionText is the maximum size of an exception's type and of its message, in bytes.
const maxExceptionText = 8 << 10

// readEnding decodes the worker's last frame into r.
func (r *Result) readEnding(f wire.Frame) (reusable bool, err error) {
	var e report.Ending
	if json.Unmarshal(f.Body, &e) != nil || e.Exit < 0 || e.Exit > 255 || e.Stdout < int64(len(r.Stdout)) ||
		e.Stderr < int64(len(r.Stderr)) {
		return false, wire.ErrMalformed
	}
	if x := e.Error; x != nil {
		if len(x.Type) > maxExceptionText || len(x.Message) > maxExceptionText || x.Line < 0 {
			return false, wire.ErrMalformed
		}
		x.Type, x.Message = reeve.SanitizeText(x.Type), reeve.SanitizeText(x.Message)
	}
	r.ExitCode, r.Exception, r.StdoutSize, r.StderrSize = e.Exit, e.Error, e.Stdout, e.Stderr
	return !e.Broken, nil
}
