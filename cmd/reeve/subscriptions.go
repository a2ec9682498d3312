package main

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"reeve"
	"reeve/api"
	"reeve/client"
)

func tokenClasses() []reeve.TokenClass {
	return []reeve.TokenClass{reeve.SemanticKey, reeve.Subtype, reeve.EntityID}
}

func subscriptionsCommand(a *app) *cobra.Command {
	list := a.task("list AGENT", "List what an agent watches", "subscriptions list clerk", cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			l, err := c.Subscriptions().List(ctx, args[0])
			if err != nil {
				return err
			}
			return a.print(l, func(w io.Writer) {
				a.table(w, "ID WATCHES CREATED WHEN", rows(l.Subscriptions, func(s reeve.Subscription) []string {
					return []string{s.ID, watched(s.Token), when(s.CreatedAt), cut(s.Predicate, 80)}
				}))
			})
		})
	remove := a.task("remove SUBSCRIPTION", "Stop watching", "subscriptions remove sub_...", cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			if err := c.Subscriptions().Delete(ctx, args[0]); err != nil {
				return err
			}
			return a.done("removed subscription %s", args[0])
		})
	c := family("subscriptions AGENT", "See and choose what wakes an agent", `A subscription wakes an agent when something it watches changes, unless its own work led to the change. CLASS:NAME is what it
watches: key:TASK is any task, id:task_... is one thing, subtype:... is a kind of it. --when narrows it with a CEL expression
over entity, the changed thing as it then is; docs/wakes.md lists its fields.`, list, subscriptionsAdd(a), remove)
	c.Example = `  reeve subscriptions clerk
  reeve subscriptions add clerk key:TASK --when 'entity.priority == "high"'
  reeve subscriptions remove sub_...`
	list.ValidArgsFunction, c.ValidArgsFunction = a.complete(agentNames), a.complete(agentNames)
	return c
}

func watched(t reeve.Token) string { return string(t.Class) + ":" + t.Name }

func subscriptionsAdd(a *app) *cobra.Command {
	var r api.SubscriptionRequest
	c := a.task("add AGENT CLASS:NAME", "Let an agent watch something",
		`subscriptions add clerk key:TASK --when 'entity.category_id == "cat_gym"'`, cobra.ExactArgs(2),
		func(ctx context.Context, c *client.Client, args []string) error {
			s, err := c.Subscriptions().Create(ctx, args[0], r)
			if err != nil {
				return err
			}
			return a.print(s, func(w io.Writer) {
				details(w, "id", s.ID, "agent", s.AgentID, "watches", watched(s.Token), "when", s.Predicate, "created",
					when(s.CreatedAt))
			})
		})
	c.PreRunE = func(_ *cobra.Command, args []string) error {
		class, name, _ := strings.Cut(args[1], ":")
		if r.Class, r.Name = reeve.TokenClass(class), name; name == "" || !slices.Contains(tokenClasses(), r.Class) {
			return usagef("what it watches is written CLASS:NAME, with the class key, subtype or id, such as "+
				"key:TASK; not %q", args[1])
		}
		return nil
	}
	c.Flags().StringVar(&r.Predicate, "when", "", "only when this CEL expression holds for the changed entity")
	c.ValidArgsFunction = a.complete(agentNames, words("key:", "subtype:", "id:"))
	return c
}
