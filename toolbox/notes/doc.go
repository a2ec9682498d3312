// Package notes is the pack of the memory tools. A note is something that agents remember for a user: a fact, a
// preference, a decision. It belongs to the user, whichever agent wrote it.
//
// The tools act on the notes of the user whom the call is made for. A call without a user fails. Where a note comes
// from is recorded by the pack; no argument sets it. Every change can be undone.
package notes
