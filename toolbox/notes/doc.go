// Package notes is the pack of the memory tools. A note is a fact, a preference or a decision that agents remember for
// a user. It belongs to the user, no matter which agent wrote it.
//
// The tools act on the notes of the user for whom the call is made. A call without a user fails. The pack records where
// a note comes from; no argument sets it. Every change can be undone.
package notes
