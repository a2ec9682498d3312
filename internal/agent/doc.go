// Package agent holds the brains that run agents. A brain loops over deciding and calling; each call passes the gate
// under an operation id that derives from the run and its place in the stored plan, so that a run taken up after a
// crash repeats nothing.
//
// The model brain (Thinker) is a small machine over a run's own log: it reads what has been said and done, and takes
// the one step that follows: assemble and ask, store the answer, make the calls that the answer wants, or end. Nothing
// it knows is only in memory, so the same loop begins a turn, goes on with one whose results have come, and takes one
// up after a crash.
//
// The rehearsal brain follows a fixed plan of calls. It proves everything around a brain without a model.
package agent
