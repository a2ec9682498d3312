package js

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"reeve"
	"reeve/internal/sandbox/js/wire"
)

// Language of a script's source.
type Language string

// The languages.
const (
	JavaScript Language = "js" // the default
	TypeScript Language = "ts" // types are removed, not checked
)

// Script is what a run runs.
type Script struct {
	Source    string
	Name      string          // how errors call it; default "script.js" or "script.ts"
	Language  Language        // default JavaScript
	Functions []string        // what the script can call: "name" or "Namespace.name", each at most once
	Input     json.RawMessage // the script's global input; nil means it has none
	Now       time.Time       // what the script's clock says, all the time; the zero time is 1970
	Seed      int64           // where the script's Math.random begins: the same seed gives the same numbers
}

// Limits of one run. Zero means the default.
type Limits struct {
	Memory int64         // bytes that the script's values may take; default 64 MiB, at most 2 GiB
	Stack  int           // how deep calls may nest, roughly; default 4000, at most 20000
	Time   time.Duration // from start to end, waiting for the host included; default 30 s
	Output int64         // bytes of console output and result together; default 1 MiB, at most 8 MiB
	Calls  int           // host calls that may wait for their answers at once; default 1000
}

const (
	minMemory = 1 << 20
	maxMemory = 2 << 30
	maxStack  = 20000
)

// withDefaults checks the limits and fills in what is not said.
func (l Limits) withDefaults() (Limits, error) {
	set := func(v *int64, def, least, most int64, name string) error {
		if *v == 0 {
			*v = def
		}
		if *v < least || *v > most {
			return reeve.Errorf(reeve.Validation, "limit %s is %d", name, *v).Hintf("between %d and %d", least, most)
		}
		return nil
	}
	stack, calls, wall := int64(l.Stack), int64(l.Calls), int64(l.Time)
	for _, err := range []error{
		set(&l.Memory, 64<<20, minMemory, maxMemory, "memory"),
		set(&stack, 4000, 64, maxStack, "stack"),
		set(&wall, int64(30*time.Second), int64(time.Millisecond), 1<<62, "time"),
		set(&l.Output, 1<<20, 1, wire.MaxBody, "output"),
		set(&calls, 1000, 1, 1<<20, "calls"),
	} {
		if err != nil {
			return l, err
		}
	}
	l.Stack, l.Calls, l.Time = int(stack), int(calls), time.Duration(wall)
	return l, nil
}

// Host answers a script's calls. Both methods are used while [Pool.Run] runs, and not after it has returned.
type Host interface {
	// Call performs one call of the script's; calls that the script does not wait for in between run side by side. The
	// context ends when the run is aborted, canceled or out of time; Run waits until every Call has returned, so Call
	// must heed it. An error rejects the script's promise: the script sees a [reeve.Error]'s message, code and hint,
	// and of any other error only that there was one. An error made with [Abort] ends the run instead. No result is
	// undefined.
	Call(ctx context.Context, name string, args []Arg) (json.RawMessage, error)
	// Log takes a line of console output at once: while it blocks, so does the run. Level is debug, log, info, warn or
	// error.
	Log(level, text string)
}

// CallNoter is a Host that is told of every call as soon as it is heard: in the order in which the script made them,
// and before anything is heard that the script did after it. What it gives is the context of the call. One that is to
// be performed now is, before anything else is heard; it must not take long.
type CallNoter interface {
	Note(ctx context.Context, name string) (_ context.Context, now bool)
}

// Arg is one argument of a host call: a JSON value, a function, or neither, which is undefined.
type Arg struct {
	JSON json.RawMessage
	Func *Func
}

// Func is a function that the script passed to the host. It can be called until the host call that received it returns.
type Func struct {
	run    *run
	call   uint32
	handle uint32
	calls  *signal // of its call
}

// Call calls the function with JSON arguments, waits until what it returns is settled, and gives that, nil for
// undefined. What the function throws is an [*Error] of kind [Thrown]; a host call that returns it passes the very same
// value back to the script. An argument of nil is undefined.
func (f *Func) Call(ctx context.Context, args ...json.RawMessage) (json.RawMessage, error) {
	return f.run.invoke(ctx, f, args)
}

// CallAndReturn calls the function and hands the host call over to it: what the function comes to, or throws, is what
// the call comes to, and reaches the script without another trip. Whatever the host call then returns is left aside.
// The outcome is told to done, nil or an [*Error] of kind [Thrown], before anything is heard that the script says after
// it; done must not block, and is not told of a function that does not come to an end.
func (f *Func) CallAndReturn(done func(error), args ...json.RawMessage) error {
	return f.run.handOver(f, args, done)
}

// checkName refuses names that no script could call.
func checkName(name string) error {
	for part := range strings.SplitSeq(name, ".") {
		for i, c := range part {
			letter := c == '_' || c == '$' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
			if !letter && (i == 0 || c < '0' || c > '9') {
				return reeve.Errorf(reeve.Validation, "function %q: not a name that a script can write", name)
			}
		}
		if part == "" || part == "__proto__" || part == "prototype" || part == "constructor" {
			return reeve.Errorf(reeve.Validation, "function %q: not a name that a script can write", name)
		}
	}
	return nil
}

// checkNames refuses lists in which one name hides another.
func checkNames(names []string) error {
	whole, inner := map[string]bool{}, map[string]bool{}
	for _, name := range names {
		if err := checkName(name); err != nil {
			return err
		}
		if whole[name] {
			return reeve.Errorf(reeve.Validation, "function %q is named twice", name)
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
