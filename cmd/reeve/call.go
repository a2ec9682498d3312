package main

import (
	"context"

	"github.com/spf13/cobra"

	"reeve"
	"reeve/api"
	"reeve/client"
)

// callFlags describe a call on the command line.
type callFlags struct {
	api.CallRequest
	wait bool
}

func (f *callFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.Session, "session", "",
		"names the thread; a session that several people name is shared (default: your own default session)")
	c.Flags().StringVar(&f.Run, "run", "", "names the run the call belongs to")
	c.Flags().StringSliceVar(&f.Tools, "tools", nil, "an explicit list of tools for this call, a,b,c")
	c.Flags().BoolVar(&f.PreviewOnly, "preview", false, "show what would change, change nothing")
	c.Flags().StringVar(&f.Base, "base", "",
		"apply only if what a preview with this base was about is unchanged (pass the same arguments)")
	c.Flags().StringVar(&f.Reason, "reason", "", "why, for the person who approves")
	c.Flags().StringVar(&f.Key, "key", "", "the Idempotency-Key: the same call with the same key happens once")
}

func callCommand(a *app) *cobra.Command {
	var f callFlags
	c := &cobra.Command{
		Use: "call AGENT TOOL [JSON|@FILE|-]", Short: "Have an agent call a tool", Args: cobra.RangeArgs(2, 3),
		Long: `Has an agent call a tool and prints what the tool said. The arguments are JSON, @FILE, or - for the standard input; none means {}.

A call that a person must approve is kept, also when the server stops: the command says how to approve it, and exits with 3. With
--wait it waits for that and prints the result. One that the agent may only propose becomes an item of a change set (reeve proposals), and exits
with 3 too.`,
		Example: `  reeve call clerk file_list '{"path":"/"}'
  reeve call clerk file_write @note.json --preview
  reeve call clerk file_delete '{"path":"/old.txt"}' --reason "month is closed" --wait`,
		ValidArgsFunction: a.complete(agentNames, itsToolNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			f.Tool = args[1]
			if f.Args, err = a.arguments(args[2:]); err != nil {
				return err
			}
			return a.with(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				res, err := c.Calls().Call(ctx, args[0], f.CallRequest)
				if err != nil {
					return err
				}
				return a.finish(ctx, c, res, f.wait)
			})
		},
	}
	f.add(c)
	c.Flags().BoolVar(&f.wait, "wait", false, "wait until it is done, for a person's approval too")
	return c
}

// finish waits for a result if asked to, and prints it.
func (a *app) finish(ctx context.Context, c *client.Client, res reeve.Result, wait bool) error {
	if wait && res.OperationID != "" && pending(res) && res.State != reeve.Unknown {
		if res.ApprovalID != "" {
			a.note("waits for a person: reeve approvals approve %s", res.ApprovalID)
		}
		var err error
		if res, err = a.follow(ctx, c, res.OperationID); err != nil {
			return err
		}
	}
	return a.printResult(res)
}

// follow waits for an operation and gives its result.
func (a *app) follow(ctx context.Context, c *client.Client, operation string) (reeve.Result, error) {
	op, err := c.Operations().Get(ctx, operation)
	if err == nil {
		op, err = a.await(ctx, c, op)
	}
	if err != nil {
		return reeve.Result{}, err
	}
	return c.Operations().Result(ctx, op)
}

// pending tells whether a call's result is still to come.
func pending(res reeve.Result) bool {
	return res.State != "" && !res.State.Final() && res.Code != reeve.Skipped
}
