// Package gate is the one path that every call takes, whoever makes it. A call is judged step by step (see steps in
// judge.go), in one order, from a cached view of its workspace; then it is performed by its effect class and recorded. The
// write that records it carries the revision it was judged at, so a change made meanwhile sends it back to be judged again.
//
//	read   run, then action and result in one transaction
//	local  action, effect, operation and result in one transaction
//	else   action and operation (dispatched) in one transaction; run; operation and result in another
//
// What a crash leaves between those two is found by the loop in reconcile.go, which also runs calls that a person approved,
// and applies proposals that a person accepted.
// Nothing waits in memory: a call that must wait is a row.
package gate
