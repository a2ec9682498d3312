package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"reeve"
	"reeve/client"
)

func explainCommand(a *app) *cobra.Command {
	var f callFlags
	var agent, tool string
	c := &cobra.Command{
		Use:   "explain CALL | --agent AGENT --tool TOOL [JSON|@FILE|-]",
		Short: "Explain the gate's decision on a call, step by step", Args: cobra.MaximumNArgs(1),
		Long: `Explains the decision on a past call; CALL is the id of the call (msg_...) or of its operation
(op_...). With --agent and --tool, it shows how the gate would decide a call now, without making the
call.`,
		Example: `  reeve explain msg_...
  reeve explain --agent clerk --tool file_write '{"path":"/a.txt","content":"hello"}'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if (agent == "") != (tool == "") {
				return usagef("--agent and --tool must be used together")
			}
			if agent == "" && len(args) == 0 {
				return usagef("set CALL, or --agent and --tool")
			}
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client.Client) (err error) {
				var x reeve.Explanation
				if agent == "" {
					x, err = c.Calls().Explain(ctx, args[0])
				} else if f.Args, err = a.readArguments(args); err == nil {
					f.Tool = tool
					x, err = c.Calls().Preview(ctx, agent, f.CallRequest)
				}
				if err != nil {
					return err
				}
				return a.printExplanation(x)
			})
		},
	}
	c.Flags().StringVar(&agent, "agent", "", "agent of a hypothetical call")
	c.Flags().StringVar(&tool, "tool", "", "tool of a hypothetical call")
	f.register(c)
	return c
}

func (a *app) printExplanation(x reeve.Explanation) error {
	return a.print(x, func(w io.Writer) {
		printDetails(w, "call", x.CallID, "operation", x.OperationID, "agent", x.Agent, "tool", x.Tool,
			"trace", x.TraceID)
		if x.Hypothetical {
			fmt.Fprintln(w, "The call was not made. This is how the gate would decide it now.")
		}
		fmt.Fprintln(w)
		a.printTable(w, "STEP VERDICT WHY", rows(x.Steps, func(s reeve.Step) []string {
			return []string{s.Name, string(s.Verdict), s.Why}
		}))
		fmt.Fprintln(w)
		fmt.Fprintln(w, sanitize(x.Outcome))
		if x.Operation != nil {
			fmt.Fprintf(w, "The operation is %s.\n", x.Operation.State)
		}
		if p := x.Approval; p != nil {
			by := ""
			if p.DecidedBy != "" {
				by = " by " + sanitize(p.DecidedBy)
			}
			fmt.Fprintf(w, "The approval %s is %s%s.\n", p.ID, p.State, by)
		}
		if p := x.Proposal; p != nil {
			fmt.Fprintf(w, "The proposal %s, item %d of %s, is %s.\n", p.ID, p.Ordinal, p.SetID, p.State)
			if p.OperationID != "" {
				fmt.Fprintf(w, "It was accepted by %s as operation %s.\n", sanitize(p.DecidedBy), p.OperationID)
			} else if p.DecidedBy != "" {
				fmt.Fprintf(w, "It was rejected by %s.\n", sanitize(p.DecidedBy))
			}
		}
	})
}
