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
		Use: "stop", Short: "Stop an agent or the whole workspace (kill switch)", Args: cobra.NoArgs,
		Long: `Turns on the kill switch of an agent, or of the whole workspace: no run starts, and calls that would
change something are refused. "reeve resume" turns it off.`,
		Example: "  reeve stop --reason \"wrong prices\"\n  reeve stop --agent clerk",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				if err := c.Control().Stop(ctx, s); err != nil {
					return err
				}
				return a.printDone("stopped %s", stopTarget(c, s))
			})
		},
	}
	c.Flags().StringVar(&s.Agent, "agent", "", "only this agent")
	c.Flags().StringVar(&s.Reason, "reason", "", "reason, shown with every refused call")
	return c
}

func resumeCommand(a *app) *cobra.Command {
	var r api.ResumeRequest
	c := &cobra.Command{
		Use: "resume", Short: "Release a held server, or turn the kill switch off", Args: cobra.NoArgs,
		Long: `If the server is held, as after a restore, this command releases it. The server continues with the
work that "reeve held" lists, except the work you skip. Calls that were running when the backup was
made get an unknown outcome; resolve them in "reeve inbox".

If the server is not held, this command turns off the kill switch of an agent, or of the whole
workspace.`,
		Example: "  reeve resume\n  reeve resume --skip-all\n  reeve resume --skip run_... --skip sch_...\n  reeve " +
			"resume --agent clerk",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				before, err := c.Server().Status(ctx)
				if err != nil {
					return err
				}
				if err := c.Control().Resume(ctx, r); err != nil {
					return err
				}
				if before.Hold == nil {
					return a.printDone("resumed %s", stopTarget(c, api.StopRequest{Agent: r.Agent}))
				}
				if before.Workspace.StoppedAt != nil {
					a.notef("the kill switch of workspace %s is still on; to turn it off, run reeve resume again",
						before.Workspace.ID)
				}
				return a.printDone("resumed the server; see reeve inbox for work that waits for you")
			})
		},
	}
	c.Flags().StringVar(&r.Agent, "agent", "", "only this agent")
	c.Flags().StringSliceVar(&r.Skip, "skip", nil,
		"on a held server, skip the run, wake or overdue schedule with this id; can be repeated")
	c.Flags().BoolVar(&r.SkipAll, "skip-all", false, "on a held server, skip all runs, wakes and overdue firings")
	return c
}

// stopTarget describes what a stop or resume applies to.
func stopTarget(c *client.Client, s api.StopRequest) string {
	if s.Agent != "" {
		return "agent " + s.Agent
	}
	return "everything in workspace " + c.Workspace()
}

// waitForOperation waits for an operation. If a hold or a kill switch keeps the operation from running, it first
// prints how to turn that off.
func (a *app) waitForOperation(ctx context.Context, c *client.Client, op reeve.Operation) (reeve.Operation, error) {
	if op.State.IsFinal() || op.State == reeve.Unknown {
		return op, nil
	}
	if s, err := c.Server().Status(ctx); err == nil && s.Hold != nil {
		a.notef("the server is held; the call runs after: reeve resume")
	}
	if list, err := c.Workspaces().List(ctx); err == nil && slices.ContainsFunc(list.Workspaces,
		func(w reeve.Workspace) bool { return w.ID == c.Workspace() && w.StoppedAt != nil }) {
		a.notef("the kill switch is on; the call runs after: reeve resume")
	}
	if agent, err := c.Agents().Get(ctx, op.AgentID); err == nil && agent.StoppedAt != nil {
		a.notef("the agent's kill switch is on; the call runs after: reeve resume --agent %s", agent.Name)
	}
	return c.Operations().Wait(ctx, op.ID)
}
