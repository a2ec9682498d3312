package main

import (
	"context"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"reeve"
	"reeve/client"
)

func secretsCommand(a *app) *cobra.Command {
	list := &cobra.Command{
		Use: "list", Short: "List the names of secrets", Args: cobra.NoArgs, Example: "  reeve secrets list",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.with(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				l, err := c.Secrets().List(ctx)
				if err != nil {
					return err
				}
				return a.print(l, func(w io.Writer) {
					a.table(w, "NAME UPDATED",
						rows(l.Secrets, func(s reeve.SecretName) []string {
							return []string{s.Name,
								when(s.UpdatedAt)}
						}))
				})
			})
		},
	}
	remove := &cobra.Command{
		Use: "delete NAME", Short: "Remove a secret", Args: cobra.ExactArgs(1),
		Example: "  reeve secrets delete weather_key",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				if err := c.Secrets().Delete(ctx, args[0]); err != nil {
					return err
				}
				return a.done("deleted secret %s", args[0])
			})
		},
	}
	c := &cobra.Command{
		Use: "secrets", Short: "Keep keys that tools use and nobody sees", Args: cobra.NoArgs, RunE: list.RunE,
		Long: "A secret's value goes in and never comes out: tools use it by name, and it is removed from " +
			"everything they say.",
		Example: "  reeve secrets\n  reeve secrets set weather_key < key.txt",
	}
	c.AddCommand(list, secretsSet(a), remove)
	return c
}

// secretsSet takes no value as an argument: those are seen in the process list and kept in the shell's history.
func secretsSet(a *app) *cobra.Command {
	var variable string
	c := &cobra.Command{
		Use: "set NAME", Short: "Store a secret", Args: cobra.ExactArgs(1),
		Long: "Stores the value it reads from the standard input, without the line break at its end, or from a " +
			"variable of the environment.",
		Example: "  reeve secrets set weather_key < key.txt\n  reeve secrets set weather_key --value-from-env " +
			"WEATHER_KEY",
		RunE: func(cmd *cobra.Command, args []string) error {
			value, err := a.secretValue(variable)
			if err != nil {
				return err
			}
			return a.with(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				if err := c.Secrets().Set(ctx, args[0], value); err != nil {
					return err
				}
				return a.done("stored secret %s", args[0])
			})
		},
	}
	c.Flags().StringVar(&variable, "value-from-env", "", "the variable that holds the value")
	return c
}

func (a *app) secretValue(variable string) (string, error) {
	if variable != "" {
		if v := a.env(variable); v != "" {
			return v, nil
		}
		return "", usagef("the variable %s is not set", variable)
	}
	if f, ok := a.in.(*os.File); ok {
		if s, err := f.Stat(); err == nil && s.Mode()&os.ModeCharDevice != 0 {
			a.note("type the value, then Enter and Ctrl-D (it is shown as you type):")
		}
	}
	b, err := a.read("-")
	if err != nil {
		return "", err
	}
	v := strings.TrimSuffix(strings.TrimSuffix(string(b), "\n"), "\r")
	if v == "" {
		return "", usagef("the standard input holds no value")
	}
	return v, nil
}
