// Package py runs untrusted Python.
//
//	pool := py.New(py.Config{Dir: cache})
//	result, err := pool.Run(ctx, py.Code{Owner: workspace, Source: source}, py.Limits{Time: 5 * time.Second})
//
// # Features
//
// The code runs in CPython 3.12 with the built-in functions and the modules json, re and typing. It has no files,
// network, processes, clock or random numbers, so the same code gives the same output. Its result is what it prints.
// Its standard input is empty. The machine needs no Python installation.
//
// # Isolation
//
// The interpreter is compiled to WebAssembly. Command freeze starts it, imports the modules, and stores its memory as
// an image. Each run has a WebAssembly machine of its own that starts from a copy-on-write mapping of the image. No
// state is kept between runs.
//
//   - The machine can call only a few host functions, which read the code and write the output (package guest).
//   - It runs in a worker process. Package confine limits the process to reading the interpreter's folder. Package lock
//     adds a system call filter and limits from inside. The process has no variables and no files except the image, so
//     code that escapes the machine finds nothing.
//   - A worker serves only one owner, a workspace, so damage in a worker cannot affect another workspace.
//   - If a run exceeds its time or its context is cancelled, its worker process is killed.
//   - Inside the interpreter, an audit hook refuses to open files, import modules and start processes. It makes errors
//     clear; security does not depend on it.
//
// # The interpreter
//
// make assets downloads the interpreter from the npm registry, checks it against package-lock.json and freezes it. The
// build embeds it, compressed, with the worker program. The first run unpacks it into the cache directory and compiles
// it to machine code, which takes seconds. The process that compiles it runs no untrusted code. Workers load the
// machine code in a fraction of a second and write nothing. [Available] reports whether a program was built with the
// interpreter.
package py
