// Package mail contains the tools email_search and email_get, which search and read imported mail.
//
// Mail is imported through the API (docs/mail.md); package mailbox parses it. The store keeps the search indexes. This
// package parses queries, matches inboxes by name or address, and renders snippets: passages with <mark> around matches
// and without secrets.
//
// A search has two time limits. If ranking takes too long, the newest mails are returned first instead, and a note in
// the result says so.
package mail
