// Package store stores all of Reeve's data in SQLite or PostgreSQL.
//
// [DB] is the open store. [DB.View] runs a function on a consistent [Snap]; [DB.Update] runs a function in a
// transaction, [Tx], which commits completely or not at all. The function may run more than once, so it must have no
// effect other than through its Tx. Queries are grouped by subject, for example [Snap.Runs] and [Tx.Ledger].
//
// The same SQL serves both databases. The differences are behind [Engine], which the packages sqlite and postgres
// implement. Most tables have a file of their own in this package. The schema is in migrations.
//
// A statement that needs no result goes to [Conn.Exec]. An engine across a network may send such statements together
// with the next query or the commit, so a transaction that only writes takes one round trip.
//
// A row that cannot be decoded is an [ErrCorruptRow]. Transactions that lock several rows lock them in a fixed order to
// avoid deadlocks: node, workspace, agent, then the rows of the agent; a budget before its workspace.
package store
