// Package py runs Python that nobody vouches for.
//
//	pool := py.New(py.Config{Dir: cache})
//	result, err := pool.Run(ctx, py.Code{Owner: workspace, Source: source}, py.Limits{Time: 5 * time.Second})
//
// # What the code has
//
// CPython 3.12 with the language's own functions and the modules json, re and typing. There is no file, no network, no
// process, no clock and no chance: the same code gives the same output. It prints; what it prints is its result. Its
// standard input is empty. No Python is needed on the machine.
//
// # How it is kept in
//
// The interpreter is compiled to WebAssembly, and frozen (command freeze) at the moment when it has started and
// imported what there is to import. Each run has a machine of its own that begins there: a copy of the image that costs
// what it changes. Nothing is carried over.
//
//   - The machine can call only the few functions that pass its code in and its output out (package guest).
//   - It runs in a worker process. Package confine limits the process to reading the interpreter's folder. Package lock
//     adds a system call filter and limits from inside. The process has no variables and no files except the image, so
//     code that escapes the machine finds nothing.
//   - Workers belong to one owner, a workspace: what one breaks is never used for another.
//   - A run that is not over in time, or whose caller goes away, is ended with its process, by the kernel.
//   - Inside the interpreter, an audit hook refuses to open files, import modules and start processes. It makes errors
//     clear; security does not depend on it.
//
// # Where the interpreter comes from
//
// make assets fetches it from the npm registry, checks it against package-lock.json and freezes it; the build embeds
// it, packed, with the worker program. The first run unpacks it into the cache directory and has it translated to
// machine code, once, which takes seconds, by a process that runs nobody's code; workers start from that in a fraction
// of one, and write nothing. A program that was built without it says so: see [Available].
package py
