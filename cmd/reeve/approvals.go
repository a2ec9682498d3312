package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"reeve"
	"reeve/api"
	"reeve/client"
)

func approvalsCommand(a *app) *cobra.Command {
	list := approvalsList(a)
	c := &cobra.Command{
		Use: "approvals", Short: "Approve or deny calls", Args: cobra.NoArgs, RunE: list.RunE,
		Long: "An approval applies only to the exact arguments, tool and policy of one call. The first " +
			"decision counts.",
		Example: `  reeve approvals --state pending
  reeve approvals show apr_...
  reeve approvals approve apr_... --wait
  reeve approvals deny apr_... --comment "ask again next week"
  reeve approvals edit apr_... '{"path":"/plan.md","content":"Run 3 km"}'`,
	}
	c.Flags().AddFlagSet(list.Flags())
	c.AddCommand(list, approvalsGet(a), approvalsApprove(a), approvalsDeny(a), approvalsEdit(a), approvalsPreview(a),
		approvalsReveal(a))
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
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				l, err := c.Approvals().List(ctx, f)
				if err != nil {
					return err
				}
				defer a.noteNextPage(l.Next)
				return a.print(l, func(w io.Writer) { a.printApprovalTable(w, l.Approvals) })
			})
		},
	}
	c.Flags().StringVar(&state, "state", "", "only approvals in this state")
	completeFlagValues(c, "state", reeve.ApprovalStates())
	addPageFlags(c, &f.Page)
	return c
}

func (a *app) printApprovalTable(w io.Writer, list []reeve.Approval) {
	a.printTable(w, "ID STATE TOOL AGENT EXPIRES ARGUMENTS", rows(list, func(p reeve.Approval) []string {
		return []string{p.ID, string(p.State), p.Tool, p.AgentID, formatTime(p.ExpiresAt), truncate(p.Args, 60)}
	}))
}

// printApproval prints an approval with its full arguments and preview, because a person decides on them.
func (a *app) printApproval(p reeve.Approval) error {
	return a.print(p, func(w io.Writer) {
		printDetails(w, "id", p.ID, "state", string(p.State), "agent", p.AgentID, "tool", p.Tool,
			"arguments", indentJSON([]byte(p.Args)), "required because", p.Why, "caller's reason", p.Reason,
			"would change", p.Preview, "decided by", p.DecidedBy, "decided", formatTimePtr(p.DecidedAt),
			"comment", p.Comment, "call", p.CallID, "operation", p.OperationID, "created", formatTime(p.CreatedAt),
			"expires", formatTime(p.ExpiresAt))
	})
}

func approvalsGet(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "show APPROVAL", Short: "Show an approval and what its call would change", Args: cobra.ExactArgs(1),
		Example:           "  reeve approvals show apr_...",
		ValidArgsFunction: a.complete(pendingApprovals),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				card, err := c.Approvals().Card(ctx, args[0])
				if err != nil {
					return err
				}
				if err := newOutOfDate(card); err != nil {
					a.notef("an approval would run nothing: %s; %s", err.Message, err.Hint)
				}
				return a.printApproval(card.Approval)
			})
		},
	}
}

// newOutOfDate returns why an approval would run nothing, or nil.
func newOutOfDate(card api.ApprovalCard) *reeve.Error {
	if card.Stale == "" {
		return nil
	}
	return reeve.Errorf(reeve.Stale, "%s", card.Stale).
		Hintf("preview the call again: reeve approvals preview %s", card.Approval.ID)
}

