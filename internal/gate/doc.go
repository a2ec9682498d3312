// Package gate is the only path by which a tool is called, whether a model, a script, a person or an API client makes
// the call.
//
// Gate.Call works in three phases. It decides: the steps in decide.go run in order against a cached view of the
// workspace and fill in a Decision. It executes: an Attempt runs the tool's handler. It records: a Recorder writes the
// call, its result and its cost. The effect class of the tool determines how the phases map to transactions:
//
//	read    run the handler, then write the call with its result in one transaction
//	local   run the handler and write the call with its result in the same transaction
//	others  write the call as dispatched, run the handler, then write the outcome in a second transaction
//
// Each write carries the revision of the workspace that the decision was based on. If the workspace has changed, the
// write fails and Gate.Call decides again.
//
// Gate.Run is the worker in worker.go. It finishes calls that a crash left between the two transactions, runs calls
// that a person approved and applies proposals that a person accepted. A call that has to wait is a row in the store
// and is never kept in memory only.
//
// Catalogue holds the tools. Inbox applies the decisions that people make on approvals, proposals and operations of
// unknown outcome.
package gate
