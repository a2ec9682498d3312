// Package store keeps everything Reeve knows, in SQLite or PostgreSQL. One text of SQL serves both ($1 binds in both);
// what differs sits behind [Engine]. There is one file per table.
//
// A change is one transaction with one owner: [DB.Update] runs a function that may read and write and is committed
// whole or not at all. The function may run more than once, so it must do nothing but use its [Tx].
//
// Statements whose result nobody waits for are handed to the engine by [Conn.Exec]. Across a network it may hold them
// back and send them with the next query or the commit, so that a transaction that only writes costs one round trip.
package store
