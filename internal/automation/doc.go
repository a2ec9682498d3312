// Package automation runs scripts. An automation is an agent whose brain is a script, with versions. The script works
// through items; each item is done once.
//
// The main types are:
//
//   - [Runner] executes scripts.
//   - [ItemRule] is the gate's rule for the calls of scripts.
//   - [Service] performs the requests of people: versions, runs by hand and pauses.
//   - [Jobs] opens and closes the script jobs of the planner and the maintainer.
//   - [Supervisor] retries, repairs or stops an automation that failed.
//   - [Pack] has the scripts_* tools.
//
// A run loads the version it is pinned to, offers the agent's tools to the script as functions (see functions.go) and
// runs the script in a process of its own. Every call passes the gate. A script may change something only inside
// Items.withItem. A script that breaks this rule is aborted before it could catch an error.
//
// Item records are written together with the calls they belong to. The record of an item that is being processed
// commits with the first change made for it. The record of a finished item commits with the next write, at most a few
// milliseconds later. After a crash, the next run enters such an item again. Operation ids derive from the item
// (reeve.ItemKey), so completed calls are replayed and only missing calls are made.
package automation
