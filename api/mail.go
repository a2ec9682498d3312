package api

import "reeve"

// MailboxInfo describes an imported mailbox.
type MailboxInfo struct {
	Name     string `json:"name"`
	User     string `json:"user,omitempty" doc:"User who imported it; this user and owners may delete it"`
	Messages int64  `json:"messages"`
}

// MailboxList lists a workspace's mailboxes by name.
type MailboxList struct {
	Mailboxes []MailboxInfo `json:"mailboxes"`
}

// MailImportList lists imports, newest first.
type MailImportList struct {
	Imports []reeve.MailImport `json:"imports"`
}
