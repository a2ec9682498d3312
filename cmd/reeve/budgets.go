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
		Use: "list", Short: "List budgets and what was spent", Args: cobra.NoArgs, Example: "  reeve budgets list",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.with(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				l, err := c.Budgets().List(ctx)
				if err != nil {
					return err
				}
				return a.print(l, func(w io.Writer) {
					a.table(w, "SUBJECT LIMIT USED RESERVED OVER PARENT",
						rows(l.Budgets, func(b reeve.Budget) []string {
							return []string{b.Subject, amount(b.Limit), amount(b.Used), amount(b.Reserved),
								string(b.OnExceed), b.Parent}
						}))
				})
			})
		},
	}
	remove := &cobra.Command{
		Use: "delete SUBJECT", Short: "Lift a budget", Args: cobra.ExactArgs(1),
		Example: "  reeve budgets delete workspace",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				if err := c.Budgets().Delete(ctx, args[0]); err != nil {
					return err
				}
				return a.done("deleted budget %s", args[0])
			})
		},
	}
	c := &cobra.Command{
		Use: "budgets", Short: "Limit what agents and runs may spend", Args: cobra.NoArgs, RunE: list.RunE,
		Long: "SUBJECT is workspace, agent:ID or run:ID. A call draws on its run's budget, on the run's parents, " +
			"on its agent's and on the workspace's.",
		Example: "  reeve budgets\n  reeve budgets set agent:agt_... --calls 100 --over park",
	}
	c.AddCommand(list, budgetsSet(a), remove)
	return c
}

func budgetsSet(a *app) *cobra.Command {
	var r api.BudgetRequest
	var over string
	c := &cobra.Command{
		Use: "set SUBJECT", Short: "Set a budget", Args: cobra.ExactArgs(1),
		Long: "Sets all limits of a subject. A limit that is left out is none.",
		Example: "  reeve budgets set workspace --calls 10000\n  reeve budgets set run:nightly --millis 60000 --over " +
			"end",
		RunE: func(cmd *cobra.Command, args []string) error {
			r.OnExceed = reeve.OnExceed(over)
			return a.with(cmd.Context(), func(ctx context.Context, c *client.Client) error {
				b, err := c.Budgets().Set(ctx, args[0], r)
				if err != nil {
					return err
				}
				return a.print(b, func(w io.Writer) {
					details(w, "subject", b.Subject, "limit", amount(b.Limit), "used", amount(b.Used), "reserved",
						amount(b.Reserved),
						"over", string(b.OnExceed), "parent", b.Parent)
				})
			})
		},
	}
	c.Flags().Int64Var(&r.Limit.Calls, "calls", 0, "how many calls")
	c.Flags().Int64Var(&r.Limit.Tokens, "tokens", 0, "how many model tokens")
	c.Flags().Int64Var(&r.Limit.Micros, "micros", 0, "how much money, in millionths of your currency")
	c.Flags().Int64Var(&r.Limit.Millis, "millis", 0, "how much time, in milliseconds")
	c.Flags().StringVar(&r.Parent, "parent", "", "another subject it draws on")
	c.Flags().StringVar(&over, "over", "", "a call over budget: end refuses it, park asks a person (default end)")
	fixed(c, "over", []reeve.OnExceed{reeve.EndOver, reeve.ParkOver})
	return c
}

// amount writes what is not zero.
func amount(m reeve.Amount) string {
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
