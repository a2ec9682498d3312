// Package memory keeps what a model can no longer be shown: turns that are too old are put into a few words, in the
// background, each stretch of them once.
//
// A summary is work that is a row: it is asked for in the transaction that stores an answer, claimed by a process
// before the model is asked, and done in the one that keeps its words and charges what they cost. Nothing waits for it,
// and if it fails the turns are as they were.
package memory
