package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"reeve"
	"reeve/client"
)

func outputCommand(a *app) *cobra.Command {
	var offset, limit int
	c := &cobra.Command{
		Use: "output HASH", Short: "Read an output that was too long to show", Args: cobra.ExactArgs(1),
		Long:    "Prints a kept output, whole or in part, by the hash its result named.",
		Example: "  reeve output 9f86d081... --offset 16384 --limit 4096",
		RunE: func(cmd *cobra.Command, args []string) error {
			if offset < 0 || limit < 0 {
				return usagef("--offset and --limit are never negative")
			}
			return a.with(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				if !a.json {
					_, err := c.CopyOutput(ctx, a.out, args[0], offset, limit)
					return err
				}
				var b strings.Builder
				size, err := c.CopyOutput(ctx, &b, args[0], offset, limit)
				if err != nil {
					return err
				}
				return a.print(reeve.OutputSlice{Content: b.String(), Offset: offset, Size: size}, nil)
			})
		},
	}
	c.Flags().IntVar(&offset, "offset", 0, "skip this many bytes")
	c.Flags().IntVar(&limit, "limit", 0, "print this many bytes at most (default: all)")
	return c
}
