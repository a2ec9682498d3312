package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"reeve"
	"reeve/api"
	"reeve/client"
)

func budgetsCommand(a *app) *cobra.Command {
	list := &cobra.Command{
		Use: "list", Short: "List budgets and their use", Args: cobra.NoArgs, Example: "  reeve budgets list",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				l, err := c.Budgets().List(ctx)
				if err != nil {
					return err
				}
				return a.print(l, func(w io.Writer) {
					a.printTable(w, "SUBJECT LIMIT USED RESERVED OVER PARENT",
						rows(l.Budgets, func(b reeve.Budget) []string {
							return []string{b.Subject, formatAmount(b.Limit), formatAmount(b.Used),
								formatAmount(b.Reserved),
								string(b.OnExceed), b.Parent}
						}))
				})
			})
		},
	}
	remove := &cobra.Command{
		Use: "delete SUBJECT", Short: "Delete a budget", Args: cobra.ExactArgs(1),
		Example: "  reeve budgets delete workspace",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				if err := c.Budgets().Delete(ctx, args[0]); err != nil {
					return err
				}
				return a.printDone("deleted budget %s", args[0])
			})
		},
	}
	c := &cobra.Command{
		Use: "budgets", Short: "Limit what agents and runs can spend", Args: cobra.NoArgs, RunE: list.RunE,
		Long: `SUBJECT is workspace, agent:ID or run:ID. A call counts against the budgets of its run, of the parents
of that run, of its agent and of the workspace.`,
		Example: "  reeve budgets\n  reeve budgets set agent:agt_... --calls 100 --on-exceed park",
	}
	c.AddCommand(list, budgetsSet(a), remove)
	return c
}

func budgetsSet(a *app) *cobra.Command {
	var r api.BudgetRequest
	var onExceed string
	c := &cobra.Command{
		Use: "set SUBJECT", Short: "Set a budget", Args: cobra.ExactArgs(1),
		Long: "Sets all limits of a subject. A limit whose flag is not set is removed.",
		Example: "  reeve budgets set workspace --calls 10000\n  reeve budgets set run:nightly --millis 60000 " +
			"--on-exceed end",
		RunE: func(cmd *cobra.Command, args []string) error {
			r.OnExceed = reeve.OnExceed(onExceed)
			return a.withClient(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				b, err := c.Budgets().Set(ctx, args[0], r)
				if err != nil {
					return err
				}
				return a.print(b, func(w io.Writer) {
					printDetails(w, "subject", b.Subject, "limit", formatAmount(b.Limit),
						"used", formatAmount(b.Used), "reserved", formatAmount(b.Reserved),
						"on exceed", string(b.OnExceed), "parent", b.Parent)
				})
			})
		},
	}
	c.Flags().Int64Var(&r.Limit.Calls, "calls", 0, "maximum number of calls")
	c.Flags().Int64Var(&r.Limit.Tokens, "tokens", 0, "maximum number of model tokens")
	c.Flags().Int64Var(&r.Limit.Micros, "micros", 0, "maximum cost, in millionths of the currency")
	c.Flags().Int64Var(&r.Limit.Millis, "millis", 0, "maximum time, in milliseconds")
	c.Flags().StringVar(&r.Parent, "parent", "", "subject of a parent budget, which is charged too")
	c.Flags().StringVar(&onExceed, "on-exceed", "",
		"what happens to a call over budget: end refuses it, park asks a person (default end)")
	completeFlagValues(c, "on-exceed", []reeve.OnExceed{reeve.EndOverBudget, reeve.ParkOverBudget})
	return c
}

// formatAmount formats the fields of m that are not zero.
func formatAmount(m reeve.Amount) string {
	var parts []string
	add := func(n int64, unit string) {
		if n != 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, unit))
		}
	}
	add(m.Calls, "calls")
	add(m.Tokens, "tokens")
	add(m.Micros, "micros")
	add(m.Millis, "ms")
	return strings.Join(parts, ", ")
}
