// Package agent holds the brains that run agents. [Brain] chooses the brain of a run: a script, a model or a rehearsal.
//
// [ModelRunner] is the model brain. It is a loop over the run's stored log: read the log, then take the one step that
// follows. A step assembles a request and asks the model, makes the calls of an answer, or ends the run. No state is
// only in memory, so the same loop starts a turn, continues it when results arrive and resumes it after a crash. Each
// call passes the gate under an operation id that derives from the run and the position of the call, so a resumed run
// repeats nothing.
//
// [Rehearsal] is a brain that follows a fixed plan of calls. It tests everything around a brain without a model.
//
// [Delegation] lets agents call agents, and [Deadlines] resolves such calls when their time is up.
package agent
