// Package js runs untrusted JavaScript and TypeScript.
//
//	pool := js.New(js.Config{})
//	script := js.Script{Source: source, Functions: []string{"Mail.list"}}
//	value, err := pool.Run(ctx, script, js.Limits{Time: time.Minute}, host)
//
// # Scripts
//
// A script is ES2022 in strict mode, with top-level await and without modules. Its globals are those of the language,
// console, input (if [Script.Input] is set) and the host functions named in [Script.Functions]. Each host function
// returns a promise.
//
// The value of a script is the value of its last expression. If the script has a return statement at its top level, it
// is treated as the body of an async function, and its value is what it returns. In both cases a promise is awaited, so
// a script may end with main(). The script's value, arguments and results are JSON.
//
// A run ends when the script has ended and every host call has been answered, awaited or not. A promise that is
// rejected and has no handler at that time is an error of the run. It does not matter when the handler was attached.
//
// Runs are deterministic. Date always returns [Script.Now], Math.random is seeded by [Script.Seed], the time zone is
// UTC, and there are no timers. The same script with the same input, seed, time and host results does the same.
//
// # Isolation
//
// The engine is QuickJS translated to Go. A script can crash it when memory runs out, and loops inside its built-ins
// cannot be interrupted. So each run has a worker process of its own, which ends with the run.
//
// Inside the process, the engine limits memory and call depth, and a timer interrupts loops, microtasks and regular
// expressions. These limits produce errors with a line number. Outside, the process has a memory limit, no environment
// and (on Linux) a system call filter, and it is killed half a second after its time limit. The host validates every
// frame that a worker sends as untrusted input.
//
// TypeScript is translated to JavaScript in the worker too, so a source that crashes the translator affects only its
// own run.
//
// # Worker programs
//
// By default a worker is the running program, started again; see [ServeWorker]. The reeve binary also embeds a small
// worker program (directory worker, built by make build) and uses it on Linux. The small program needs a third of the
// memory, because it does not initialize the packages of the whole program. If the small program is missing, has
// another version or does not start, the running program is used.
package js
