// Package journal is the pack of tools by which agents act on the journal: tasks, checklists, time entries, day plans
// and ratings, all of them in categories.
//
// An agent sees and touches only the categories it was given; with none it can do nothing. That is asked three times:
// the gate judges a call by the categories of what its arguments name, reads are filtered in the query, and writes look
// again in the transaction that makes them, so that what left the scope in between is refused and nothing is written.
//
// The rules of each change are in the store (JournalWriter): people change the journal by the same ones, through the
// REST API. A tool here declares its arguments and says which of them name what.
//
// Tools that change much at once say beforehand what they would change. A call with the base of such a preview makes
// that change or none.
package journal
