// Package automation runs scripts. An automation is an agent whose brain is a script, with versions. The script works
// through items; each item is done once.
//
// The main types are [Runner], which executes scripts, [ItemRule], which the gate asks about the calls of scripts,
// [Service], which performs the requests of people, [Jobs], which opens and closes the script jobs of the planner and
// the maintainer, [Supervisor], which retries, repairs or stops an automation that failed, and [Pack], the scripts_*
// tools.
//
// A run loads the version it is pinned to, offers the agent's tools to the script as functions (see functions.go) and
// runs the script in a process of its own. Every call passes the gate. A script may change something only inside
// Items.withItem. A script that breaks this rule is aborted before it could catch an error.
//
// Item records are written together with the calls they belong to. The record of an item that is being processed
// commits with the first change made for it. The record of a finished item commits with the next write, at most a few
// milliseconds later. After a crash the next run enters an item that is still processing again. Operation ids derive
// from the item (reeve.ItemKey), so completed calls are replayed and only missing calls are made.
package automation
