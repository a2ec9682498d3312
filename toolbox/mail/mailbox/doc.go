// Package mailbox reads mail from where it lies: maildirs, mbox files, CSV and JSON lines. It reads in order, one mail
// at a time, and after each says where it stands, so that a reader who was interrupted can go on there. What cannot be
// read is told and passed over; memory does not grow with the size of a mailbox or of a mail.
package mailbox
