package api

import "reeve"

// MailboxInfo is a mailbox that was imported.
type MailboxInfo struct {
	Name     string `json:"name"`
	User     string `json:"user,omitempty" doc:"Who brought it in, and may remove it; owners may too"`
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
