package main

import (
	"context"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"reeve"
	"reeve/api"
	"reeve/client"
)

func itemsCommand(a *app) *cobra.Command {
	list := itemsList(a)
	get := a.named("get AUTOMATION ITEM", "Show an item and all attempts at it", "items get mailer message-17",
		cobra.ExactArgs(2), func(ctx context.Context, c *client.Client, args []string) error {
			v, err := c.Automations().Item(ctx, args[0], args[1])
			if err != nil {
				return err
			}
			return a.print(v, func(w io.Writer) {
				printItem(w, v.Item)
				a.table(w, "ATTEMPT STATE VERSION FIRST LAST STARTED FINISHED WHY",
					rows(v.Attempts, func(t reeve.ItemAttempt) []string {
						return []string{strconv.Itoa(t.Attempt), string(t.State), t.Version, t.FirstRun, t.LastRun,
							when(t.StartedAt), whenSet(t.FinishedAt), cut(t.Message, 60)}
					}))
			})
		})
	settle := func(use, short string, how func(*client.Client) func(context.Context, string,
		api.ItemRequest) (reeve.Item, error)) *cobra.Command {
		var r api.ItemRequest
		c := a.named(use+" AUTOMATION ITEM", short, "items "+use+" mailer message-17", cobra.ExactArgs(2),
			func(ctx context.Context, c *client.Client, args []string) error {
				r.Item = args[1]
				v, err := how(c)(ctx, args[0], r)
				if err != nil {
					return err
				}
				return a.print(v, func(w io.Writer) { printItem(w, v) })
			})
		c.Flags().StringVar(&r.Reason, "reason", "", "why, for those who look later")
		return c
	}
	c := family("items AUTOMATION", "See what an automation has done, item by item", `An item is one unit of an automation's work. A run does it once: what is done stays done until a person has it reprocessed, which is
another attempt. A failed item is tried again by the next run; a skipped one is passed over.`, list, get,
		settle("skip", "Have runs pass over an item", func(c *client.Client) func(context.Context, string,
			api.ItemRequest) (reeve.Item, error) {
			return c.Automations().SkipItem
		}),
		settle("reprocess", "Begin another attempt at an item", func(c *client.Client) func(context.Context, string,
			api.ItemRequest) (reeve.Item, error) {
			return c.Automations().ReprocessItem
		}))
	c.Example = `  reeve items mailer --status failed
  reeve items get mailer message-17
  reeve items reprocess mailer message-17`
	c.ValidArgsFunction = a.complete(automationNames)
	return c
}

func printItem(w io.Writer, v reeve.Item) {
	details(w, "id", v.ID, "title", v.Title, "state", string(v.State), "attempt", strconv.Itoa(v.Attempt), "first run",
		v.FirstRun, "last run", v.LastRun, "code", string(v.Code),
		"message", v.Message, "created", when(v.CreatedAt), "updated", when(v.UpdatedAt))
}

func itemsList(a *app) *cobra.Command {
	var f reeve.ItemFilter
	var state string
	c := a.named("list AUTOMATION", "List items, newest first", "items list mailer --status failed", cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			f.State = reeve.ItemState(state)
			l, err := c.Automations().Items(ctx, args[0], f)
			if err != nil {
				return err
			}
			if l.HasMore {
				defer a.note("%d in all; more: add --offset %d", l.Total, f.Offset+len(l.Items))
			}
			return a.print(l, func(w io.Writer) {
				a.table(w, "ID STATE ATTEMPT TITLE LAST UPDATED WHY", rows(l.Items, func(v reeve.Item) []string {
					return []string{v.ID, string(v.State), strconv.Itoa(v.Attempt), cut(v.Title, 40), v.LastRun,
						when(v.UpdatedAt), cut(v.Message, 50)}
				}))
			})
		})
	c.Flags().StringVar(&state, "status", "", "in one state only")
	c.Flags().IntVar(&f.Limit, "limit", 0, "how many at most")
	c.Flags().IntVar(&f.Offset, "offset", 0, "leave out this many of the newest")
	fixed(c, "status", reeve.ItemStates())
	return c
}
