package main

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reeve"
	"reeve/client"
)

func agentsCommand(a *app) *cobra.Command {
	list := agentsList(a)
	c := &cobra.Command{
		Use: "agents", Short: "See and manage agents and their tools", Args: cobra.NoArgs, RunE: list.RunE,
		Long: "An agent is who acts: it has a kind, which says what it may do, its own tools, categories and policy. " +
			"AGENT is an id or a name.",
		Example: `  reeve agents
  reeve agents create clerk --policy file_write=ask
  reeve agents attach clerk file_write
  reeve agents tools clerk`,
	}
	c.Flags().AddFlagSet(list.Flags())
	c.AddCommand(list, agentsGet(a), agentsCreate(a), agentsUpdate(a), agentsDelete(a), agentsTools(a), agentsAttach(a),
		agentsDetach(a), agentsState(a), agentsRuntime(a))
	return c
}

// paged adds the flags of a list that comes in pages.
func paged(c *cobra.Command, p *client.Page) {
	c.Flags().StringVar(&p.Cursor, "cursor", "", "go on after a page, with the cursor it ended with")
	c.Flags().IntVar(&p.Limit, "limit", 0, "how many at most")
}

func agentsList(a *app) *cobra.Command {
	var page client.Page
	c := &cobra.Command{
		Use: "list", Short: "List agents", Args: cobra.NoArgs, Example: "  reeve agents list --limit 20",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.with(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				l, err := c.Agents().List(ctx, page)
				if err != nil {
					return err
				}
				defer a.more(l.Next)
				return a.print(l, func(w io.Writer) {
					a.table(w, "NAME ID KIND LIFECYCLE STOPPED CATEGORIES",
						rows(l.Agents, func(g reeve.Agent) []string {
							return []string{g.Name, g.ID, g.Kind, string(g.Lifecycle), whenSet(g.StoppedAt),
								cut(strings.Join(g.Categories, ","), 40)}
						}))
				})
			})
		},
	}
	paged(c, &page)
	return c
}

func (a *app) printAgent(g reeve.Agent) error {
	return a.print(g, func(w io.Writer) {
		details(w, "name", g.Name, "id", g.ID, "kind", g.Kind, "lifecycle", string(g.Lifecycle), "mode", string(g.Mode),
			"throttle", throttle(g), "stopped", whenSet(g.StoppedAt),
			"categories", strings.Join(g.Categories, ", "), "policy", policyLines(g.Policy), "config", pretty(g.Config),
			"created", when(g.CreatedAt), "updated", when(g.UpdatedAt))
	})
}

func agentsGet(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "get AGENT", Short: "Show an agent", Args: cobra.ExactArgs(1), Example: "  reeve agents get clerk",
		ValidArgsFunction: a.complete(agentNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				g, err := c.Agents().Get(ctx, args[0])
				if err != nil {
					return err
				}
				return a.printAgent(g)
			})
		},
	}
}

func agentsCreate(a *app) *cobra.Command {
	var f agentFlags
	c := &cobra.Command{
		Use: "create NAME", Short: "Make an agent", Args: cobra.ExactArgs(1),
		Example: `  reeve agents create clerk
  reeve agents create auditor --kind auditor --category finance --policy tier:side_effecting=ask`,
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := f.request(cmd)
			if err != nil {
				return err
			}
			if r.Categories != nil && len(*r.Categories) == 0 {
				return usagef("--category needs the name or id of a category; leave it out for an agent that may " +
					"touch none")
			}
			r.Name = &args[0]
			return a.with(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				g, err := c.Agents().Create(ctx, r)
				if err != nil {
					return err
				}
				return a.printAgent(g)
			})
		},
	}
	f.add(c, reeve.AgentCreated, reeve.AgentActive, reeve.AgentDormant)
	return c
}

func agentsUpdate(a *app) *cobra.Command {
	var f agentFlags
	var name string
	c := &cobra.Command{
		Use: "update AGENT", Short: "Change an agent", Args: cobra.ExactArgs(1),
		Long: "Changes what the flags name and leaves the rest. --category and --policy replace the whole list; " +
			"--category '' empties it.",
		Example: `  reeve agents update clerk --lifecycle dormant
  reeve agents update clerk --policy file_write=allow --policy tier:privileged=deny`,
		ValidArgsFunction: a.complete(agentNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := f.request(cmd)
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("name") {
				r.Name = &name
			}
			return a.with(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				g, err := c.Agents().Update(ctx, args[0], r)
				if err != nil {
					return err
				}
				return a.printAgent(g)
			})
		},
	}
	f.add(c, reeve.AgentCreated, reeve.AgentActive, reeve.AgentDormant, reeve.AgentDestroyed)
	c.Flags().StringVar(&name, "name", "", "a new name")
	return c
}

func agentsDelete(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "delete AGENT", Short: "Remove an agent", Args: cobra.ExactArgs(1), Example: "  reeve agents delete clerk",
		ValidArgsFunction: a.complete(agentNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				if err := c.Agents().Delete(ctx, args[0]); err != nil {
					return err
				}
				return a.done("deleted agent %s", args[0])
			})
		},
	}
}

// throttle is how long after a run an agent rests, or nothing.
func throttle(g reeve.Agent) string {
	if g.ThrottleMS == 0 {
		return ""
	}
	return (time.Duration(g.ThrottleMS) * time.Millisecond).String()
}
