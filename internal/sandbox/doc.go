// Package sandbox and the packages below it run untrusted code under limits. None of them knows about tools or agents:
// a caller passes code and limits, and receives a result.
//
//   - Package js runs JavaScript and TypeScript.
//   - Package py runs Python.
//   - Package confine runs commands, and confines the worker processes of js and py in the same way.
//   - Package child starts and ends worker processes, for the host.
//   - Package lock is used inside a worker process, to give up privileges before untrusted code runs.
//
// Package sandbox itself holds only helpers that these packages' callers share.
package sandbox
