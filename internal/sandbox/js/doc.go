// Package js runs JavaScript and TypeScript that nobody vouches for.
//
//	pool := js.New(js.Config{})
//	script := js.Script{Source: source, Functions: []string{"Mail.list"}}
//	value, err := pool.Run(ctx, script, js.Limits{Time: time.Minute}, host)
//
// # What a script is
//
// A script is ES2022, in strict mode, with await at its top level and without modules. It has the language's own
// globals, console, input if it was given one, and the functions it was given: each gives a promise. Its value is what
// its last expression comes to; a script with a return at its top level is the body of a function, and its value is
// what it returns. Either way a promise is awaited, so that a script may end with main(). The value is JSON, as are
// arguments and results.
//
// A run is over when the script has come to its end and every call that it made has been answered, awaited or not. A
// promise that was rejected and that nobody listened to by then is an error of the run; listening late is soon enough.
//
// There is no clock and no chance: Date stands still at [Script.Now], Math.random follows [Script.Seed], the time zone
// is UTC and there are no timers. The same script with the same input, seed, moment and answers does the same.
//
// # How it is kept in
//
// The engine is QuickJS translated to Go. It can be made to crash at the edge of its memory, and loops inside its
// built-ins cannot be interrupted. So each run has a process of its own, which is thrown away afterwards: the only
// thing shared with the next run is the program's text. Inside, the engine counts memory and nesting, and a timer
// interrupts loops, microtasks and regular expressions; this gives errors with a line. Outside, the process has a limit
// on its memory, no environment, a filter on system calls (on Linux), and is killed half a second after its time. What
// it says is checked like the input of a stranger.
//
// TypeScript is turned into JavaScript in that process too: a source that breaks a parser breaks its own run.
//
// # Where workers come from
//
// A worker is the program itself, started again: see [ServeWorker]. The reeve binary also carries a small program that
// is only a worker (directory worker, built by make build), and uses it on Linux: it takes a third of the memory,
// because the packages of the whole program set up theirs before main. Where it is missing or of another version, the
// program itself serves.
package js
