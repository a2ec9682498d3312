package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reeve"
	"reeve/api"
	"reeve/client"
)

func tokensCommand(a *app) *cobra.Command {
	list := &cobra.Command{
		Use: "list", Short: "List tokens", Args: cobra.NoArgs, Example: "  reeve tokens list",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				l, err := c.Tokens().List(ctx)
				if err != nil {
					return err
				}
				return a.print(l, func(w io.Writer) {
					a.printTable(w, "ID NAME USER ROLE WORKSPACES CREATED EXPIRES REVOKED",
						rows(l.Tokens, func(t reeve.AccessToken) []string {
							return []string{t.ID, t.Name, t.User, string(t.Role),
								truncate(strings.Join(t.Workspaces, ","),
									30),
								formatTime(t.CreatedAt), formatTimePtr(t.ExpiresAt), formatTimePtr(t.RevokedAt)}
						}))
				})
			})
		},
	}
	revoke := &cobra.Command{
		Use: "revoke ID", Short: "Revoke a token immediately", Args: cobra.ExactArgs(1),
		Example: "  reeve tokens revoke tok_...",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				if err := c.Tokens().Revoke(ctx, args[0]); err != nil {
					return err
				}
				return a.printDone("revoked token %s", args[0])
			})
		},
	}
	c := &cobra.Command{
		Use: "tokens", Short: "Manage access tokens", Args: cobra.NoArgs, RunE: list.RunE,
		Example: "  reeve tokens\n  TOKEN=$(reeve tokens create ci --role member --expires 720h)\n  reeve tokens " +
			"revoke tok_...",
	}
	c.AddCommand(list, tokensCreate(a), tokensUpdate(a), revoke)
	return c
}

func tokensUpdate(a *app) *cobra.Command {
	var role string
	c := &cobra.Command{
		Use: "update ID --role ROLE", Short: "Change the role of a token", Args: cobra.ExactArgs(1),
		Long:    "Changes the role of a token and of the console sessions made with it. It takes effect at once.",
		Example: "  reeve tokens update tok_... --role viewer",
		RunE: func(cmd *cobra.Command, args []string) error {
			if role == "" {
				return usagef("set --role")
			}
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				t, err := c.Tokens().Update(ctx, args[0], api.TokenUpdate{Role: reeve.Role(role)})
				if err != nil {
					return err
				}
				return a.printDone("token %s has the role %s", t.ID, t.Role)
			})
		},
	}
	c.Flags().StringVar(&role, "role", "", "role: viewer, member or owner")
	completeFlagValues(c, "role", reeve.Roles())
	return c
}

func tokensCreate(a *app) *cobra.Command {
	var r api.TokenRequest
	var role string
	var expires time.Duration
	c := &cobra.Command{
		Use: "create NAME", Short: "Create a token", Args: cobra.ExactArgs(1),
		Long: `Creates a token and prints it; the token cannot be shown again. A viewer can read. A member can also
make calls, decide on approvals, and manage agents and tools. An owner can do everything.`,
		Example: "  TOKEN=$(reeve tokens create ci --role member --expires 720h)",
		RunE: func(cmd *cobra.Command, args []string) error {
			r.Name, r.Role = args[0], reeve.Role(role)
			if expires < 0 {
				return usagef("--expires must not be negative")
			}
			if expires > 0 {
				r.ExpiresAt = reeve.Now().Add(expires).Format(time.RFC3339Nano)
			}
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				t, err := c.Tokens().Create(ctx, r)
				if err != nil {
					return err
				}
				a.notef("token %s; store it now, it cannot be shown again", t.ID)
				return a.print(t, func(w io.Writer) { fmt.Fprintln(w, t.Token) })
			})
		},
	}
	c.Flags().StringVar(&role, "role", string(reeve.Member), "role: viewer, member or owner")
	c.Flags().StringVar(&r.User, "user", "", "user that the token belongs to (default: you)")
	c.Flags().StringSliceVar(&r.Workspaces, "workspaces", nil,
		"workspaces in which the token is valid, a,b,c (default: this workspace)")
	c.Flags().DurationVar(&expires, "expires", 0, "time until the token expires, such as 720h (default: never)")
	completeFlagValues(c, "role", reeve.Roles())
	return c
}
