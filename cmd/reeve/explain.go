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
		Short: "Say what each step of the gate said of a call, and why", Args: cobra.MaximumNArgs(1),
		Long: `Explains a past call by its id (msg_...) or its operation's (op_...); or, with --agent and --tool, what the gate would say of a
call now, without making it.`,
		Example: `  reeve explain msg_...
  reeve explain --agent clerk --tool file_write '{"path":"/a.txt","content":"hello"}'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if (agent == "") != (tool == "") {
				return usagef("--agent and --tool go together")
			}
			if agent == "" && len(args) == 0 {
				return usagef("name a call, or --agent and --tool")
			}
			return a.with(cmd.Context(), func(ctx context.Context, c *client.Client) (err error) {
				var x reeve.Explanation
				if agent == "" {
					x, err = c.Calls().Explain(ctx, args[0])
				} else if f.Args, err = a.arguments(args); err == nil {
					f.Tool = tool
					x, err = c.Calls().Judge(ctx, agent, f.CallRequest)
				}
				if err != nil {
					return err
				}
				return a.printExplanation(x)
			})
		},
	}
	c.Flags().StringVar(&agent, "agent", "", "of a call that is not made: who would call")
	c.Flags().StringVar(&tool, "tool", "", "of a call that is not made: what it would call")
	f.add(c)
	return c
}

func (a *app) printExplanation(x reeve.Explanation) error {
	return a.print(x, func(w io.Writer) {
		details(w, "call", x.CallID, "operation", x.OperationID, "agent", x.Agent, "tool", x.Tool)
		if x.Hypothetical {
			fmt.Fprintln(w, "Nothing was run: this is what the gate would say now.")
		}
		fmt.Fprintln(w)
		a.table(w, "STEP VERDICT WHY", rows(x.Steps, func(s reeve.Step) []string {
			return []string{s.Name, string(s.Verdict), s.Why}
		}))
		fmt.Fprintln(w)
		fmt.Fprintln(w, plain(x.Outcome))
		if x.Operation != nil {
			fmt.Fprintf(w, "The operation is %s.\n", x.Operation.State)
		}
		if p := x.Approval; p != nil {
			by := ""
			if p.DecidedBy != "" {
				by = " by " + plain(p.DecidedBy)
			}
			fmt.Fprintf(w, "The approval %s is %s%s.\n", p.ID, p.State, by)
		}
		if p := x.Proposal; p != nil {
			fmt.Fprintf(w, "The proposal %s, item %d of %s, is %s.\n", p.ID, p.Ordinal, p.SetID, p.State)
			if p.OperationID != "" {
				fmt.Fprintf(w, "It was accepted by %s, as operation %s.\n", plain(p.DecidedBy), p.OperationID)
			} else if p.DecidedBy != "" {
				fmt.Fprintf(w, "It was rejected by %s.\n", plain(p.DecidedBy))
			}
		}
	})
}
