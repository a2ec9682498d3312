// Package automation is the script brain: agents whose runs are a script that works through items, each once.
//
// A run loads the version it is pinned to, gives the script the agent's tools as functions (see name.go), and lets it
// run in a process of its own. Whatever it calls passes the gate. What it changes, it changes inside [Items.withItem],
// and the gate asks this package's rule about that; a script that breaks the rule is gone before it could catch
// anything.
//
// The ledger of items is written with the calls it belongs to: the row that says that an item is being worked on
// commits with the first change made for it, and the row that says that it is done with whatever is written next, at
// the latest a moment later. A crash in between finds the item at processing, and the next run enters it again: its
// operations have ids that derive from the item (reeve.ItemKey), so what was done is replayed and only what is missing
// is done.
package automation
