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
			return a.with(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				l, err := c.Tokens().List(ctx)
				if err != nil {
					return err
				}
				return a.print(l, func(w io.Writer) {
					a.table(w, "ID NAME USER ROLE WORKSPACES CREATED EXPIRES REVOKED",
						rows(l.Tokens, func(t reeve.AccessToken) []string {
							return []string{t.ID, t.Name, t.User, string(t.Role), cut(strings.Join(t.Workspaces, ","),
								30),
								when(t.CreatedAt), whenSet(t.ExpiresAt), whenSet(t.RevokedAt)}
						}))
				})
			})
		},
	}
	revoke := &cobra.Command{
		Use: "revoke ID", Short: "Make a token worthless at once", Args: cobra.ExactArgs(1),
		Example: "  reeve tokens revoke tok_...",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				if err := c.Tokens().Revoke(ctx, args[0]); err != nil {
					return err
				}
				return a.done("revoked token %s", args[0])
			})
		},
	}
	c := &cobra.Command{
		Use: "tokens", Short: "Manage who may use the API", Args: cobra.NoArgs, RunE: list.RunE,
		Example: "  reeve tokens\n  TOKEN=$(reeve tokens create ci --role member --expires 720h)\n  reeve tokens " +
			"revoke tok_...",
	}
	c.AddCommand(list, tokensCreate(a), revoke)
	return c
}

func tokensCreate(a *app) *cobra.Command {
	var r api.TokenRequest
	var role string
	var expires time.Duration
	c := &cobra.Command{
		Use: "create NAME", Short: "Make a token", Args: cobra.ExactArgs(1),
		Long: "Makes a token and prints it, the only time it is shown. Roles: viewer reads; member also calls, " +
			"decides and manages agents and tools; owner does everything.",
		Example: "  TOKEN=$(reeve tokens create ci --role member --expires 720h)",
		RunE: func(cmd *cobra.Command, args []string) error {
			r.Name, r.Role = args[0], reeve.Role(role)
			if expires < 0 {
				return usagef("--expires lies in the past")
			}
			if expires > 0 {
				r.ExpiresAt = reeve.Now().Add(expires).Format(time.RFC3339Nano)
			}
			return a.with(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				t, err := c.Tokens().Create(ctx, r)
				if err != nil {
					return err
				}
				a.note("token %s; keep it: it is not shown again", t.ID)
				return a.print(t, func(w io.Writer) { fmt.Fprintln(w, t.Token) })
			})
		},
	}
	c.Flags().StringVar(&role, "role", string(reeve.Member), "viewer, member or owner")
	c.Flags().StringVar(&r.User, "user", "", "who acts with it (default: you)")
	c.Flags().StringSliceVar(&r.Workspaces, "workspaces", nil, "where it is valid, a,b,c (default: this workspace)")
	c.Flags().DurationVar(&expires, "expires", 0, "how long it is valid, such as 720h (default: until revoked)")
	fixed(c, "role", reeve.Roles())
	return c
}
