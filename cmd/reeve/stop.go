package main

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"reeve"
	"reeve/client"
)

func stopCommand(a *app) *cobra.Command {
	var s reeve.StopRequest
	c := &cobra.Command{
		Use: "stop", Short: "Turn the kill switch on", Args: cobra.NoArgs,
		Long:    "Stops one agent, or everything in the workspace: nothing new starts, and calls that would change something are refused at once.",
		Example: "  reeve stop --reason \"wrong prices\"\n  reeve stop --agent clerk",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.with(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				if err := c.Stop(ctx, s); err != nil {
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
	var s reeve.StopRequest
	c := &cobra.Command{
		Use: "resume", Short: "Turn the kill switch off", Args: cobra.NoArgs, Example: "  reeve resume\n  reeve resume --agent clerk",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.with(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				if err := c.Resume(ctx, s); err != nil {
					return err
				}
				return a.done("resumed %s", whom(c, s))
			})
		},
	}
	c.Flags().StringVar(&s.Agent, "agent", "", "one agent only")
	return c
}

func whom(c *client.Client, s reeve.StopRequest) string {
	if s.Agent != "" {
		return "agent " + s.Agent
	}
	return "everything in workspace " + c.Workspace()
}

// await waits for an operation. Where the kill switch keeps it from running it says so, and how to turn it off: otherwise nobody would know what is waited for.
func (a *app) await(ctx context.Context, c *client.Client, op reeve.Operation) (reeve.Operation, error) {
	if op.State.Final() || op.State == reeve.Unknown {
		return op, nil
	}
	if list, err := c.Workspaces(ctx); err == nil && slices.ContainsFunc(list.Workspaces, func(w reeve.Workspace) bool { return w.ID == c.Workspace() && w.StoppedAt != nil }) {
		a.note("the kill switch is on; it runs after: reeve resume")
	}
	if agent, err := c.Agent(ctx, op.AgentID); err == nil && agent.StoppedAt != nil {
		a.note("the agent's kill switch is on; it runs after: reeve resume --agent %s", agent.Name)
	}
	return c.Wait(ctx, op.ID)
}
