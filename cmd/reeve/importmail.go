package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"reeve"
	"reeve/api"
	"reeve/client"
	"reeve/toolbox/mail/mailbox"
)

const (
	batchBytes = 1 << 20 // target size of a batch; a single mail can be larger
	batchMails = 500
)

func importCommand(a *app) *cobra.Command {
	return groupCommand("import", "Import mail",
		`An import reads files on this machine, with your permissions, and sends their content to the server.`,
		importMail(a),
		importList(a), importShow(a))
}

func importMail(a *app) *cobra.Command {
	var opt mailbox.Options
	var format string
	var q reeve.MailImportRequest
	c := a.serverCommand("mail PATH", "Import a mailbox: maildir, mbox, CSV or JSON lines",
		`import mail ~/maildir
  reeve import mail inbox.mbox --inbox jane@example.org
  reeve import mail emails.csv`,
		cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			opt.Format = mailbox.Format(format)
			src, err := mailbox.Open(args[0], opt)
			if err != nil {
				return err
			}
			q.Source = sourceName(args[0], opt)
			v, err := c.Mail().BeginImport(ctx, q)
			if err != nil {
				return err
			}
			if v, err = a.sendMail(ctx, c, src, v); err != nil {
				return err
			}
			return a.print(v, func(w io.Writer) { printImport(w, v) })
		})
	c.Long = `Reads a mailbox and sends its mails to the server, which stores and indexes them for the tools
email_search and email_get. PATH is an mbox, CSV or JSONL file, a single mail, or a directory of
these, such as a maildir or a directory with a subdirectory for each mailbox (dasovich-j/sent/1.). The
format is detected; set --format if that fails.

If the command is interrupted, run it again to continue; no mail is lost or imported twice. Mails that
are already stored are skipped, or replaced with --replace. Mails that cannot be read are skipped,
counted and listed at the end. Only the names, types and sizes of attachments are sent, not their
content.`
	c.Flags().StringVar(&format, "format", "", "maildir, mbox, csv or jsonl (default: detected)")
	c.Flags().StringVar(&opt.Inbox, "inbox", "",
		"name of the mailbox (default: from directory names, file names or columns)")
	c.Flags().BoolVar(&q.Replace, "replace", false, "replace stored mails that have the same message id")
	c.Flags().BoolVar(&q.Restart, "restart", false,
		"start from the beginning instead of continuing an interrupted import")
	return c
}

// sourceName returns the name under which the server stores the position of an import. It is the same for the same
// files on the same machine, read with the same options.
func sourceName(name string, opt mailbox.Options) string {
	if abs, err := filepath.Abs(name); err == nil {
		name = abs
	}
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	s := strings.ToValidUTF8(host+":"+name, "\uFFFD")
	// The order is fixed, because the name is a key.
	for _, flag := range []struct{ name, value string }{{"format", string(opt.Format)}, {"inbox", opt.Inbox}} {
		if flag.value != "" {
			s += " " + flag.name + "=" + flag.value
		}
	}
	return s
}

// batch holds the mails read between two positions of the source.
type batch struct {
	lines    []byte
	position string
	bytes    int64 // read from the source up to position
	mails    int64
	err      error
}

// sendMail reads a source and sends its mails to the server in batches. It reads the next batch while one is being
// sent.
func (a *app) sendMail(ctx context.Context, c *client.Client, src *mailbox.Source,
	v reeve.MailImport) (reeve.MailImport, error) {
	ctx, cancel := context.WithCancel(ctx)
	batches := make(chan batch, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(batches)
		readMail(ctx, src, v.Position, batches)
	}()
	defer func() { cancel(); <-done }()
	if v.Seen > 0 {
		a.notef("continuing after %d mails", v.Seen)
	}
	p := newProgress(a, src.Size(), v.Seen)
	defer p.clear()
	for b := range batches {
		if b.err != nil {
			return v, b.err
		}
		var err error
		if v, err = c.Mail().AddBatch(ctx, v.ID, v.Position, b.position, b.lines); err != nil {
			if ctx.Err() != nil {
				return v, interruptedError(v)
			}
			return v, err
		}
		p.update(v, b.bytes)
	}
	if ctx.Err() != nil {
		return v, interruptedError(v)
	}
	return c.Mail().FinishImport(ctx, v.ID, v.Position)
}

