// Package agent holds the brains that run agents. A brain loops over deciding and calling; each call passes the gate under an
// operation id that derives from the run and its place in the stored plan, so that a run taken up after a crash repeats nothing.
//
// This build has the rehearsal brain: a fixed plan of calls. The model brain comes with conversations.
package agent
