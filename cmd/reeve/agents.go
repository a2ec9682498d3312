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
		Use: "agents", Short: "Manage agents and their tools", Args: cobra.NoArgs, RunE: list.RunE,
		Long: `An agent makes calls to tools. Its kind selects its capability profile; it also has its own tools,
journal categories, policy and settings. AGENT is the id or name of an agent.`,
		Example: `  reeve agents
  reeve agents create clerk --policy file_write=ask
  reeve agents attach clerk file_write
  reeve agents tools clerk`,
	}
	c.Flags().AddFlagSet(list.Flags())
	c.AddCommand(list, agentsGet(a), agentsCreate(a), agentsUpdate(a), agentsDelete(a), agentsTools(a), agentsAttach(a),
		agentsDetach(a), agentsState(a), agentsRuntime(a), agentsSleep(a))
	return c
}

// addPageFlags adds the flags of a command that lists in pages.
func addPageFlags(c *cobra.Command, p *client.Page) {
	c.Flags().StringVar(&p.Cursor, "cursor", "", "cursor of the next page, printed at the end of a page")
	c.Flags().IntVar(&p.Limit, "limit", 0, "maximum number of results")
}

func agentsList(a *app) *cobra.Command {
	var page client.Page
	c := &cobra.Command{
		Use: "list", Short: "List agents", Args: cobra.NoArgs, Example: "  reeve agents list --limit 20",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				l, err := c.Agents().List(ctx, page)
				if err != nil {
					return err
				}
				defer a.noteNextPage(l.Next)
				return a.print(l, func(w io.Writer) {
					a.printTable(w, "NAME ID KIND LIFECYCLE STOPPED CATEGORIES",
						rows(l.Agents, func(g reeve.Agent) []string {
							return []string{g.Name, g.ID, g.Kind, string(g.Lifecycle), formatTimePtr(g.StoppedAt),
								truncate(strings.Join(g.Categories, ","), 40)}
						}))
				})
			})
		},
	}
	addPageFlags(c, &page)
	return c
}

func (a *app) printAgent(g reeve.Agent) error {
	return a.print(g, func(w io.Writer) {
		printDetails(w, "name", g.Name, "id", g.ID, "kind", g.Kind, "lifecycle", string(g.Lifecycle),
			"mode", string(g.Mode), "throttle", formatThrottle(g), "stopped", formatTimePtr(g.StoppedAt),
			"categories", strings.Join(g.Categories, ", "), "policy", formatPolicy(g.Policy),
			"config", indentJSON(g.Config), "created", formatTime(g.CreatedAt), "updated", formatTime(g.UpdatedAt))
	})
}

func agentsGet(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "show AGENT", Short: "Show an agent", Args: cobra.ExactArgs(1), Example: "  reeve agents show clerk",
		ValidArgsFunction: a.complete(agentNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client.Client) error {
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
		Use: "create NAME", Short: "Create an agent", Args: cobra.ExactArgs(1),
		Example: `  reeve agents create clerk
  reeve agents create auditor --kind auditor --category finance --policy tier:side_effecting=ask`,
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := f.toRequest(cmd)
			if err != nil {
				return err
			}
			if r.Categories != nil && len(*r.Categories) == 0 {
				return usagef("--category needs the name or id of a category; omit it for an agent without categories")
			}
			r.Name = &args[0]
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				g, err := c.Agents().Create(ctx, r)
				if err != nil {
					return err
				}
				return a.printAgent(g)
			})
		},
	}
	f.register(c, reeve.AgentCreated, reeve.AgentActive, reeve.AgentDormant)
	return c
}

func agentsUpdate(a *app) *cobra.Command {
	var f agentFlags
	var name string
	c := &cobra.Command{
		Use: "update AGENT", Short: "Change an agent", Args: cobra.ExactArgs(1),
		Long: `Changes the fields whose flags are set. --category and --policy replace the whole list; --category ''
removes all categories, and --policy none removes the policy.`,
		Example: `  reeve agents update clerk --lifecycle dormant
  reeve agents update clerk --policy file_write=allow --policy tier:privileged=deny`,
		ValidArgsFunction: a.complete(agentNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := f.toRequest(cmd)
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("name") {
				r.Name = &name
			}
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				g, err := c.Agents().Update(ctx, args[0], r)
				if err != nil {
					return err
				}
				return a.printAgent(g)
			})
		},
	}
	f.register(c, reeve.AgentCreated, reeve.AgentActive, reeve.AgentDormant, reeve.AgentDestroyed)
	c.Flags().StringVar(&name, "name", "", "new name")
	return c
}

func agentsDelete(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "delete AGENT", Short: "Delete an agent", Args: cobra.ExactArgs(1), Example: "  reeve agents delete clerk",
		ValidArgsFunction: a.complete(agentNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				if err := c.Agents().Delete(ctx, args[0]); err != nil {
					return err
				}
				return a.printDone("deleted agent %s", args[0])
			})
		},
	}
}

// formatThrottle formats an agent's throttle, or returns "" if it has none.
func formatThrottle(g reeve.Agent) string {
	if g.ThrottleMS == 0 {
		return ""
	}
	return (time.Duration(g.ThrottleMS) * time.Millisecond).String()
}
