package main

import (
	"context"
	"io"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"reeve"
	"reeve/client"
)

func operationsCommand(a *app) *cobra.Command {
	list := operationsList(a)
	c := &cobra.Command{
		Use: "operations", Aliases: []string{"ops"},
		Short: "List, resolve and undo operations", Args: cobra.NoArgs, RunE: list.RunE,
		Long: `An operation is the durable record of a call that changes something. If its outcome is unknown, for
example because the server was killed during the call, a person resolves it.`,
		Example: `  reeve operations --state unknown
  reeve operations resolve op_... happened
  reeve operations undo op_...`,
	}
	c.Flags().AddFlagSet(list.Flags())
	c.AddCommand(list, operationsGet(a), operationsLookUp(a), operationsResolve(a), operationsUndo(a))
	return c
}

func operationsList(a *app) *cobra.Command {
	var f client.OperationFilter
	var state string
	c := &cobra.Command{
		Use: "list", Short: "List operations, newest first", Args: cobra.NoArgs,
		Example: "  reeve operations list --agent clerk --state failed",
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.State = reeve.State(state)
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				l, err := c.Operations().List(ctx, f)
				if err != nil {
					return err
				}
				defer a.noteNextPage(l.Next)
				return a.print(l, func(w io.Writer) { a.printOperationTable(w, l.Operations) })
			})
		},
	}
	c.Flags().StringVar(&f.Agent, "agent", "", "only operations of this agent")
	c.Flags().StringVar(&f.Run, "run", "", "only operations of this run")
	c.Flags().StringVar(&state, "state", "", "only operations in this state")
	completeFlagValues(c, "state", reeve.States())
	addPageFlags(c, &f.Page)
	return c
}

func (a *app) printOperationTable(w io.Writer, ops []reeve.Operation) {
	a.printTable(w, "ID STATE TOOL EFFECT TRIES CREATED MESSAGE", rows(ops, func(o reeve.Operation) []string {
		return []string{o.ID, string(o.State), o.Tool, string(o.Effect), strconv.Itoa(o.Attempts),
			formatTime(o.CreatedAt),
			truncate(o.Message, 50)}
	}))
}

func (a *app) printOperation(o reeve.Operation) error {
	return a.print(o, func(w io.Writer) {
		undo := ""
		if o.Undo != nil {
			undo = "reeve operations undo " + o.ID + "\n(" + o.Undo.Tool + " " + string(o.Undo.Args) + ")"
		}
		printDetails(w, "id", o.ID, "state", string(o.State), "tool", o.Tool, "effect", string(o.Effect),
			"agent", o.AgentID, "call", o.CallID, "result", o.ResultID, "thread", o.ThreadID,
			"code", string(o.Code), "message", o.Message, "attempts", strconv.Itoa(o.Attempts),
			"next attempt", formatTimePtr(o.NextAttemptAt), "resolution", string(o.Resolution),
			"resolved by", o.ResolvedBy, "spent", formatAmount(o.Spent), "undo", undo,
			"created", formatTime(o.CreatedAt), "updated", formatTime(o.UpdatedAt))
		if o.State == reeve.Unknown {
			a.notef("check whether the change happened, then: reeve operations resolve %s happened|retry|skip", o.ID)
		}
	})
}

func operationsGet(a *app) *cobra.Command {
	var wait bool
	c := &cobra.Command{
		Use: "show OPERATION", Short: "Show an operation", Args: cobra.ExactArgs(1),
		Example: "  reeve operations show op_... --wait",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				o, err := c.Operations().Get(ctx, args[0])
				if err == nil && wait {
					o, err = a.waitForOperation(ctx, c, o)
				}
				if err != nil {
					return err
				}
				return a.printOperation(o)
			})
		},
	}
	c.Flags().BoolVar(&wait, "wait", false, "wait until the operation is finished or its outcome is unknown")
	return c
}

func operationsResolve(a *app) *cobra.Command {
	resolutions := []string{string(reeve.ResolveHappened), string(reeve.ResolveRetry), string(reeve.ResolveSkip)}
	return &cobra.Command{
		Use: "resolve OPERATION happened|retry|skip", Short: "Resolve an operation with an unknown outcome",
		Args: cobra.ExactArgs(2),
		Long: `Resolves an operation whose outcome is unknown. First check in the target system whether the change
happened.

  happened  the change happened: record it as done
  retry     the change did not happen: run the call again
  skip      do not run the call again`,
		Example:           "  reeve operations resolve op_... happened",
		ValidArgsFunction: a.complete(unknownOperations, fixedWords(resolutions...)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(resolutions, args[1]) {
				return usagef("invalid resolution %q; use happened, retry or skip", args[1])
			}
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				r := reeve.ResolveRequest{Resolution: reeve.Resolution(args[1])}
				o, err := c.Operations().Resolve(ctx, args[0], r)
				if err != nil {
					return err
				}
				return a.printOperation(o)
			})
		},
	}
}

func operationsLookUp(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "lookup OPERATION", Short: "Ask the tool whether an operation of unknown outcome took effect",
		Args:    cobra.ExactArgs(1),
		Long:    "Sends nothing again and changes nothing. Only tools of the class verifiable can answer.",
		Example: "  reeve operations lookup op_...",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				r, err := c.Operations().LookUp(ctx, args[0])
				if err != nil {
					return err
				}
				return a.print(r, func(w io.Writer) { printDetails(w, "outcome", string(r.Outcome), "found", r.Found) })
			})
		},
	}
}

func operationsUndo(a *app) *cobra.Command {
	var wait bool
	c := &cobra.Command{
		Use: "undo OPERATION", Short: "Undo an operation, if its tool supports it", Args: cobra.ExactArgs(1),
		Long: `Makes the call that reverts an operation. The gate checks this call like any other, so it may need
approval.`,
		Example: "  reeve operations undo op_...",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				res, err := c.Operations().Undo(ctx, args[0])
				if err != nil {
					return err
				}
				return a.waitAndPrint(ctx, c, res, wait)
			})
		},
	}
	c.Flags().BoolVar(&wait, "wait", false, "wait until the call is finished, including for an approval")
	return c
}
