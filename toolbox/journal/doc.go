// Package journal contains the tools with which agents use the journal: tasks, checklists, time entries, day plans and
// ratings, all of them in categories.
//
// An agent can access only the categories that it was given; without any it can do nothing. Three checks enforce this.
// The gate checks the categories of everything that the arguments name. Reads filter in the query. Writes check again
// in their transaction, so that an entity that left the scope in between is refused and nothing is written.
//
// The rules of each change are in store.JournalWriter, which the REST API uses too. A tool in this package declares its
// arguments and which of them name entities.
//
// Tools that make large changes have a preview. A call with the base of a preview makes exactly that change or fails.
package journal
