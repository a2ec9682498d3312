package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"reeve"
	"reeve/api"
	"reeve/client"
)

func proposalsCommand(a *app) *cobra.Command {
	list := proposalsList(a)
	c := &cobra.Command{
		Use: "proposals", Short: "Accept or reject proposed calls", Args: cobra.NoArgs,
		RunE: list.RunE,
		Long: `If an agent's policy for a tool is propose, its calls change nothing. Each call becomes a proposal in
the change set of the run. A proposal applies only to its exact arguments, tool and base. It is
applied once, even if it is accepted several times. A rejected proposal stays rejected until it is
reopened.`,
		Example: `  reeve agents update coach --policy tier:side_effecting=propose
  reeve proposals --state pending
  reeve proposals show cs_...
  reeve proposals accept prop_... prop_... --wait
  reeve proposals reject cs_... --comment "not this week"`,
	}
	c.Flags().AddFlagSet(list.Flags())
	c.AddCommand(list, proposalsSets(a), proposalsShow(a), proposalsAccept(a), proposalsReject(a), proposalsReopen(a))
	return c
}

func proposalsList(a *app) *cobra.Command {
	var f client.ProposalFilter
	var state string
	c := a.serverCommand("list", "List proposals, newest first", "proposals list --state pending --agent coach",
		cobra.NoArgs,
		func(ctx context.Context, c *client.Client, _ []string) error {
			f.State = reeve.ProposalState(state)
			l, err := c.Proposals().List(ctx, f)
			if err != nil {
				return err
			}
			defer a.noteNextPage(l.Next)
			return a.print(l, func(w io.Writer) { a.printProposalTable(w, l.Proposals) })
		})
	c.Flags().StringVar(&state, "state", "", "only proposals in this state")
	c.Flags().StringVar(&f.Agent, "agent", "", "only proposals of this agent")
	c.Flags().StringVar(&f.Set, "set", "", "only proposals of this change set")
	a.completeFlag(c, "agent", agentNames)
	completeFlagValues(c, "state", reeve.ProposalStates())
	addPageFlags(c, &f.Page)
	return c
}

func (a *app) printProposalTable(w io.Writer, list []reeve.Proposal) {
	a.printTable(w, "ID STATE SET ITEM TOOL AGENT ARGUMENTS", rows(list, func(p reeve.Proposal) []string {
		return []string{p.ID, string(p.State), p.SetID, strconv.Itoa(p.Ordinal), p.Tool, p.AgentID,
			truncate(p.Args, 60)}
	}))
}

func proposalsSets(a *app) *cobra.Command {
	var f client.ChangeSetFilter
	c := a.serverCommand("sets", "List change sets, newest first", "proposals sets --pending", cobra.NoArgs,
		func(ctx context.Context, c *client.Client, _ []string) error {
			l, err := c.ChangeSets().List(ctx, f)
			if err != nil {
				return err
			}
			defer a.noteNextPage(l.Next)
			return a.print(l, func(w io.Writer) {
				a.printTable(w, "ID AGENT RUN CREATED ITEMS", rows(l.ChangeSets, func(s reeve.ChangeSet) []string {
					return []string{s.ID, s.AgentID, s.RunID, formatTime(s.CreatedAt), formatCounts(s.Counts)}
				}))
			})
		})
	c.Flags().StringVar(&f.Agent, "agent", "", "only change sets of this agent")
	c.Flags().BoolVar(&f.Pending, "pending", false, "only change sets with a pending proposal")
	a.completeFlag(c, "agent", agentNames)
	addPageFlags(c, &f.Page)
	return c
}

// formatCounts formats the number of proposals in each state, in the order of reeve.ProposalStates.
func formatCounts(counts map[reeve.ProposalState]int) string {
	var out []string
	for _, s := range reeve.ProposalStates() {
		if n := counts[s]; n > 0 {
			out = append(out, strconv.Itoa(n)+" "+string(s))
		}
	}
	return strings.Join(out, ", ")
}

// isChangeSet reports whether id is the id of a change set.
func isChangeSet(id string) bool { return strings.HasPrefix(id, reeve.PrefixChangeSet+"_") }

func proposalsShow(a *app) *cobra.Command {
	c := a.serverCommand("show PROPOSAL|CHANGE-SET", "Show a proposal, or all proposals of a change set",
		"proposals show cs_...",
		cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			if !isChangeSet(args[0]) {
				p, err := c.Proposals().Get(ctx, args[0])
				if err != nil {
					return err
				}
				return a.print(p, func(w io.Writer) { printProposal(w, p) })
			}
			s, err := c.ChangeSets().Get(ctx, args[0])
			if err != nil {
				return err
			}
			return a.print(s, func(w io.Writer) {
				printDetails(w, "change set", s.ID, "agent", s.AgentID, "run", s.RunID, "thread", s.ThreadID,
					"created", formatTime(s.CreatedAt), "items", formatCounts(s.Counts))
				for _, p := range s.Items {
					fmt.Fprintln(w)
					printProposal(w, p)
				}
			})
		})
	c.ValidArgsFunction = a.complete(pendingProposals)
	return c
}

// printProposal prints a proposal with its full arguments and preview, because a person decides on them.
func printProposal(w io.Writer, p reeve.Proposal) {
	printDetails(w, "id", p.ID, "item", fmt.Sprintf("%d of %s", p.Ordinal, p.SetID), "state", string(p.State),
		"message", p.Message, "agent", p.AgentID, "tool", p.Tool, "arguments", indentJSON([]byte(p.Args)),
		"caller's reason", p.Reason, "would change", p.Preview, "decided by", p.DecidedBy,
		"decided", formatTimePtr(p.DecidedAt), "comment", p.Comment, "reopened by", p.ReopenedBy,
		"reopened", formatTimePtr(p.ReopenedAt), "call", p.CallID, "operation", p.OperationID,
		"created", formatTime(p.CreatedAt))
}

