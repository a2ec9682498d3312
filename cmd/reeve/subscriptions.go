package main

import (
	"cmp"
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
	list := a.serverCommand("list AGENT", "List the subscriptions of an agent", "subscriptions list clerk",
		cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			l, err := c.Subscriptions().List(ctx, args[0])
			if err != nil {
				return err
			}
			return a.print(l, func(w io.Writer) {
				const columns = "ID WATCHES CREATED FIRES WHEN"
				a.printTable(w, columns, rows(l.Subscriptions, func(s api.ListedSubscription) []string {
					return []string{s.ID, formatToken(s.Token), formatTime(s.CreatedAt), formatReach(s.Reach),
						truncate(s.Predicate, 80)}
				}))
			})
		})
	remove := a.serverCommand("delete SUBSCRIPTION", "Delete a subscription", "subscriptions delete sub_...",
		cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			if err := c.Subscriptions().Delete(ctx, args[0]); err != nil {
				return err
			}
			return a.printDone("removed subscription %s", args[0])
		})
	c := groupCommand("subscriptions AGENT", "Manage the changes that wake an agent",
		`A subscription wakes an agent when an entity changes, unless the agent's own work caused the change.
CLASS:NAME selects the entities: key:TASK selects all tasks, id:task_... one entity, and
subtype:task.done one kind of change. --when adds a condition, a CEL expression over entity, which is
the entity after the change; docs/wakes.md lists its fields.`, list, subscriptionsAdd(a), subscriptionsTry(a),
		remove)
	c.Example = `  reeve subscriptions clerk
  reeve subscriptions create clerk key:TASK --when 'entity.priority == "high"'
  reeve subscriptions delete sub_...`
	list.ValidArgsFunction, c.ValidArgsFunction = a.complete(agentNames), a.complete(agentNames)
	return c
}

// formatReach says whether a subscription or schedule can wake its agent.
func formatReach(r api.Reach) string {
	if r.CanFire {
		return "yes"
	}
	return "no: " + r.WhyNot
}

// formatToken formats a subscription token as CLASS:NAME.
func formatToken(t reeve.Token) string { return string(t.Class) + ":" + t.Name }

func subscriptionsTry(a *app) *cobra.Command {
	var r api.SubscriptionRequest
	c := a.serverCommand("test AGENT CLASS:NAME", "Test a condition on past changes; nothing is subscribed",
		`subscriptions test clerk key:TASK --when 'entity.status == "done"'`, cobra.ExactArgs(2),
		func(ctx context.Context, c *client.Client, args []string) error {
			l, err := c.Subscriptions().Try(ctx, args[0], r)
			if err != nil {
				return err
			}
			return a.print(l, func(w io.Writer) {
				const columns = "WAKES AT CHANGE ENTITIES WHY"
				a.printTable(w, columns, rows(l.Trials, func(t reeve.PredicateTrial) []string {
					var titles []string
					for _, e := range t.Change.Entities {
						titles = append(titles, cmp.Or(e.Title, e.ID))
					}
					return []string{formatYes(t.Holds), formatTime(t.Change.CreatedAt), t.Change.ID,
						truncate(strings.Join(titles, ", "), 40), t.Why}
				}))
			})
		})
	c.PreRunE = func(_ *cobra.Command, args []string) error { return parseToken(&r, args[1]) }
	c.Flags().StringVar(&r.Predicate, "when", "", "CEL condition on the changed entity")
	c.ValidArgsFunction = a.complete(agentNames, fixedWords("key:", "subtype:", "id:"))
	return c
}

func formatYes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// parseToken sets the class and name of a request from CLASS:NAME.
func parseToken(r *api.SubscriptionRequest, text string) error {
	class, name, _ := strings.Cut(text, ":")
	if r.Class, r.Name = reeve.TokenClass(class), name; name == "" || !slices.Contains(tokenClasses(), r.Class) {
		return usagef("invalid subscription %q; use CLASS:NAME with the class key, subtype or id, such as key:TASK",
			text)
	}
	return nil
}

func subscriptionsAdd(a *app) *cobra.Command {
	var r api.SubscriptionRequest
	c := a.serverCommand("create AGENT CLASS:NAME", "Subscribe an agent to changes",
		`subscriptions create clerk key:TASK --when 'entity.category_id == "cat_gym"'`, cobra.ExactArgs(2),
		func(ctx context.Context, c *client.Client, args []string) error {
			s, err := c.Subscriptions().Create(ctx, args[0], r)
			if err != nil {
				return err
			}
			return a.print(s, func(w io.Writer) {
				printDetails(w, "id", s.ID, "agent", s.AgentID, "watches", formatToken(s.Token),
					"when", s.Predicate, "created", formatTime(s.CreatedAt))
			})
		})
	c.PreRunE = func(_ *cobra.Command, args []string) error { return parseToken(&r, args[1]) }
	c.Flags().StringVar(&r.Predicate, "when", "",
		"CEL condition on the changed entity, such as 'entity.priority == \"high\"'")
	c.ValidArgsFunction = a.complete(agentNames, fixedWords("key:", "subtype:", "id:"))
	return c
}
