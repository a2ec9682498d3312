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
		Short: "See what was changed, settle what is unknown, take things back", Args: cobra.NoArgs, RunE: list.RunE,
		Long: "An operation is the durable record of a call that changes something. One whose outcome nobody can " +
			"tell waits for a person's word.",
		Example: `  reeve operations --state unknown
  reeve operations resolve op_... happened
  reeve operations undo op_...`,
	}
	c.Flags().AddFlagSet(list.Flags())
	c.AddCommand(list, operationsGet(a), operationsResolve(a), operationsUndo(a))
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
			return a.with(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				l, err := c.Operations().List(ctx, f)
				if err != nil {
					return err
				}
				defer a.more(l.Next)
				return a.print(l, func(w io.Writer) { a.operationTable(w, l.Operations) })
			})
		},
	}
	c.Flags().StringVar(&f.Agent, "agent", "", "of one agent only")
	c.Flags().StringVar(&state, "state", "", "in one state only")
	fixed(c, "state", reeve.States())
	paged(c, &f.Page)
	return c
}

func (a *app) operationTable(w io.Writer, ops []reeve.Operation) {
	a.table(w, "ID STATE TOOL EFFECT TRIES CREATED MESSAGE", rows(ops, func(o reeve.Operation) []string {
		return []string{o.ID, string(o.State), o.Tool, string(o.Effect), strconv.Itoa(o.Tries), when(o.CreatedAt),
			cut(o.Message, 50)}
	}))
}

func (a *app) printOperation(o reeve.Operation) error {
	return a.print(o, func(w io.Writer) {
		undo := ""
		if o.Undo != nil {
			undo = "reeve operations undo " + o.ID + "\n(" + o.Undo.Tool + " " + string(o.Undo.Args) + ")"
		}
		details(w, "id", o.ID, "state", string(o.State), "tool", o.Tool, "effect", string(o.Effect), "agent", o.AgentID,
			"call", o.CallID,
			"result", o.ResultID, "thread", o.ThreadID, "code", string(o.Code), "message", o.Message, "tries",
			strconv.Itoa(o.Tries),
			"next attempt", whenSet(o.NextAttemptAt), "resolution", string(o.Resolution), "resolved by", o.ResolvedBy,
			"spent", amount(o.Spent),
			"undo", undo, "created", when(o.CreatedAt), "updated", when(o.UpdatedAt))
		if o.State == reeve.Unknown {
			a.note("say what you find: reeve operations resolve %s happened|retry|skip", o.ID)
		}
	})
}

func operationsGet(a *app) *cobra.Command {
	var wait bool
	c := &cobra.Command{
		Use: "get OPERATION", Short: "Show an operation", Args: cobra.ExactArgs(1),
		Example: "  reeve operations get op_... --wait",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				o, err := c.Operations().Get(ctx, args[0])
				if err == nil && wait {
					o, err = a.await(ctx, c, o)
				}
				if err != nil {
					return err
				}
				return a.printOperation(o)
			})
		},
	}
	c.Flags().BoolVar(&wait, "wait", false, "wait until it is done or its outcome is unknown")
	return c
}

func operationsResolve(a *app) *cobra.Command {
	resolutions := []string{string(reeve.Happened), string(reeve.RunAgain), string(reeve.SkipIt)}
	return &cobra.Command{
		Use: "resolve OPERATION happened|retry|skip", Short: "Say what became of an operation of unknown outcome",
		Args: cobra.ExactArgs(2),
		Long: `Settles an operation whose outcome nobody can tell. Look at the far side first.

  happened  it happened: record it
  retry     it did not happen: run it again
  skip      leave it`,
		Example:           "  reeve operations resolve op_... happened",
		ValidArgsFunction: a.complete(unknownOperations, words(resolutions...)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(resolutions, args[1]) {
				return usagef("%q is not an answer; give happened, retry or skip", args[1])
			}
			return a.with(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				o, err := c.Operations().
					Resolve(ctx, args[0], reeve.ResolveRequest{Resolution: reeve.Resolution(args[1])})
				if err != nil {
					return err
				}
				return a.printOperation(o)
			})
		},
	}
}

func operationsUndo(a *app) *cobra.Command {
	var wait bool
	c := &cobra.Command{
		Use: "undo OPERATION", Short: "Take an operation back, where its tool allows", Args: cobra.ExactArgs(1),
		Long: "Makes the call that takes an operation back. It passes the gate like any other, so a person may " +
			"have to approve it.",
		Example: "  reeve operations undo op_...",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				res, err := c.Operations().Undo(ctx, args[0])
				if err != nil {
					return err
				}
				return a.finish(ctx, c, res, wait)
			})
		},
	}
	c.Flags().BoolVar(&wait, "wait", false, "wait until it is done, for a person's approval too")
	return c
}
