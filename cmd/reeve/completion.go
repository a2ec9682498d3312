package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reeve/client"
)

// completer suggests words for the n-th argument.
type completer func(ctx context.Context, c *client.Client, args []string) ([]string, error)

// complete suggests each argument by its own completer. A shell that waits is worse than one that suggests nothing, so
// it gives up early and in silence.
func (a *app) complete(by ...completer) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		const no = cobra.ShellCompDirectiveNoFileComp
		if len(args) >= len(by) {
			return nil, no
		}
		c, err := a.connect()
		if err != nil {
			return nil, no
		}
		defer c.Close()
		ctx, cancel := context.WithTimeout(cmd.Context(), 2*time.Second)
		defer cancel()
		words, err := by[len(args)](ctx, c, args)
		if err != nil {
			return nil, no
		}
		var out []string
		for _, w := range words {
			if strings.HasPrefix(w, begun) {
				out = append(out, w)
			}
		}
		return out, no
	}
}

// words suggests fixed words.
func words(w ...string) completer {
	return func(context.Context, *client.Client, []string) ([]string, error) { return w, nil }
}

func agentNames(ctx context.Context, c *client.Client, _ []string) ([]string, error) {
	list, err := c.Agents().List(ctx, client.Page{Limit: 200})
	var names []string
	for _, g := range list.Agents {
		names = append(names, g.Name)
	}
	return names, err
}

func toolNames(ctx context.Context, c *client.Client, _ []string) ([]string, error) {
	list, err := c.Tools().List(ctx, "")
	var names []string
	for _, t := range list.Tools {
		names = append(names, t.ID+"\t"+t.Name)
	}
	return names, err
}

// itsToolNames suggests the tools of the agent named before.
func itsToolNames(ctx context.Context, c *client.Client, args []string) ([]string, error) {
	list, err := c.Agents().Tools(ctx, args[0])
	var names []string
	for _, t := range list.Tools {
		names = append(names, t.ID+"\t"+t.Name)
	}
	return names, err
}

func pendingApprovals(ctx context.Context, c *client.Client, _ []string) ([]string, error) {
	list, err := c.Approvals().List(ctx, client.ApprovalFilter{State: "pending"})
	var ids []string
	for _, p := range list.Approvals {
		ids = append(ids, p.ID+"\t"+p.Tool)
	}
	return ids, err
}

func pendingProposals(ctx context.Context, c *client.Client, _ []string) ([]string, error) {
	list, err := c.Proposals().List(ctx, client.ProposalFilter{State: "pending"})
	var ids []string
	for _, p := range list.Proposals {
		ids = append(ids, p.ID+"\t"+p.Tool)
	}
	return ids, err
}

func unknownOperations(ctx context.Context, c *client.Client, _ []string) ([]string, error) {
	list, err := c.Operations().List(ctx, client.OperationFilter{State: "unknown"})
	var ids []string
	for _, o := range list.Operations {
		ids = append(ids, o.ID+"\t"+o.Tool)
	}
	return ids, err
}

// fixed suggests a flag's values without asking a server.
func fixed[S ~string](cmd *cobra.Command, flag string, values []S) {
	var out []string
	for _, v := range values {
		out = append(out, string(v))
	}
	if err := cmd.RegisterFlagCompletionFunc(flag,
		cobra.FixedCompletions(out, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // the flag does not exist: a slip in this program
	}
}
