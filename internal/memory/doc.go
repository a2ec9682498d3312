// Package memory finds notes, keeps them tidy, and summarizes old turns and runs.
//
//   - [Notes] searches the notes of a user by words and by meaning, computes their vectors in the background, and
//
// forgets a note for good (Forget).
//   - [Consolidator] compares notes and proposes to merge those that say the same or contradict each other. Rules in
//
// similarity.go find pairs; a model judges groups of them (judge.go).
//   - [Summarizer] summarizes turns and runs that no longer fit into the model's context, one at a time in the
//
// background.
//
// A summary is a row. The transaction that stores an answer inserts it. A process claims it before it calls the model.
// The transaction that stores the summary also charges its cost. Nothing waits for a summary. If a summary fails, the
// turns stay as they are.
package memory
