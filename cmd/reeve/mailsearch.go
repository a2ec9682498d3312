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

// mailSearch holds the arguments of email_search.
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

// mailPage is the result of email_search.
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
	c := a.serverCommand("search [WORD...]", "Search imported mail as an agent",
		`mail search '"quarterly report" from:jane' --since 2026-01-01
  reeve mail search budget --agent reader --inbox dasovich-j --cursor ...   # the next page`,
		cobra.ArbitraryArgs,
		func(ctx context.Context, c *client.Client, args []string) error {
			if agent == "" {
				var err error
				if agent, err = findMailAgent(ctx, c, args); err != nil {
					return err
				}
			}
			q.Query = strings.Join(args, " ")
			b, err := json.Marshal(q)
			if err != nil {
				return err
			}
			res, err := c.Calls().Call(ctx, agent, api.CallRequest{Tool: "email_search", Args: b})
			if err != nil {
				return err
			}
			var page mailPage
			// Content is not valid JSON if the result was truncated.
			if res.IsError || isPending(res) || json.Unmarshal([]byte(res.Content), &page) != nil {
				return a.printResult(res)
			}
			return a.print(page, func(w io.Writer) { page.print(w) })
		})
	c.Long = `Searches imported mail by calling the tool email_search as an agent. The call needs the rights of the
agent and is recorded like any other call. --agent can be omitted if only one agent has the tool. The
results are ordered by relevance, or newest first if there are no words.`
	f := c.Flags()
	f.StringVar(&q.Inbox, "inbox", "", "only mail in this mailbox (default: all)")
	f.StringVar(&q.Sender, "from", "", "only mail from this address or name")
	f.StringVar(&q.Recipient, "to", "", "only mail to this address or name")
	f.StringVar(&q.From, "since", "", "only mail sent on this day or at this time or later, 2001-05-15 or RFC 3339")
	f.StringVar(&q.To, "until", "", "only mail sent before this time, or on this day or earlier")
	f.IntVar(&q.Limit, "limit", 0, "maximum number of mails, 1 to 50 (default: 10, or the agent's setting)")
	f.StringVar(&q.Cursor, "cursor", "", "cursor of the next page, printed at the end of a page")
	f.StringVar(&agent, "agent", "", "agent that searches (default: the only agent with email_search)")
	a.completeFlag(c, "agent", agentNames)
	return c
}

// findMailAgent returns the only agent that has email_search. It fails if the first search word is the name of an
// agent, because the user may have meant that agent.
func findMailAgent(ctx context.Context, c *client.Client, words []string) (string, error) {
	list, err := c.Agents().List(ctx, client.Page{Limit: 100})
	if err != nil {
		return "", err
	}
	var names []string
	for _, g := range list.Agents {
		if len(words) > 0 && words[0] == g.Name {
			return "", usagef("the first word, %s, is the name of an agent; set --agent %s to search as this agent, "+
				"or set --agent to the agent that is to search for the word", g.Name, g.Name)
		}
		tools, err := c.Agents().Tools(ctx, g.ID)
		if err != nil {
			return "", err
		}
		if slices.ContainsFunc(tools.Tools, func(t api.ToolView) bool { return t.ID == "email_search" }) {
			names = append(names, g.Name)
		}
	}
	switch {
	case list.Next != "":
		return "", usagef("set --agent to the agent that searches")
	case len(names) == 0:
		return "", usagef("no agent has email_search; attach it with: reeve agents attach AGENT email_search")
	case len(names) > 1:
		return "", usagef("several agents can search mail (%s); set --agent", strings.Join(names, ", "))
	}
	return names[0], nil
}

// print writes the mails of a page.
func (p mailPage) print(w io.Writer) {
	for _, e := range p.Emails {
		date := "no date"
		if e.Date != nil {
			date = formatTime(*e.Date)
		}
		fmt.Fprintf(w, "%s  %s  %s\n    %s\n    %s, in %s\n", date, oneLine(e.Sender), oneLine(e.Subject),
			oneLine(e.Snippet), oneLine(e.MessageID), oneLine(e.Inbox))
	}
	if len(p.Emails) == 0 {
		fmt.Fprintln(w, "No mail found.")
	}
	if p.Note != "" {
		fmt.Fprintln(w, sanitize(p.Note))
	}
	if p.Next != "" {
		fmt.Fprintf(w, "next page: add --cursor %s\n", p.Next)
	}
}
