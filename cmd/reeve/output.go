package main

import (
	"bytes"
	"context"

	"github.com/spf13/cobra"

	"reeve/api"
	"reeve/client"
)

func outputCommand(a *app) *cobra.Command {
	var offset, limit int
	c := &cobra.Command{
		Use: "output HASH", Short: "Read an output that was too long to show", Args: cobra.ExactArgs(1),
		Long: "Prints a kept output, whole or in part, by the hash its result named: its bytes as they are. A " +
			"part of a text ends with a whole character, and\nstandard error says where to go on.",
		Example: "  reeve output 9f86d081... --offset 16384 --limit 4096",
		RunE: func(cmd *cobra.Command, args []string) error {
			if offset < 0 || limit < 0 {
				return usagef("--offset and --limit are never negative")
			}
			return a.with(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				if !a.json {
					next, size, err := c.Calls().CopyOutput(ctx, a.out, args[0], offset, limit)
					if err == nil && next < size {
						a.note("(%d of %d bytes; go on with --offset %d)", next-offset, size, next)
					}
					return err
				}
				var b bytes.Buffer
				next, size, err := c.Calls().CopyOutput(ctx, &b, args[0], offset, limit)
				if err != nil {
					return err
				}
				return a.print(api.NewOutputSlice(b.Bytes(), offset, next, size), nil)
			})
		},
	}
	c.Flags().IntVar(&offset, "offset", 0, "skip this many bytes")
	c.Flags().IntVar(&limit, "limit", 0, "print this many bytes at most (default: all)")
	return c
}
