// Package mailbox reads mail from maildirs, mbox files, CSV files and JSON lines.
//
// [Open] returns a [Source], and [Source.Items] iterates over its mails. Items come in a fixed order. Each has the
// position after it, so that an interrupted import can resume there.
//
// Mail that cannot be parsed is reported as an item with a reason, and reading continues. Defects in a mail are
// reported as notes. Memory use does not depend on the size of a mailbox or of a mail.
package mailbox
