package gate

import (
	"context"

	"reeve"
	"reeve/internal/store"
)

// retiring is an agent that is gone, or about to be, and how it ended.
type retiring struct {
	reeve.Agent
	end string
}

// CancelForAgent takes back what waits for a person of an agent that was destroyed or removed, as end says, and what
// others asked for or proposed on its behalf: none of it can run any more. Approvals lapse, and proposals are stale.
// What a person has answered before is refused when it is taken up.
func (g *Gate) CancelForAgent(ctx context.Context, tx *store.Tx, a reeve.Agent, end string) error {
	r := retiring{a, end}
	parked, err := tx.Ledger().ParkedOperations(ctx, a.WorkspaceID)
	if err != nil {
		return err
	}
	err = endWith(ctx, tx, r, parked, func(op reeve.Operation) (string, string) { return op.AgentID, op.RunID },
		func(op reeve.Operation, why *reeve.Error) error {
			return unask(ctx, tx, op, why)
		})
	if err != nil {
		return err
	}
	return forgo(ctx, tx, r)
}

// forgo makes stale what was proposed by an agent, or on its behalf, and nobody has answered.
func forgo(ctx context.Context, tx *store.Tx, r retiring) error {
	for before := ""; ; {
		list, err := tx.Ledger().
			ListProposals(ctx, r.WorkspaceID, store.ProposalFilter{State: reeve.ProposalPending, Before: before,
				Limit: someItems})
		if err != nil || len(list) == 0 {
			return err
		}
		before = list[len(list)-1].ID
		err = endWith(ctx, tx, r, list, func(p reeve.Proposal) (string, string) { return p.AgentID, p.RunID },
			func(p reeve.Proposal, why *reeve.Error) error {
				p.State, p.Comment = reeve.ProposalStale, why.Message
				// by a person's answer
				if err := tx.Ledger().TransitionProposal(ctx, p, reeve.ProposalPending); !overtaken(err) {
					return err
				}
				return nil
			})
		if err != nil {
			return err
		}
	}
}

// endWith does something with those of a list that end with an agent: its own, and those of runs that there are on its
// behalf.
func endWith[T any](ctx context.Context, tx *store.Tx, r retiring, list []T, whose func(T) (agent, run string),
	do func(v T, why *reeve.Error) error) error {
	var runs []string
	for _, v := range list {
		if _, run := whose(v); run != "" {
			runs = append(runs, run)
		}
	}
	led, err := tx.Runs().RunsActingFor(ctx, r.ID, runs)
	for i := 0; i < len(list) && err == nil; i++ {
		switch agent, run := whose(list[i]); {
		case agent == r.ID:
			err = do(list[i], reeve.Errorf(reeve.Denied, "the agent was %s", r.end))
		case led[run]:
			err = do(list[i], reeve.Errorf(reeve.Denied, "%s, on whose behalf this runs, was %s", r.Name, r.end))
		}
	}
	return err
}
