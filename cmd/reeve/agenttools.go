package main

import (
	"context"

	"github.com/spf13/cobra"

	"reeve/api"
	"reeve/client"
)

func agentsTools(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "tools AGENT", Short: "List an agent's tools", Args: cobra.ExactArgs(1),
		Example:           "  reeve agents tools clerk",
		ValidArgsFunction: a.complete(agentNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client.Client) error {
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
		Use: "attach AGENT TOOL", Short: "Attach a tool to an agent", Args: cobra.ExactArgs(2),
		Example: `  reeve agents attach clerk file_read
  reeve agents attach clerk file_search --config '{"default_limit":20}'`,
		ValidArgsFunction: a.complete(agentNames, toolNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			settings, err := parseObjectFlag("config", config)
			if err != nil {
				return err
			}
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				t, err := c.Agents().Attach(ctx, args[0], api.AttachRequest{ToolID: args[1], Config: settings})
				if err != nil {
					return err
				}
				if a.json {
					return a.print(t, nil)
				}
				return a.printDone("attached %s to %s", args[1], args[0])
			})
		},
	}
	c.Flags().StringVar(&config, "config", "", "settings of the tool for this agent, a JSON object")
	return c
}

func agentsDetach(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "detach AGENT TOOL", Short: "Detach a tool from an agent", Args: cobra.ExactArgs(2),
		Example:           "  reeve agents detach clerk file_read",
		ValidArgsFunction: a.complete(agentNames, attachedToolNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				if err := c.Agents().Detach(ctx, args[0], args[1]); err != nil {
					return err
				}
				return a.printDone("detached %s from %s", args[1], args[0])
			})
		},
	}
}
