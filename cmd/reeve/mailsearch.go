package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"reeve"
	"reeve/api"
	"reeve/client"
)

// mailSearch is what email_search is asked.
type mailSearch struct {
	Query     string `json:"query"`
	Inbox     string `json:"inbox_id,omitempty"`
	Sender    string `json:"sender,omitempty"`
	Recipient string `json:"recipient,omitempty"`
	From      string `json:"date_from,omitempty"`
	To        string `json:"date_to,omitempty"`
	Limit     int    `json:"limit,omitempty"`
	Cursor    string `json:"cursor,omitempty"`
}

// mailPage is what it answers.
type mailPage struct {
	Total  int             `json:"total"`
	More   bool            `json:"more"`
	Next   string          `json:"next_cursor,omitempty"`
	Note   string          `json:"note,omitempty"`
	Emails []reeve.MailHit `json:"emails"`
}

func mailSearchCommand(a *app) *cobra.Command {
	var q mailSearch
	var agent string
	c := a.task("search [WORD...]", "Have an agent search the mail, as email_search does", `mail search '"quarterly report" from:jane' --since 2026-01-01
  reeve mail search budget --agent reader --inbox dasovich-j --cursor ...   # the next page`, cobra.ArbitraryArgs, func(ctx context.Context, c *client.Client, args []string) error {
		who := agent
		if who == "" {
			var err error
			if who, err = mailAgent(ctx, c, args); err != nil {
				return err
			}
		}
		q.Query = strings.Join(args, " ")
		b, err := json.Marshal(q)
		if err != nil {
			return err
		}
		res, err := c.Calls().Call(ctx, who, api.CallRequest{Tool: "email_search", Args: b})
		if err != nil {
			return err
		}
		var page mailPage
		// also what is too long to be shown at once
		if res.IsError || pending(res) || json.Unmarshal([]byte(res.Content), &page) != nil {
			return a.printResult(res)
		}
		return a.print(page, func(w io.Writer) { page.print(w) })
	})
	c.Long = `Searches imported mail with the rights of an agent that has email_search attached: the search is one of its calls, and is in the ledger. --agent names the
agent; it may be left out when only one can search. All words are what is searched for. The best come first; without words, the
newest. When there are more, the last line says how to go on.`
	f := c.Flags()
	f.StringVar(&q.Inbox, "inbox", "", "whose mailbox (default: all)")
	f.StringVar(&q.Sender, "from", "", "only mail from this address or name")
	f.StringVar(&q.Recipient, "to", "", "only mail to this address or name")
	f.StringVar(&q.From, "since", "", "only mail sent then or later, 2001-05-15 or RFC 3339")
	f.StringVar(&q.To, "until", "", "only mail sent before; a day is included")
	f.IntVar(&q.Limit, "limit", 0, "most mails to give, 1 to 50 (default: 10, or as the agent is configured)")
	f.StringVar(&q.Cursor, "cursor", "", "the next page: what the page before ended with")
	f.StringVar(&agent, "agent", "", "who searches (default: the only agent that has email_search)")
	a.suggest(c, "agent", agentNames)
	return c
}

// mailAgent finds the only agent that can search mail. The name of an agent as the first word is refused: it may be
// meant either way.
func mailAgent(ctx context.Context, c *client.Client, words []string) (string, error) {
	list, err := c.Agents().List(ctx, client.Page{Limit: 100})
	if err != nil {
		return "", err
	}
	var able []string
	for _, g := range list.Agents {
		if len(words) > 0 && words[0] == g.Name {
			return "", usagef("%s is an agent: to have it search, say --agent %s; to search for the word, say also "+
				"--agent", g.Name, g.Name)
		}
		tools, err := c.Agents().Tools(ctx, g.ID)
		if err != nil {
			return "", err
		}
		if slices.ContainsFunc(tools.Tools, func(t api.ToolView) bool { return t.ID == "email_search" }) {
			able = append(able, g.Name)
		}
	}
	switch {
	case list.Next != "":
		return "", usagef("say which agent searches, with --agent")
	case len(able) == 0:
		return "", usagef("no agent can search mail: attach email_search to one, with reeve agents attach AGENT " +
			"email_search")
	case len(able) > 1:
		return "", usagef("several agents can search mail, %s: say which, with --agent", strings.Join(able, ", "))
	}
	return able[0], nil
}

// print writes what was found.
func (p mailPage) print(w io.Writer) {
	for _, e := range p.Emails {
		date := "no date"
		if e.Date != nil {
			date = when(*e.Date)
		}
		fmt.Fprintf(w, "%s  %s  %s\n    %s\n    %s, in %s\n", date, oneLine(e.Sender), oneLine(e.Subject),
			oneLine(e.Snippet), oneLine(e.MessageID), oneLine(e.Inbox))
	}
	if len(p.Emails) == 0 {
		fmt.Fprintln(w, "Nothing was found.")
	}
	if p.Note != "" {
		fmt.Fprintln(w, plain(p.Note))
	}
	if p.Next != "" {
		fmt.Fprintf(w, "There are more: the same with --cursor %s\n", p.Next)
	}
}
