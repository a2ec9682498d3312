// Package guest runs inside a Python worker process. It contains the WebAssembly machine that executes the frozen
// interpreter, and the loop that runs code in it.
//
// [Serve] is the main function of a worker. [Engine] holds the compiled interpreter, [Image] the memory with which each
// machine starts, and [System] the host functions of one machine.
//
// A machine can call only the functions in system.go, which read its code, write its output and end it. None of them
// gives access to a file, socket, process, clock or source of random numbers. Each run has a machine of its own that
// starts from the same image, so a run cannot affect the next one.
package guest
