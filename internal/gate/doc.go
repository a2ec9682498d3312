// Package gate is the one path that every call takes, whatever starts it.
//
// Gate.Call decides, executes and records. Deciding runs the steps in decide.go, in one order, on a cached view of the
// workspace, and returns a Decision. An Attempt executes the call by the effect class of its tool. A Recorder writes
// it:
//
//	read   run; then the call with its result in one transaction
//	local  effect, call and result in one transaction
//	else   the call (dispatched) in one transaction; run; then the outcome in another
//
// The write carries the revision of the workspace that the decision was made at. If the workspace changed meanwhile,
// the write fails and the call is decided again.
//
// The loop in reconcile.go settles calls that a crash left between those two transactions. It also runs calls that a
// person approved, and applies proposals that a person accepted. Nothing waits in memory: a call that must wait is a
// row.
//
// Catalogue holds the tools. Inbox takes people's decisions on approvals, proposals and unknown outcomes.
package gate
