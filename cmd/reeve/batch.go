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
		Use: "batch AGENT FILE|-", Short: "Make several tool calls as an agent", Args: cobra.ExactArgs(2),
		Long: `Makes the calls listed in a JSON or YAML file, {"calls": [{"tool": ..., "args": {...}}, ...]}, the
same way as the calls of one model response: calls that only read run in parallel, other calls run one
at a time and in order. The exit code is that of the first call that did not succeed.`,
		Example:           `  echo '{"calls":[{"tool":"file_list","args":{"path":"/"}}]}' | reeve batch clerk -`,
		ValidArgsFunction: a.complete(agentNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			var b api.BatchRequest
			if err := a.readDocument(args[1], &b); err != nil {
				return err
			}
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				got, err := c.Calls().Batch(ctx, args[0], b)
				if err != nil {
					return err
				}
				return a.printBatch(b, got)
			})
		},
	}
}

// printBatch prints the result of each call. If a call did not succeed, it returns an exitError.
func (a *app) printBatch(b api.BatchRequest, got api.BatchResponse) error {
	err := a.print(got, func(w io.Writer) {
		for i, r := range got.Results {
			state := "done"
			switch resultExitCode(r) {
			case exitFailed:
				state = string(r.Code)
			case exitPending:
				state = string(r.State)
			}
			fmt.Fprintf(w, "--- %s %s %s\n", b.Calls[i].Tool, r.CallID, state)
			printContent(w, cmp.Or(r.Content, sanitize(r.Message)))
		}
	})
	if err != nil {
		return err
	}
	for _, r := range got.Results {
		if code := resultExitCode(r); code != exitDone {
			return exitError{code}
		}
	}
	return nil
}
