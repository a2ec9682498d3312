package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"reeve"
	"reeve/client"
)

func approvalsCommand(a *app) *cobra.Command {
	list := approvalsList(a)
	c := &cobra.Command{
		Use: "approvals", Short: "Answer calls that wait for a person", Args: cobra.NoArgs, RunE: list.RunE,
		Long: "An approval is bound to the exact arguments, tool and policy it was asked for. The first answer counts.",
		Example: `  reeve approvals --state pending
  reeve approvals get apr_...
  reeve approvals approve apr_... --wait
  reeve approvals deny apr_... --comment "ask again next week"`,
	}
	c.Flags().AddFlagSet(list.Flags())
	c.AddCommand(list, approvalsGet(a), approvalsApprove(a), approvalsDeny(a))
	return c
}

func approvalsList(a *app) *cobra.Command {
	var f client.ApprovalFilter
	var state string
	c := &cobra.Command{
		Use: "list", Short: "List approvals, newest first", Args: cobra.NoArgs,
		Example: "  reeve approvals list --state pending",
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.State = reeve.ApprovalState(state)
			return a.with(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				l, err := c.Approvals().List(ctx, f)
				if err != nil {
					return err
				}
				defer a.more(l.Next)
				return a.print(l, func(w io.Writer) { a.approvalTable(w, l.Approvals) })
			})
		},
	}
	c.Flags().StringVar(&state, "state", "", "in one state only")
	fixed(c, "state", reeve.ApprovalStates())
	paged(c, &f.Page)
	return c
}

func (a *app) approvalTable(w io.Writer, list []reeve.Approval) {
	a.table(w, "ID STATE TOOL AGENT EXPIRES ARGUMENTS", rows(list, func(p reeve.Approval) []string {
		return []string{p.ID, string(p.State), p.Tool, p.AgentID, when(p.ExpiresAt), cut(p.Args, 60)}
	}))
}

// printApproval shows all of what a person decides on, uncut.
func (a *app) printApproval(p reeve.Approval) error {
	return a.print(p, func(w io.Writer) {
		details(w, "id", p.ID, "state", string(p.State), "agent", p.AgentID, "tool", p.Tool, "arguments",
			pretty([]byte(p.Args)),
			"asked because", p.Why, "caller's reason", p.Reason, "would change", p.Preview, "decided by", p.DecidedBy,
			"decided", whenSet(p.DecidedAt),
			"comment", p.Comment, "call", p.CallID, "operation", p.OperationID, "created", when(p.CreatedAt), "expires",
			when(p.ExpiresAt))
	})
}

func approvalsGet(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "get APPROVAL", Short: "Show what a call would do, and why it waits", Args: cobra.ExactArgs(1),
		Example:           "  reeve approvals get apr_...",
		ValidArgsFunction: a.complete(pendingApprovals),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				p, err := c.Approvals().Get(ctx, args[0])
				if err != nil {
					return err
				}
				return a.printApproval(p)
			})
		},
	}
}

func approvalsApprove(a *app) *cobra.Command {
	var comment string
	var wait bool
	c := &cobra.Command{
		Use: "approve APPROVAL", Short: "Let a call run", Args: cobra.ExactArgs(1),
		Long: "Lets a call run. The server runs it; with --wait the command waits for that and prints " +
			"the result.",
		Example:           "  reeve approvals approve apr_... --wait",
		ValidArgsFunction: a.complete(pendingApprovals),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				p, err := c.Approvals().Approve(ctx, args[0], comment)
				if err != nil {
					return err
				}
				if wait {
					res, err := a.follow(ctx, c, p.OperationID)
					if err != nil {
						return err
					}
					return a.printResult(res)
				}
				if a.json {
					return a.print(p, nil)
				}
				a.note("follow it: reeve operations get %s --wait", p.OperationID)
				return a.done("approved %s: %s runs", p.ID, p.Tool)
			})
		},
	}
	c.Flags().StringVar(&comment, "comment", "", "kept with the approval")
	c.Flags().BoolVar(&wait, "wait", false, "wait until the call is done and print its result")
	return c
}

func approvalsDeny(a *app) *cobra.Command {
	var comment string
	c := &cobra.Command{
		Use: "deny APPROVAL", Short: "Refuse a call", Args: cobra.ExactArgs(1),
		Example:           `  reeve approvals deny apr_... --comment "wrong folder"`,
		ValidArgsFunction: a.complete(pendingApprovals),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				p, err := c.Approvals().Deny(ctx, args[0], comment)
				if err != nil {
					return err
				}
				if a.json {
					return a.print(p, nil)
				}
				return a.done("denied %s: %s does not run", p.ID, p.Tool)
			})
		},
	}
	c.Flags().StringVar(&comment, "comment", "", "why; the agent is told")
	return c
}
