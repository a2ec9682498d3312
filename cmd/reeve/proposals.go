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
		Use: "proposals", Short: "Accept or reject what agents propose, item by item", Args: cobra.NoArgs,
		RunE: list.RunE,
		Long: `An agent whose policy says propose does not change anything: what it would do becomes an item of a change set, one for each run. An item is
bound to the exact arguments, tool and base it was proposed with, and is applied once, however often it is accepted. A rejected one stays rejected.`,
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
	c := a.task("list", "List proposals, newest first", "proposals list --state pending --agent coach", cobra.NoArgs,
		func(ctx context.Context, c *client.Client, _ []string) error {
			f.State = reeve.ProposalState(state)
			l, err := c.Proposals().List(ctx, f)
			if err != nil {
				return err
			}
			defer a.more(l.Next)
			return a.print(l, func(w io.Writer) { a.proposalTable(w, l.Proposals) })
		})
	c.Flags().StringVar(&state, "state", "", "in one state only")
	c.Flags().StringVar(&f.Agent, "agent", "", "of one agent only")
	c.Flags().StringVar(&f.Set, "set", "", "of one change set only")
	a.suggest(c, "agent", agentNames)
	fixed(c, "state", reeve.ProposalStates())
	paged(c, &f.Page)
	return c
}

func (a *app) proposalTable(w io.Writer, list []reeve.Proposal) {
	a.table(w, "ID STATE SET ITEM TOOL AGENT ARGUMENTS", rows(list, func(p reeve.Proposal) []string {
		return []string{p.ID, string(p.State), p.SetID, strconv.Itoa(p.Ordinal), p.Tool, p.AgentID, cut(p.Args, 60)}
	}))
}

func proposalsSets(a *app) *cobra.Command {
	var f client.ChangeSetFilter
	c := a.task("sets", "List change sets, newest first", "proposals sets --pending", cobra.NoArgs,
		func(ctx context.Context, c *client.Client, _ []string) error {
			l, err := c.ChangeSets().List(ctx, f)
			if err != nil {
				return err
			}
			defer a.more(l.Next)
			return a.print(l, func(w io.Writer) {
				a.table(w, "ID AGENT RUN CREATED ITEMS", rows(l.ChangeSets, func(s reeve.ChangeSet) []string {
					return []string{s.ID, s.AgentID, s.RunID, when(s.CreatedAt), counted(s.Counts)}
				}))
			})
		})
	c.Flags().StringVar(&f.Agent, "agent", "", "of one agent only")
	c.Flags().BoolVar(&f.Pending, "pending", false, "only those with an item that waits for a person")
	a.suggest(c, "agent", agentNames)
	paged(c, &f.Page)
	return c
}

// counted writes how many items are in each state, in the order of a proposal's life.
func counted(counts map[reeve.ProposalState]int) string {
	var out []string
	for _, s := range reeve.ProposalStates() {
		if n := counts[s]; n > 0 {
			out = append(out, strconv.Itoa(n)+" "+string(s))
		}
	}
	return strings.Join(out, ", ")
}

// isSet tells whether an id is a change set's.
func isSet(id string) bool { return strings.HasPrefix(id, reeve.PrefixChangeSet+"_") }

func proposalsShow(a *app) *cobra.Command {
	c := a.task("show PROPOSAL|CHANGE-SET", "Show what would change, and what became of it", "proposals show cs_...",
		cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			if !isSet(args[0]) {
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
				details(w, "change set", s.ID, "agent", s.AgentID, "run", s.RunID, "thread", s.ThreadID, "created",
					when(s.CreatedAt), "items", counted(s.Counts))
				for _, p := range s.Items {
					fmt.Fprintln(w)
					printProposal(w, p)
				}
			})
		})
	c.Aliases, c.ValidArgsFunction = []string{"get"}, a.complete(pendingProposals)
	return c
}

// printProposal shows all of what a person decides on, uncut.
func printProposal(w io.Writer, p reeve.Proposal) {
	details(w, "id", p.ID, "item", fmt.Sprintf("%d of %s", p.Ordinal, p.SetID), "state", string(p.State), "because",
		p.Message, "agent", p.AgentID, "tool", p.Tool,
		"arguments", pretty([]byte(p.Args)), "caller's reason", p.Reason, "would change", p.Preview, "decided by",
		p.DecidedBy, "decided", whenSet(p.DecidedAt),
		"comment", p.Comment, "reopened by", p.ReopenedBy, "reopened", whenSet(p.ReopenedAt), "call", p.CallID,
		"operation", p.OperationID, "created", when(p.CreatedAt))
}

func proposalsAccept(a *app) *cobra.Command {
	var comment string
	var wait bool
	c := a.task("accept PROPOSAL|CHANGE-SET...", "Let proposed calls be applied; of a change set, all that are pending",
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
	c.Flags().StringVar(&comment, "comment", "", "kept with the proposal")
	c.Flags().BoolVar(&wait, "wait", false, "wait until the calls are done and say what became of them")
	c.ValidArgsFunction = a.complete(pendingProposals)
	return c
}

func proposalsReject(a *app) *cobra.Command {
	var comment string
	c := a.task("reject PROPOSAL|CHANGE-SET...",
		"Refuse proposed calls for good; of a change set, all that are pending",
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
	c.Flags().StringVar(&comment, "comment", "", "why; the agent is told if it proposes the same again")
	c.ValidArgsFunction = a.complete(pendingProposals)
	return c
}

func proposalsReopen(a *app) *cobra.Command {
	return a.task("reopen PROPOSAL...", "Let rejected proposals be decided on again", "proposals reopen prop_...",
		cobra.MinimumNArgs(1),
		func(ctx context.Context, c *client.Client, ids []string) error {
			d, err := decideAll(ids, nil, func(id string) (reeve.Proposal, error) {
				return c.Proposals().
					Reopen(ctx, id)
			})
			if err != nil {
				return err
			}
			return a.printDecision(d)
		})
}

// decideAll takes a person's word on each item, or on all of a set. That one cannot be answered so keeps nobody from
// the next.
func decideAll(ids []string, set func(id string) (reeve.SetDecision, error), item func(id string) (reeve.Proposal,
	error)) (out reeve.SetDecision, err error) {
	out.Items = []reeve.ItemDecision{}
	for _, id := range ids {
		if set != nil && isSet(id) {
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

// printDecision says of each item what became of it. Its error is the exit code: 1 if one could not be answered so or
// was not applied, else 3 if nobody can tell of one.
func (a *app) printDecision(d reeve.SetDecision) error {
	code := exitDone
	for _, i := range d.Items {
		switch {
		case i.Proposal == nil, i.Proposal.State == reeve.ProposalFailed, i.Proposal.State == reeve.ProposalDenied,
			i.Proposal.State == reeve.ProposalStale:
			code = exitFailed
		case i.Proposal.State == reeve.ProposalUnknown && code == exitDone:
			code = exitNotDone
		}
	}
	err := a.print(d, func(w io.Writer) {
		if len(d.Items) == 0 {
			fmt.Fprintln(w, "Nothing of it is pending.")
		}
		for _, i := range d.Items {
			if i.Proposal == nil {
				a.show(&reeve.Error{Code: i.Code, Message: i.ID + ": " + i.Message, Hint: i.Hint})
				continue
			}
			line := fmt.Sprintf("%s is %s: %s", i.ID, i.Proposal.State, i.Proposal.Tool)
			if i.Proposal.Message != "" {
				line += ": " + oneLine(i.Proposal.Message)
			}
			fmt.Fprintln(w, plain(line))
		}
	})
	if err == nil && code != exitDone {
		return silent{code}
	}
	return err
}
