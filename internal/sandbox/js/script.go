package js

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"reeve"
	"reeve/internal/sandbox/js/wire"
)

// Language is the language of a script's source.
type Language string

// The languages.
const (
	JavaScript Language = "js" // the default
	TypeScript Language = "ts" // types are removed without checking
)

// Script is a script to run.
type Script struct {
	Source    string
	Name      string          // name in errors; default "script.js" or "script.ts"
	Language  Language        // default JavaScript
	Functions []string        // host functions, each unique: "name" or "Namespace.name"
	Sync      []string        // those of Functions that return their result; the others return a promise
	Methods   []string        // host functions that are methods of the first argument of the script's functions
	Input     json.RawMessage // value of the global variable input; nil leaves it undefined
	Now       time.Time       // current time that the script sees, constant during the run; the zero time is 1970
	Seed      int64           // seed of Math.random; the same seed gives the same numbers
}

// Limits are the resource limits of one run. Zero means the default.
type Limits struct {
	Memory int64         // bytes of the script's values; default 64 MiB, at most 2 GiB
	Stack  int           // approximate call depth; default 4000, at most 20000
	Time   time.Duration // total time, including host calls; default 30 s
	Output int64         // bytes of console output and result together; default 1 MiB, at most 8 MiB
	Calls  int           // host calls in progress at once; default 1000
	// computing between two host calls, without the time that the script waits; default 30 s
	Compute time.Duration
}

const (
	minMemory = 1 << 20
	maxMemory = 2 << 30
	maxStack  = 20000
)

// withDefaults fills unset limits and checks that all are in range.
func (l Limits) withDefaults() (Limits, error) {
	set := func(v *int64, def, least, most int64, name string) error {
		if *v == 0 {
			*v = def
		}
		if *v < least || *v > most {
			return reeve.Errorf(reeve.Validation, "limit %s is out of range: %d", name, *v).
				Hintf("use a value between %d and %d", least, most)
		}
		return nil
	}
	stack, calls, wall, compute := int64(l.Stack), int64(l.Calls), int64(l.Time), int64(l.Compute)
	for _, err := range []error{
		set(&l.Memory, 64<<20, minMemory, maxMemory, "memory"),
		set(&stack, 4000, 64, maxStack, "stack"),
		set(&wall, int64(30*time.Second), int64(time.Millisecond), 1<<62, "time"),
		set(&l.Output, 1<<20, 1, wire.MaxBody, "output"),
		set(&calls, 1000, 1, 1<<20, "calls"),
		set(&compute, int64(30*time.Second), int64(time.Millisecond), int64(1000*time.Hour), "compute"),
	} {
		if err != nil {
			return l, err
		}
	}
	l.Stack, l.Calls, l.Time, l.Compute = int(stack), int(calls), time.Duration(wall), time.Duration(compute)
	return l, nil
}

// Host performs the host calls of a script. [Pool.Run] does not use it after it has returned.
type Host interface {
	// Call performs one host call and returns its result as JSON, or nil for undefined. Calls that the script does not
	// await one by one run concurrently.
	//
	// The context ends when the run is aborted, cancelled or out of time. Call must then return, because Run waits for
	// every Call. An error rejects the script's promise. The script sees the message, code and hint of a [reeve.Error],
	// and only a general message for any other error. An error made with [Abort] ends the run instead. A [NotRun] is no
	// error for the script: it gets a placeholder.
	Call(ctx context.Context, name string, args []Arg) (json.RawMessage, error)
	// Log receives one line of console output. The run waits until Log returns. Level is debug, log, info, warn or
	// error.
	Log(level, text string)
}

// CallNoter is implemented by a [Host] that must see calls in the order in which the script makes them.
type CallNoter interface {
	// Note prepares a host call. The run calls it before Call, in the order of the host calls, and before it reads the
	// worker's next frame. Note returns the context for Call. If now is true, the run waits for Call to return before
	// it reads the next frame, so such a call must be short.
	Note(ctx context.Context, name string) (_ context.Context, now bool)
}

// Arg is one argument of a host call: a JSON value, a function or an error. If all fields are nil, the argument is
// undefined.
type Arg struct {
	JSON json.RawMessage
	Func *Func
	Err  error // in calls of methods: the error of an earlier host call, as Host.Call returned it
}

// Func is a function that the script passed to a host call. It can be called until that host call returns.
type Func struct {
	run            *run
	call           uint32
	handle         uint32
	waitsForScript *signal // signal of the host call
}

// Call calls the function with JSON arguments and returns its awaited result, or nil for undefined. A nil argument is
// undefined. If the function throws, Call returns an [*Error] of kind [Thrown]. A host call that returns this error
// throws the original value back to the script.
func (f *Func) Call(ctx context.Context, args ...json.RawMessage) (json.RawMessage, error) {
	return f.run.invoke(ctx, f, args)
}

// CallAndReturn calls the function and makes its result, or the value it throws, the result of the host call. The
// result stays in the worker, which saves a round trip, and the run ignores what the host call itself returns.
//
// When the function has ended, the run calls done with nil or an [*Error] of kind [Thrown], before it reads the
// worker's next frame. Done must not block. It is not called if the run ends before the function does.
func (f *Func) CallAndReturn(done func(error), args ...json.RawMessage) error {
	return f.run.delegate(f, args, done)
}

// checkName returns an error if name is not a dotted list of identifiers, or contains a name that JavaScript treats
// specially.
func checkName(name string) error {
	for part := range strings.SplitSeq(name, ".") {
		for i, c := range part {
			letter := c == '_' || c == '$' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
			if !letter && (i == 0 || c < '0' || c > '9') {
				return reeve.Errorf(reeve.Validation, "invalid function name %q", name).
					Hintf("use identifiers of ASCII letters, digits, _ and $, separated by dots")
			}
		}
		if part == "" || part == "__proto__" || part == "prototype" || part == "constructor" {
			return reeve.Errorf(reeve.Validation, "invalid function name %q", name).
				Hintf("use identifiers of ASCII letters, digits, _ and $, separated by dots")
		}
	}
	return nil
}

// checkNames returns an error if a name is invalid, occurs twice, or is both a function and a namespace.
func checkNames(names []string) error {
	whole, inner := map[string]bool{}, map[string]bool{}
	for _, name := range names {
		if err := checkName(name); err != nil {
			return err
		}
		if whole[name] {
			return reeve.Errorf(reeve.Validation, "function %q is listed twice", name)
		}
		whole[name] = true
		for i, c := range name {
			if c == '.' {
				inner[name[:i]] = true
			}
		}
	}
	for name := range whole {
		if inner[name] {
			return reeve.Errorf(reeve.Validation, "%q is both a function and a namespace", name)
		}
	}
	return nil
}
