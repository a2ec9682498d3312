package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reeve/client"
)

// completer returns the possible values of an argument; args are the arguments before it.
type completer func(ctx context.Context, c *client.Client, args []string) ([]string, error)

// complete completes each argument with the completer at its position. On errors, and after two seconds, it suggests
// nothing, so that the shell does not hang.
func (a *app) complete(completers ...completer) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		const noFiles = cobra.ShellCompDirectiveNoFileComp
		if len(args) >= len(completers) {
			return nil, noFiles
		}
		c, err := a.connect()
		if err != nil {
			return nil, noFiles
		}
		defer c.Close()
		ctx, cancel := context.WithTimeout(cmd.Context(), 2*time.Second)
		defer cancel()
		words, err := completers[len(args)](ctx, c, args)
		if err != nil {
			return nil, noFiles
		}
		var out []string
		for _, w := range words {
			if strings.HasPrefix(w, prefix) {
				out = append(out, w)
			}
		}
		return out, noFiles
	}
}

// fixedWords returns a completer that suggests the words w.
func fixedWords(w ...string) completer {
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

// attachedToolNames suggests the tools of the agent in args[0].
func attachedToolNames(ctx context.Context, c *client.Client, args []string) ([]string, error) {
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

// completeFlagValues completes a flag with fixed values, without a request to the server.
func completeFlagValues[S ~string](cmd *cobra.Command, flag string, values []S) {
	var out []string
	for _, v := range values {
		out = append(out, string(v))
	}
	if err := cmd.RegisterFlagCompletionFunc(flag,
		cobra.FixedCompletions(out, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // the flag does not exist
	}
}
