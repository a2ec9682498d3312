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
	get := a.automationCommand("show AUTOMATION ITEM", "Show an item and its attempts", "items show mailer message-17",
		cobra.ExactArgs(2), func(ctx context.Context, c *client.Client, args []string) error {
			v, err := c.Automations().Item(ctx, args[0], args[1])
			if err != nil {
				return err
			}
			return a.print(v, func(w io.Writer) {
				printItem(w, v.Item)
				a.printTable(w, "ATTEMPT STATE VERSION FIRST LAST STARTED FINISHED WHY",
					rows(v.Attempts, func(t reeve.ItemAttempt) []string {
						return []string{strconv.Itoa(t.Attempt), string(t.State), t.Version, t.FirstRun, t.LastRun,
							formatTime(t.StartedAt), formatTimePtr(t.FinishedAt), truncate(t.Message, 60)}
					}))
			})
		})
	type changeFunc func(context.Context, string, api.ItemRequest) (reeve.Item, error)
	changeCommand := func(use, short string, method func(*client.Client) changeFunc) *cobra.Command {
		var r api.ItemRequest
		c := a.automationCommand(use+" AUTOMATION ITEM", short, "items "+use+" mailer message-17", cobra.ExactArgs(2),
			func(ctx context.Context, c *client.Client, args []string) error {
				r.Item = args[1]
				v, err := method(c)(ctx, args[0], r)
				if err != nil {
					return err
				}
				return a.print(v, func(w io.Writer) { printItem(w, v) })
			})
		c.Flags().StringVar(&r.Reason, "reason", "", "reason, stored with the item")
		return c
	}
	c := groupCommand("items AUTOMATION", "List and manage the items of an automation",
		`An item is one unit of an automation's work. Runs process each item once; to process a finished item
again, use reprocess, which starts another attempt. The next run retries a failed item and ignores a
skipped one.`, list, get,
		changeCommand("skip", "Skip an item in future runs",
			func(c *client.Client) changeFunc { return c.Automations().SkipItem }),
		changeCommand("reprocess", "Process an item again in the next run",
			func(c *client.Client) changeFunc { return c.Automations().ReprocessItem }))
	c.Example = `  reeve items mailer --status failed
  reeve items show mailer message-17
  reeve items reprocess mailer message-17`
	c.ValidArgsFunction = a.complete(automationNames)
	return c
}

func printItem(w io.Writer, v reeve.Item) {
	printDetails(w, "id", v.ID, "title", v.Title, "state", string(v.State), "attempt", strconv.Itoa(v.Attempt),
		"first run", v.FirstRun, "last run", v.LastRun, "code", string(v.Code), "message", v.Message,
		"created", formatTime(v.CreatedAt), "updated", formatTime(v.UpdatedAt))
}

func itemsList(a *app) *cobra.Command {
	var f reeve.ItemFilter
	var state string
	c := a.automationCommand("list AUTOMATION", "List items, newest first", "items list mailer --status failed",
		cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			f.State = reeve.ItemState(state)
			l, err := c.Automations().Items(ctx, args[0], f)
			if err != nil {
				return err
			}
			if l.HasMore {
				defer a.notef("%d items in total; next page: add --offset %d", l.Total, f.Offset+len(l.Items))
			}
			return a.print(l, func(w io.Writer) {
				a.printTable(w, "ID STATE ATTEMPT TITLE LAST UPDATED WHY", rows(l.Items, func(v reeve.Item) []string {
					return []string{v.ID, string(v.State), strconv.Itoa(v.Attempt), truncate(v.Title, 40), v.LastRun,
						formatTime(v.UpdatedAt), truncate(v.Message, 50)}
				}))
			})
		})
	c.Flags().StringVar(&state, "status", "", "only items in this state")
	c.Flags().IntVar(&f.Limit, "limit", 0, "maximum number of items")
	c.Flags().IntVar(&f.Offset, "offset", 0, "number of items to skip at the start")
	completeFlagValues(c, "status", reeve.ItemStates())
	return c
}
