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

// Code is what to run.
type Code struct {
	// whose it is: a worker is never shared between owners, and one that served nobody in particular is not used again
	Owner  string
	Source string // UTF-8
}

// Limits is what a run may take.
type Limits struct {
	Time   time.Duration // default 5 s
	Memory int64         // bytes, the interpreter's own included, about 11 MB; default 50 MiB
	Output int64         // bytes kept of each of stdout and stderr; default 256 KiB
}

// The limits of limits, and of code.
const (
	DefaultTime   = 5 * time.Second
	DefaultMemory = 50 << 20
	DefaultOutput = 256 << 10
	MaxTime       = 10 * time.Minute
	MinMemory     = 16 << 20
	MaxMemory     = 1 << 30
	MaxOutput     = 4<<20 + reeve.RedactWindow // what may be shown, and what is looked at beyond
	MaxSource     = 4 << 20
	MostWords     = 2000 // characters of what an exception says; prepare.py cuts it there
)

// Result is what came of a run.
type Result struct {
	Stdout, Stderr         []byte // the beginning of each; any bytes
	StdoutSize, StderrSize int64  // how much there was; of a run that was ended, how much is known
	ExitCode               int    // 0 is success; 137 when it was ended
	Exception              *Exception
	TimedOut               bool // it was not over in time, and was ended
	Duration               time.Duration
}

// Exception is what code failed with and did not catch.
type Exception = report.Exception

// Truncated says whether there was more output than was kept.
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
		return l, reeve.Errorf(reeve.Validation, "a limit of Python is out of range").
			Hintf("at most %s, %d to %d bytes of memory, at most %d bytes of output", MaxTime, MinMemory, MaxMemory,
				MaxOutput)
	}
	return l, nil
}

func (c Code) check() error {
	if len(c.Source) > MaxSource {
		return reeve.Errorf(reeve.TooLarge, "the code has %d bytes", len(c.Source)).Hintf("at most %d", MaxSource)
	}
	if !utf8.ValidString(c.Source) {
		return reeve.Errorf(reeve.Validation, "the code is not UTF-8 text")
	}
	return nil
}

// errLost says that a worker was dead before it saw the code.
var errLost = errors.New("the worker is gone")

// do has a worker run code. The worker is fit for more unless it says otherwise.
func do(ctx context.Context, proc *child.Process, c Code, l Limits) (r Result, fit bool, err error) {
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
		fit, err = r.listen(proc, l)
	} else if !errors.Is(err, wire.ErrMalformed) {
		err = errLost
	}
	if !timer.Stop() {
		<-done
	}
	canceled := !stop()
	r.Duration = reeve.Since(begin)
	switch {
	case err == nil && !late && !canceled:
		return r, fit, nil
	case err == nil: // it was over in the very last moment: the process is being killed, the result holds
		return r, false, nil
	case canceled:
		return r, false, reeve.Errorf(reeve.Canceled, "the caller went away: %w", context.Cause(ctx))
	case late:
		r.TimedOut, r.ExitCode = true, 137
		return r, false, nil
	case errors.Is(err, errLost):
		return r, false, err
	case errors.Is(err, wire.ErrMalformed):
		return r, false, reeve.Errorf(reeve.ToolFailed, "the Python worker did not keep to the protocol")
	}
	return r, false, reeve.Errorf(reeve.ToolFailed, "the Python worker died").
		Hintf("the code may have brought it down; the next run has a fresh one")
}

// listen takes what a worker says until its last word. It is checked like the input of a stranger.
func (r *Result) listen(proc *child.Process, l Limits) (fit bool, err error) {
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
			return r.end(f)
		default:
			return false, wire.ErrMalformed
		}
		if int64(len(r.Stdout)) > l.Output || int64(len(r.Stderr)) > l.Output {
			return false, wire.ErrMalformed
		}
		r.StdoutSize, r.StderrSize = int64(len(r.Stdout)), int64(len(r.Stderr))
	}
}

// longest is how much of an exception's words is taken.
const longest = 8 << 10

// end takes a worker's last word.
func (r *Result) end(f wire.Frame) (fit bool, err error) {
	var e report.Ending
	if json.Unmarshal(f.Body, &e) != nil || e.Exit < 0 || e.Exit > 255 || e.Stdout < int64(len(r.Stdout)) ||
		e.Stderr < int64(len(r.Stderr)) {
		return false, wire.ErrMalformed
	}
	if x := e.Error; x != nil {
		if len(x.Type) > longest || len(x.Message) > longest || x.Line < 0 {
			return false, wire.ErrMalformed
		}
		x.Type, x.Message = reeve.SanitizeText(x.Type), reeve.SanitizeText(x.Message)
	}
	r.ExitCode, r.Exception, r.StdoutSize, r.StderrSize = e.Exit, e.Error, e.Stdout, e.Stderr
	return !e.Broken, nil
}
