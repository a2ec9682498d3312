package main

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"reeve/api"
	"reeve/client"
)

func batchCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "batch AGENT FILE|-", Short: "Have an agent make several calls at once", Args: cobra.ExactArgs(2),
		Long: `Makes the calls of a JSON or YAML file, {"calls": [{"tool": ..., "args": {...}}, ...]}, as one model response does: reads run
together, others alone and in order. The exit code is that of the first call that is not done.`,
		Example:           `  echo '{"calls":[{"tool":"file_list","args":{"path":"/"}}]}' | reeve batch clerk -`,
		ValidArgsFunction: a.complete(agentNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			var b api.BatchRequest
			if err := a.document(args[1], &b); err != nil {
				return err
			}
			return a.with(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				got, err := c.Calls().Batch(ctx, args[0], b)
				if err != nil {
					return err
				}
				return a.printBatch(b, got)
			})
		},
	}
}

func (a *app) printBatch(b api.BatchRequest, got api.BatchAnswer) error {
	err := a.print(got, func(w io.Writer) {
		for i, r := range got.Results {
			state := "done"
			switch exitOf(r) {
			case exitFailed:
				state = string(r.Code)
			case exitNotDone:
				state = string(r.State)
			}
			fmt.Fprintf(w, "--- %s %s %s\n", b.Calls[i].Tool, r.CallID, state)
			printContent(w, cmp.Or(r.Content, plain(r.Message)))
		}
	})
	if err != nil {
		return err
	}
	for _, r := range got.Results {
		if code := exitOf(r); code != exitDone {
			return silent{code}
		}
	}
	return nil
}