func interruptedError(v reeve.MailImport) error {
	return reeve.Errorf(reeve.Canceled, "interrupted after %d mails", v.Seen).
		Hintf("run the same command again to continue")
}

// readMail reads a source from a position and sends batches to out, until the source ends, a read fails or ctx is done.
func readMail(ctx context.Context, src *mailbox.Source, from string, out chan<- batch) {
	var b bytes.Buffer
	next := batch{}
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	send := func() bool {
		next.lines = bytes.Clone(b.Bytes())
		select {
		case out <- next:
		case <-ctx.Done():
			return false
		}
		b.Reset()
		next = batch{}
		return true
	}
	for item, err := range src.Items(from) {
		if err == nil {
			err = enc.Encode(item.Line)
		}
		if err != nil {
			next.err = err
			break
		}
		next.position, next.bytes = item.Position, item.Bytes
		if next.mails++; b.Len() >= batchBytes || next.mails >= batchMails {
			if !send() {
				return
			}
		}
	}
	if next.mails > 0 || next.err != nil {
		send()
	}
}

func importList(a *app) *cobra.Command {
	return a.serverCommand("list", "List imports, newest first", "import list", cobra.NoArgs,
		func(ctx context.Context, c *client.Client, _ []string) error {
			l, err := c.Mail().Imports(ctx)
			if err != nil {
				return err
			}
			return a.print(l, func(w io.Writer) {
				a.printTable(w, "ID STATE SEEN ADDED DUPLICATE BAD UPDATED SOURCE",
					rows(l.Imports, func(v reeve.MailImport) []string {
						n := func(n int64) string { return strconv.FormatInt(n, 10) }
						return []string{v.ID, v.State, n(v.Seen), n(v.Added), n(v.Duplicate), n(v.Unreadable),
							formatTime(v.UpdatedAt),
							v.Source}
					}))
			})
		})
}

func importShow(a *app) *cobra.Command {
	return a.serverCommand("show ID", "Show an import and its problems", "import show imp_...", cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			v, err := c.Mail().Import(ctx, args[0])
			if err != nil {
				return err
			}
			return a.print(v, func(w io.Writer) { printImport(w, v) })
		})
}

// printImport writes the counts and notes of an import.
func printImport(w io.Writer, v reeve.MailImport) {
	fmt.Fprintf(w, "%s: %d mails read, %d added, %d replaced, %d already stored, %d bad\n", v.ID, v.Seen, v.Added,
		v.Replaced, v.Duplicate, v.Unreadable)
	if !v.IsDone() {
		fmt.Fprintln(w, "The import is not finished. To continue, run the same command again.")
	}
	for _, bad := range []bool{true, false} {
		for _, n := range v.Problems {
			if n.Unreadable != bad {
				continue
			}
			what := "with a warning"
			if bad {
				what = "skipped"
			}
			fmt.Fprintf(w, "  %d %s: %s\n", n.Count, what, sanitize(n.Reason))
			for _, e := range n.Examples {
				fmt.Fprintf(w, "      %s\n", oneLine(e))
			}
			if more := n.Count - int64(len(n.Examples)); more > 0 && len(n.Examples) > 0 {
				fmt.Fprintf(w, "      and %d more\n", more)
			}
		}
	}
}

func mailCommand(a *app) *cobra.Command {
	list := a.serverCommand("inboxes", "List imported mailboxes", "mail inboxes", cobra.NoArgs,
		func(ctx context.Context, c *client.Client, _ []string) error {
			l, err := c.Mail().Inboxes(ctx)
			if err != nil {
				return err
			}
			return a.print(l, func(w io.Writer) {
				a.printTable(w, "NAME MAILS USER",
					rows(l.Mailboxes, func(v api.MailboxInfo) []string {
						return []string{v.Name, strconv.FormatInt(v.Messages, 10), v.User}
					}))
			})
		})
	remove := a.serverCommand("delete INBOX", "Delete a mailbox and all its mail", "mail delete dasovich-j",
		cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			if err := c.Mail().RemoveInbox(ctx, args[0]); err != nil {
				return err
			}
			return a.printDone("removed %s and all its mail", args[0])
		})
	return groupCommand("mail", "Search mail and manage imported mailboxes",
		`"reeve import mail" imports mail. Agents search and read it with the tools email_search and email_get.`,
		list, mailSearchCommand(a), remove)
}
