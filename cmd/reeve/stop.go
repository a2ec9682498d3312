package main

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"reeve"
	"reeve/api"
	"reeve/client"
)

func stopCommand(a *app) *cobra.Command {
	var s api.StopRequest
	c := &cobra.Command{
		Use: "stop", Short: "Turn the kill switch on", Args: cobra.NoArgs,
		Long: "Stops one agent, or everything in the workspace: nothing new starts, and calls that would change " +
			"something are refused at once.",
		Example: "  reeve stop --reason \"wrong prices\"\n  reeve stop --agent clerk",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.with(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				if err := c.Control().Stop(ctx, s); err != nil {
					return err
				}
				return a.done("stopped %s", whom(c, s))
			})
		},
	}
	c.Flags().StringVar(&s.Agent, "agent", "", "one agent only")
	c.Flags().StringVar(&s.Reason, "reason", "", "why; shown with every refusal")
	return c
}

func resumeCommand(a *app) *cobra.Command {
	var r api.ResumeRequest
	c := &cobra.Command{
		Use: "resume", Short: "Let a held server go on, or turn the kill switch off", Args: cobra.NoArgs,
		Long: "A server that was restored from a backup is held: this lets it go on, with all that reeve held lists, " +
			"or without what you skip.\n" +
			"Calls that were under way when the backup was made become unknown, and wait in reeve inbox for your " +
			"word whether they happened.\n" +
			"Of a server that is not held, this turns the kill switch off, for one agent or for everything in the " +
			"workspace.",
		Example: "  reeve resume\n  reeve resume --skip-all\n  reeve resume --skip run_... --skip tmr_...\n  reeve " +
			"resume --agent clerk",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.with(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				was, err := c.Server().Status(ctx)
				if err != nil {
					return err
				}
				if err := c.Control().Resume(ctx, r); err != nil {
					return err
				}
				if was.Hold == nil {
					return a.done("resumed %s", whom(c, api.StopRequest{Agent: r.Agent}))
				}
				if was.Workspace.StoppedAt != nil {
					a.note("the kill switch of workspace %s is still on; turn it off with another reeve resume",
						was.Workspace.ID)
				}
				return a.done("the server goes on; reeve inbox shows what waits for you")
			})
		},
	}
	c.Flags().StringVar(&r.Agent, "agent", "", "one agent only")
	c.Flags().StringSliceVar(&r.Skip, "skip", nil,
		"of a held server: a run, wake or overdue schedule that does not go on")
	c.Flags().BoolVar(&r.SkipAll, "skip-all", false, "of a held server: no run, wake or overdue firing goes on")
	return c
}

func whom(c *client.Client, s api.StopRequest) string {
	if s.Agent != "" {
		return "agent " + s.Agent
	}
	return "everything in workspace " + c.Workspace()
}

// await waits for an operation. Where the kill switch keeps it from running it says so, and how to turn it off:
// otherwise nobody would know what is waited for.
func (a *app) await(ctx context.Context, c *client.Client, op reeve.Operation) (reeve.Operation, error) {
	if op.State.Final() || op.State == reeve.Unknown {
		return op, nil
	}
	if s, err := c.Server().Status(ctx); err == nil && s.Hold != nil {
		a.note("the server is held; it runs after: reeve resume")
	}
	if list, err := c.Workspaces().List(ctx); err == nil && slices.ContainsFunc(list.Workspaces,
		func(w reeve.Workspace) bool { return w.ID == c.Workspace() && w.StoppedAt != nil }) {
		a.note("the kill switch is on; it runs after: reeve resume")
	}
	if agent, err := c.Agents().Get(ctx, op.AgentID); err == nil && agent.StoppedAt != nil {
		a.note("the agent's kill switch is on; it runs after: reeve resume --agent %s", agent.Name)
	}
	return c.Operations().Wait(ctx, op.ID)
}
