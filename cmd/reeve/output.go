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
		Use: "output HASH", Short: "Read a stored tool output", Args: cobra.ExactArgs(1),
		Long: `Prints the whole output of a tool whose result was truncated. HASH is in the result of the call. The
bytes are printed unchanged. With --limit, a part of a text ends at a character boundary, and the
offset of the next part is printed to standard error.`,
		Example: "  reeve output 9f86d081... --offset 16384 --limit 4096",
		RunE: func(cmd *cobra.Command, args []string) error {
			if offset < 0 || limit < 0 {
				return usagef("--offset and --limit must not be negative")
			}
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				if !a.json {
					next, size, err := c.Calls().CopyOutput(ctx, a.out, args[0], offset, limit)
					if err == nil && next < size {
						a.notef("(%d of %d bytes; next part: --offset %d)", next-offset, size, next)
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
	c.Flags().IntVar(&offset, "offset", 0, "number of bytes to skip")
	c.Flags().IntVar(&limit, "limit", 0, "maximum number of bytes to print (default: all)")
	return c
}
