// Package reeve holds the words of the Reeve agent runtime: tools, calls, operations, agents, messages, approvals,
// budgets, errors and keys, with the transitions that are legal between their states. It does no I/O and imports no
// other package of this module, so every room can speak the same language.
//
// To run Reeve inside a Go program, build tools with [NewTool] and hand them to package host.
package reeve
