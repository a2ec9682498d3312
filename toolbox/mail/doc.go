// Package mail is the pack that searches and reads imported mail: email_search and email_get. Mail comes in by way of
// the API, see docs/mail.md; package mailbox reads it.
package mail