func approvalsApprove(a *app) *cobra.Command {
	var comment string
	var wait bool
	c := &cobra.Command{
		Use: "approve APPROVAL", Short: "Approve a call", Args: cobra.ExactArgs(1),
		Long: "Approves a call, which the server then runs. With --wait, the command waits for the call and\n" +
			"prints its result.",
		Example:           "  reeve approvals approve apr_... --wait",
		ValidArgsFunction: a.complete(pendingApprovals),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				card, err := c.Approvals().Card(ctx, args[0])
				if err != nil {
					return err
				}
				if err := newOutOfDate(card); err != nil {
					return err
				}
				p, err := c.Approvals().Approve(ctx, args[0], comment)
				if err != nil {
					return err
				}
				if wait {
					res, err := a.waitForResult(ctx, c, p.OperationID)
					if err != nil {
						return err
					}
					return a.printResult(res)
				}
				if a.json {
					return a.print(p, nil)
				}
				a.notef("follow it: reeve operations show %s --wait", p.OperationID)
				return a.printDone("approved %s: the server runs %s", p.ID, p.Tool)
			})
		},
	}
	c.Flags().StringVar(&comment, "comment", "", "comment to store with the approval")
	c.Flags().BoolVar(&wait, "wait", false, "wait for the call and print its result")
	return c
}

func approvalsDeny(a *app) *cobra.Command {
	var comment string
	c := &cobra.Command{
		Use: "deny APPROVAL", Short: "Deny a call", Args: cobra.ExactArgs(1),
		Example:           `  reeve approvals deny apr_... --comment "wrong folder"`,
		ValidArgsFunction: a.complete(pendingApprovals),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				p, err := c.Approvals().Deny(ctx, args[0], comment)
				if err != nil {
					return err
				}
				if a.json {
					return a.print(p, nil)
				}
				return a.printDone("denied %s: %s will not run", p.ID, p.Tool)
			})
		},
	}
	c.Flags().StringVar(&comment, "comment", "", "reason, which the agent sees")
	return c
}

func approvalsEdit(a *app) *cobra.Command {
	var comment string
	c := &cobra.Command{
		Use: "edit APPROVAL ARGUMENTS", Short: "Change the arguments of a call that waits", Args: cobra.ExactArgs(2),
		Long: `Replaces a waiting call by one with other arguments. The new call waits for an approval of its own; the old
approval becomes replaced. ARGUMENTS is a JSON object with all arguments, @FILE, or - for standard input.`,
		Example:           `  reeve approvals edit apr_... '{"path":"/plan.md","content":"Run 3 km"}'`,
		ValidArgsFunction: a.complete(pendingApprovals),
		RunE: func(cmd *cobra.Command, args []string) error {
			input, err := a.readArguments(args[1:])
			if err != nil {
				return err
			}
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				p, err := c.Approvals().Edit(ctx, args[0], api.EditRequest{Args: input, Comment: comment})
				if err != nil {
					return err
				}
				return a.printApproval(p)
			})
		},
	}
	c.Flags().StringVar(&comment, "comment", "", "why, for the agent")
	return c
}

func approvalsPreview(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "preview APPROVAL", Short: "Preview a call that waits again", Args: cobra.ExactArgs(1),
		Long: `Replaces a waiting call by one with the same arguments and a fresh preview, for example because a file changed
since the agent asked. The new call waits for an approval of its own; the old approval becomes replaced.`,
		Example:           "  reeve approvals preview apr_...",
		ValidArgsFunction: a.complete(pendingApprovals),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				p, err := c.Approvals().Edit(ctx, args[0], api.EditRequest{})
				if err != nil {
					return err
				}
				return a.printApproval(p)
			})
		},
	}
}

func approvalsReveal(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "reveal APPROVAL", Short: "Show a waiting call with the secrets that its approval hides",
		Args: cobra.ExactArgs(1), Long: "Only owners may reveal a call.",
		Example:           "  reeve approvals reveal apr_...",
		ValidArgsFunction: a.complete(pendingApprovals),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				r, err := c.Approvals().Reveal(ctx, args[0])
				if err != nil {
					return err
				}
				return a.print(r, func(w io.Writer) {
					printDetails(w, "arguments", indentJSON([]byte(r.Args)), "would change", r.Preview)
				})
			})
		},
	}
}
