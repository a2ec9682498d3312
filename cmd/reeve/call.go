package main

import (
	"context"

	"github.com/spf13/cobra"

	"reeve"
	"reeve/api"
	"reeve/client"
)

// callFlags are the flags that describe a call.
type callFlags struct {
	api.CallRequest
	wait bool
}

func (f *callFlags) register(c *cobra.Command) {
	c.Flags().StringVar(&f.Session, "session", "",
		"session whose thread gets the call; a named session is shared (default: your own session)")
	c.Flags().StringVar(&f.Run, "run", "", "name of the run that the call belongs to")
	c.Flags().StringSliceVar(&f.Tools, "tools", nil, "the only tools allowed for this call, a,b,c")
	c.Flags().BoolVar(&f.PreviewOnly, "preview", false, "show the change without making it")
	c.Flags().StringVar(&f.Base, "base", "",
		"base printed by a preview; the call fails if the target has changed since (use the same arguments)")
	c.Flags().StringVar(&f.Reason, "reason", "", "reason, shown to the person who approves")
	c.Flags().StringVar(&f.Key, "key", "",
		"idempotency key; a repeated call with the same key returns the stored result")
}

func callCommand(a *app) *cobra.Command {
	var f callFlags
	c := &cobra.Command{
		Use: "call AGENT TOOL [JSON|@FILE|-]", Short: "Call a tool as an agent", Args: cobra.RangeArgs(2, 3),
		Long: `Calls a tool as an agent and prints the tool's output. The arguments are a JSON object, @FILE, or -
for standard input; the default is {}.

If a person must approve the call, the server stores it, and the command prints how to approve it and
exits with code 3. With --wait, the command waits for the decision and prints the result. If the agent
may only propose the call, the call becomes a proposal (see reeve proposals), and the exit code is 3
too.`,
		Example: `  reeve call clerk file_list '{"path":"/"}'
  reeve call clerk file_write @note.json --preview
  reeve call clerk file_delete '{"path":"/old.txt"}' --reason "month is closed" --wait`,
		ValidArgsFunction: a.complete(agentNames, attachedToolNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			f.Tool = args[1]
			if f.Args, err = a.readArguments(args[2:]); err != nil {
				return err
			}
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				res, err := c.Calls().Call(ctx, args[0], f.CallRequest)
				if err != nil {
					return err
				}
				return a.waitAndPrint(ctx, c, res, f.wait)
			})
		},
	}
	f.register(c)
	c.Flags().BoolVar(&f.wait, "wait", false, "wait until the call is finished, including for an approval")
	return c
}

// waitAndPrint prints the result of a call. If wait is set, it first waits until the call is finished.
func (a *app) waitAndPrint(ctx context.Context, c *client.Client, res reeve.Result, wait bool) error {
	if wait && res.OperationID != "" && isPending(res) && res.State != reeve.Unknown {
		if res.ApprovalID != "" {
			a.notef("approval required: reeve approvals approve %s", res.ApprovalID)
		}
		var err error
		if res, err = a.waitForResult(ctx, c, res.OperationID); err != nil {
			return err
		}
	}
	return a.printResult(res)
}

// waitForResult waits for an operation and returns its result.
func (a *app) waitForResult(ctx context.Context, c *client.Client, operation string) (reeve.Result, error) {
	op, err := c.Operations().Get(ctx, operation)
	if err == nil {
		op, err = a.waitForOperation(ctx, c, op)
	}
	if err != nil {
		return reeve.Result{}, err
	}
	return c.Operations().Result(ctx, op)
}

// isPending reports whether a call is not finished.
func isPending(res reeve.Result) bool {
	return res.State != "" && !res.State.IsFinal() && res.Code != reeve.Skipped
}
