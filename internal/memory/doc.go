// Package memory summarizes old turns of conversations, so that models still know about turns that no longer fit into
// their context.
//
// [Summarizer] makes one summary at a time in the background. A summary is a row. The transaction that stores an answer
// inserts it, a process claims it before it calls the model, and the transaction that stores the summary charges its
// cost. Nothing waits for a summary. If it fails, the turns stay as they are.
package memory
