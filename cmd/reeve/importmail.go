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
	batchBytes = 1 << 20 // of a batch of mails; a mail may be larger
	batchMails = 500
)

func importCommand(a *app) *cobra.Command {
	return family("import", "Bring in mail",
		`Imports read on this machine, with your permissions, and send the server what they read.`, importMail(a),
		importList(a), importShow(a))
}

func importMail(a *app) *cobra.Command {
	var opt mailbox.Options
	var format string
	var q reeve.MailImportRequest
	c := a.task("mail PATH", "Import a mailbox: maildir, mbox, CSV or JSON lines", `import mail ~/maildir
  reeve import mail inbox.mbox --inbox jane@example.org
  reeve import mail emails.csv`, cobra.ExactArgs(1), func(ctx context.Context, c *client.Client, args []string) error {
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
	c.Long = `Reads a mailbox and sends its mails to the server, which keeps and indexes them for email_search and email_get. PATH is an mbox, CSV or JSONL file or a mail, or a
folder of any of these: a maildir, or one with a folder for each mailbox (dasovich-j/sent/1.). What it is is seen; --format says it if need be.

An import that was interrupted goes on where it was when the same command is given again; nothing is lost or doubled. Mails that are there already are left alone, or
replaced with --replace. Mails that cannot be read are counted and listed at the end, and end nothing. The content of attachments is not sent, only names, types and sizes.`
	c.Flags().StringVar(&format, "format", "", "maildir, mbox, csv or jsonl (default: as it looks)")
	c.Flags().StringVar(&opt.Inbox, "inbox", "", "whose mail it is (default: as folders, files or columns say)")
	c.Flags().BoolVar(&q.Replace, "replace", false, "replace mails that are there by the same id")
	c.Flags().BoolVar(&q.Restart, "restart", false, "begin again, even if the import was interrupted before")
	return c
}

// sourceName is what the server knows a source by: the same mail on the same machine, read the same way.
func sourceName(name string, opt mailbox.Options) string {
	if abs, err := filepath.Abs(name); err == nil {
		name = abs
	}
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	s := strings.ToValidUTF8(host+":"+name, "\uFFFD")
	// always in this order: it is a key
	for _, flag := range []struct{ name, value string }{{"format", string(opt.Format)}, {"inbox", opt.Inbox}} {
		if flag.value != "" {
			s += " " + flag.name + "=" + flag.value
		}
	}
	return s
}

// batch is what was read between two positions.
type batch struct {
	lines    []byte
	position string
	bytes    int64 // of the whole, up to here
	mails    int64
	err      error
}

// sendMail reads a source and sends what it reads. Reading goes on while a batch is on its way.
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
		a.note("going on after %d mails", v.Seen)
	}
	p := newProgress(a, src.Size(), v.Seen)
	defer p.end()
	for b := range batches {
		if b.err != nil {
			return v, b.err
		}
		var err error
		if v, err = c.Mail().AddBatch(ctx, v.ID, v.Position, b.position, b.lines); err != nil {
			if ctx.Err() != nil {
				return v, interrupted(v)
			}
			return v, err
		}
		p.show(v, b.bytes)
	}
	if ctx.Err() != nil {
		return v, interrupted(v)
	}
	return c.Mail().FinishImport(ctx, v.ID, v.Position)
}

func interrupted(v reeve.MailImport) error {
	return reeve.Errorf(reeve.Canceled, "interrupted after %d mails", v.Seen).
		Hintf("give the same command again to go on")
}

// readMail reads a source into batches.
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
	return a.task("list", "List imports, newest first", "import list", cobra.NoArgs,
		func(ctx context.Context, c *client.Client, _ []string) error {
			l, err := c.Mail().Imports(ctx)
			if err != nil {
				return err
			}
			return a.print(l, func(w io.Writer) {
				a.table(w, "ID STATE SEEN ADDED DUPLICATE BAD UPDATED SOURCE",
					rows(l.Imports, func(v reeve.MailImport) []string {
						n := func(n int64) string { return strconv.FormatInt(n, 10) }
						return []string{v.ID, v.State, n(v.Seen), n(v.Added), n(v.Duplicate), n(v.Bad),
							when(v.UpdatedAt),
							v.Source}
					}))
			})
		})
}

func importShow(a *app) *cobra.Command {
	return a.task("show ID", "Show an import, and what was wrong with mails", "import show imp_...", cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			v, err := c.Mail().Import(ctx, args[0])
			if err != nil {
				return err
			}
			return a.print(v, func(w io.Writer) { printImport(w, v) })
		})
}

// printImport writes what an import came to.
func printImport(w io.Writer, v reeve.MailImport) {
	fmt.Fprintf(w, "%s: %d mails seen, %d added, %d replaced, %d there already, %d bad\n", v.ID, v.Seen, v.Added,
		v.Replaced, v.Duplicate, v.Bad)
	if !v.Done() {
		fmt.Fprintln(w, "It is not done: give the same command again to go on.")
	}
	for _, bad := range []bool{true, false} {
		for _, n := range v.Notes {
			if n.Bad != bad {
				continue
			}
			what := "odd"
			if bad {
				what = "left out"
			}
			fmt.Fprintf(w, "  %d %s: %s\n", n.Count, what, plain(n.Reason))
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
	list := a.task("inboxes", "List mailboxes that were imported", "mail inboxes", cobra.NoArgs,
		func(ctx context.Context, c *client.Client, _ []string) error {
			l, err := c.Mail().Inboxes(ctx)
			if err != nil {
				return err
			}
			return a.print(l, func(w io.Writer) {
				a.table(w, "NAME MAILS USER",
					rows(l.Mailboxes, func(v api.MailboxInfo) []string {
						return []string{v.Name,
							strconv.FormatInt(v.Messages, 10), v.User}
					}))
			})
		})
	remove := a.task("remove INBOX", "Remove a mailbox and all its mail", "mail remove dasovich-j", cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			if err := c.Mail().RemoveInbox(ctx, args[0]); err != nil {
				return err
			}
			return a.done("removed %s and all its mail", args[0])
		})
	return family("mail", "Search mail, see and remove mailboxes that were imported",
		`Mail is brought in with "reeve import mail", and searched and read by agents with email_search and email_get.`,
		list, mailSearchCommand(a), remove)
}
