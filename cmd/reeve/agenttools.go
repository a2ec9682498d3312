package main

import (
	"context"

	"github.com/spf13/cobra"

	"reeve/api"
	"reeve/client"
)

func agentsTools(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "tools AGENT", Short: "List the tools an agent has", Args: cobra.ExactArgs(1),
		Example:           "  reeve agents tools clerk",
		ValidArgsFunction: a.complete(agentNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				l, err := c.Agents().Tools(ctx, args[0])
				if err != nil {
					return err
				}
				return a.printTools(l)
			})
		},
	}
}

func agentsAttach(a *app) *cobra.Command {
	var config string
	c := &cobra.Command{
		Use: "attach AGENT TOOL", Short: "Give an agent a tool", Args: cobra.ExactArgs(2),
		Example: `  reeve agents attach clerk file_read
  reeve agents attach clerk file_search --config '{"default_limit":20}'`,
		ValidArgsFunction: a.complete(agentNames, toolNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			settings, err := object("config", config)
			if err != nil {
				return err
			}
			return a.with(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				t, err := c.Agents().Attach(ctx, args[0], api.AttachRequest{ToolID: args[1], Config: settings})
				if err != nil {
					return err
				}
				if a.json {
					return a.print(t, nil)
				}
				return a.done("attached %s to %s", args[1], args[0])
			})
		},
	}
	c.Flags().StringVar(&config, "config", "", "the agent's settings for the tool, a JSON object")
	return c
}

func agentsDetach(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "detach AGENT TOOL", Short: "Take a tool from an agent", Args: cobra.ExactArgs(2),
		Example:           "  reeve agents detach clerk file_read",
		ValidArgsFunction: a.complete(agentNames, itsToolNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				if err := c.Agents().Detach(ctx, args[0], args[1]); err != nil {
					return err
				}
				return a.done("detached %s from %s", args[1], args[0])
			})
		},
	}
}