func proposalsAccept(a *app) *cobra.Command {
	var comment string
	var wait bool
	c := a.serverCommand("accept PROPOSAL|CHANGE-SET...", "Accept proposals, or all pending proposals of a change set",
		"proposals accept prop_... --wait", cobra.MinimumNArgs(1),
		func(ctx context.Context, c *client.Client, ids []string) error {
			d, err := decideAll(ids, func(set string) (reeve.SetDecision, error) {
				return c.ChangeSets().Accept(ctx, set, api.SetDecisionRequest{Comment: comment})
			}, func(id string) (reeve.Proposal, error) { return c.Proposals().Accept(ctx, id, comment) })
			for i := 0; i < len(d.Items) && err == nil && wait; i++ {
				if p := d.Items[i].Proposal; p != nil {
					if _, err = c.Operations().Wait(ctx, p.OperationID); err == nil {
						*p, err = c.Proposals().Get(ctx, p.ID)
					}
				}
			}
			if err != nil {
				return err
			}
			return a.printDecision(d)
		})
	c.Flags().StringVar(&comment, "comment", "", "comment to store with the proposals")
	c.Flags().BoolVar(&wait, "wait", false, "wait until the calls are finished and print their state")
	c.ValidArgsFunction = a.complete(pendingProposals)
	return c
}

func proposalsReject(a *app) *cobra.Command {
	var comment string
	c := a.serverCommand("reject PROPOSAL|CHANGE-SET...",
		"Reject proposals, or all pending proposals of a change set",
		`proposals reject prop_... --comment "not this week"`,
		cobra.MinimumNArgs(1), func(ctx context.Context, c *client.Client, ids []string) error {
			d, err := decideAll(ids, func(set string) (reeve.SetDecision, error) {
				return c.ChangeSets().Reject(ctx, set, api.SetDecisionRequest{Comment: comment})
			}, func(id string) (reeve.Proposal, error) { return c.Proposals().Reject(ctx, id, comment) })
			if err != nil {
				return err
			}
			return a.printDecision(d)
		})
	c.Flags().StringVar(&comment, "comment", "", "reason, which the agent sees if it proposes the same call again")
	c.ValidArgsFunction = a.complete(pendingProposals)
	return c
}

func proposalsReopen(a *app) *cobra.Command {
	return a.serverCommand("reopen PROPOSAL...", "Reopen rejected proposals", "proposals reopen prop_...",
		cobra.MinimumNArgs(1),
		func(ctx context.Context, c *client.Client, ids []string) error {
			d, err := decideAll(ids, nil, func(id string) (reeve.Proposal, error) {
				return c.Proposals().Reopen(ctx, id)
			})
			if err != nil {
				return err
			}
			return a.printDecision(d)
		})
}

// decideAll calls set for each id of a change set, and item for each id of a proposal. A nil set treats every id as a
// proposal. If a proposal is missing or cannot be decided, its result says so and decideAll continues with the next.
func decideAll(ids []string, set func(id string) (reeve.SetDecision, error), item func(id string) (reeve.Proposal,
	error)) (out reeve.SetDecision, err error) {
	out.Items = []reeve.ItemDecision{}
	for _, id := range ids {
		if set != nil && isChangeSet(id) {
			d, err := set(id)
			if err != nil {
				return out, err
			}
			out.Items = append(out.Items, d.Items...)
			continue
		}
		p, err := item(id)
		switch e := reeve.AsError(err); reeve.CodeOf(err) {
		case "":
			out.Items = append(out.Items, reeve.ItemDecision{ID: id, Proposal: &p})
		case reeve.NotFound, reeve.Conflict, reeve.Stale:
			out.Items = append(out.Items, reeve.ItemDecision{ID: id, Code: e.Code, Message: e.Message, Hint: e.Hint})
		default:
			return out, err
		}
	}
	return out, nil
}

// printDecision prints the result of each proposal. It returns an exitError with code 1 if a proposal could not be
// decided or applied, else with code 3 if the outcome of one is unknown.
func (a *app) printDecision(d reeve.SetDecision) error {
	code := exitDone
	for _, i := range d.Items {
		switch {
		case i.Proposal == nil, i.Proposal.State == reeve.ProposalFailed, i.Proposal.State == reeve.ProposalDenied,
			i.Proposal.State == reeve.ProposalStale:
			code = exitFailed
		case i.Proposal.State == reeve.ProposalUnknown && code == exitDone:
			code = exitPending
		}
	}
	err := a.print(d, func(w io.Writer) {
		if len(d.Items) == 0 {
			fmt.Fprintln(w, "No proposals are pending.")
		}
		for _, i := range d.Items {
			if i.Proposal == nil {
				a.showError(&reeve.Error{Code: i.Code, Message: i.ID + ": " + i.Message, Hint: i.Hint})
				continue
			}
			line := fmt.Sprintf("%s is %s: %s", i.ID, i.Proposal.State, i.Proposal.Tool)
			if i.Proposal.State == reeve.ProposalAccepted {
				line += ", which runs now; reeve proposals show " + i.ID + " says how it ended"
			}
			if i.Proposal.Message != "" {
				line += ": " + oneLine(i.Proposal.Message)
			}
			fmt.Fprintln(w, sanitize(line))
		}
	})
	if err == nil && code != exitDone {
		return exitError{code}
	}
	return err
}
