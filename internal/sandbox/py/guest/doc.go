// Package guest is the inside of a Python worker: the machine that the frozen interpreter runs on, and the loop that
// gives it code.
//
// The machine is WebAssembly. All that it can reach of its surroundings are the functions in system.go: it is given its
// code, gives back output, and ends. There is no file, no socket, no process, no clock and no chance behind any of
// them. Each run has a machine of its own, made from the same image: what one run does to its memory is gone before the
// next begins.
package guest
