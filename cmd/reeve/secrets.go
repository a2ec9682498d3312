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
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				l, err := c.Secrets().List(ctx)
				if err != nil {
					return err
				}
				return a.print(l, func(w io.Writer) {
					a.printTable(w, "NAME UPDATED",
						rows(l.Secrets, func(s reeve.SecretName) []string {
							return []string{s.Name, formatTime(s.UpdatedAt)}
						}))
				})
			})
		},
	}
	remove := &cobra.Command{
		Use: "delete NAME", Short: "Delete a secret", Args: cobra.ExactArgs(1),
		Example: "  reeve secrets delete weather_key",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				if err := c.Secrets().Delete(ctx, args[0]); err != nil {
					return err
				}
				return a.printDone("deleted secret %s", args[0])
			})
		},
	}
	c := &cobra.Command{
		Use: "secrets", Short: "Manage secrets that tools use", Args: cobra.NoArgs, RunE: list.RunE,
		Long: `Tools use secrets by name. The value of a secret cannot be read back, and it is removed from the
output of tools.`,
		Example: "  reeve secrets\n  reeve secrets set weather_key < key.txt",
	}
	c.AddCommand(list, secretsSet(a), remove)
	return c
}

// secretsSet returns the command that stores a secret. It takes no value as an argument, because arguments appear in
// the process list and in the shell's history.
func secretsSet(a *app) *cobra.Command {
	var variable string
	c := &cobra.Command{
		Use: "set NAME", Short: "Store a secret", Args: cobra.ExactArgs(1),
		Long: `Stores a secret. The value is read from standard input, without the line break at its end, or from an
environment variable.`,
		Example: "  reeve secrets set weather_key < key.txt\n  reeve secrets set weather_key --value-from-env " +
			"WEATHER_KEY",
		RunE: func(cmd *cobra.Command, args []string) error {
			value, err := a.readSecret(variable)
			if err != nil {
				return err
			}
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				if err := c.Secrets().Set(ctx, args[0], value); err != nil {
					return err
				}
				return a.printDone("stored secret %s", args[0])
			})
		},
	}
	c.Flags().StringVar(&variable, "value-from-env", "", "name of the environment variable that holds the value")
	return c
}

// readSecret returns the value of an environment variable, or the content of standard input if variable is empty.
func (a *app) readSecret(variable string) (string, error) {
	if variable != "" {
		if v := a.env(variable); v != "" {
			return v, nil
		}
		return "", usagef("the environment variable %s is not set", variable)
	}
	if f, ok := a.in.(*os.File); ok {
		if s, err := f.Stat(); err == nil && s.Mode()&os.ModeCharDevice != 0 {
			a.notef("type the value, then press Enter and Ctrl-D (the value is visible):")
		}
	}
	b, err := a.readInput("-")
	if err != nil {
		return "", err
	}
	v := strings.TrimSuffix(strings.TrimSuffix(string(b), "\n"), "\r")
	if v == "" {
		return "", usagef("standard input is empty")
	}
	return v, nil
}
