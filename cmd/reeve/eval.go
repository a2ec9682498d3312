package main

import (
	"cmp"
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"reeve/client"
)

func evalCommand(a *app) *cobra.Command {
	var agent, out string
	var restart bool
	var l limits
	var cost float64
	c := a.serverCommand("eval FILE", "Ask an agent a set of questions and score its answers",
		`eval questions.yaml --agent reader
  reeve eval questions.jsonl --agent reader --parallel 8 --max-cost 2.50 --json`,
		cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) (err error) {
			if l.parallel < 1 || l.parallel > 64 {
				return usagef("--parallel must be between 1 and 64")
			}
			set, err := a.readTasks(args[0])
			if err != nil {
				return err
			}
			g, err := c.Agents().Get(ctx, agent)
			if err != nil {
				return err
			}
			if out == "" {
				if out = args[0] + "." + g.Name + ".results"; args[0] == "-" {
					out = "eval." + g.Name + ".results"
				}
			}
			results, err := openResultFile(out, restart)
			if err != nil {
				return err
			}
			defer func() { err = cmp.Or(err, results.file.Close()) }()
			l.micros = int64(cost * 1e6)
			x := &evaluator{app: a, client: c, agent: g.ID, limits: l, results: results}
			e := evaluation{Set: cmp.Or(set.Name, args[0]), Agent: g.Name, Tasks: len(set.Tasks)}
			if e.Results, err = x.run(ctx, set.Tasks); err != nil {
				return err
			}
			e.Limit = x.limit
			if e.summarize(); e.Left == 0 {
				e.Limit = ""
			}
			if err := a.print(e, func(w io.Writer) { e.print(a, w) }); err != nil {
				return err
			}
			if e.Failed+e.Left > 0 {
				return exitError{exitFailed}
			}
			return nil
		})
	c.Long = `Asks an agent the questions of a task set, each in its own conversation and several in parallel, and
scores the answers. The scores are exact match, contains, and source recall: the share of a task's
sources that the answer names or that the agent's calls name.

FILE is YAML or JSON, {"tasks": [{"id": ..., "question": ..., "answer": text or list, "sources":
[...]}]}, or JSON lines with one task per line (.jsonl).

Results are stored in --out as they arrive. If the command is interrupted, run it again to continue:
it does not repeat questions that were answered or sent. The exit code is 1 if a task failed or was
not asked; scores do not affect it.`
	f := c.Flags()
	f.StringVar(&agent, "agent", "", "agent to ask (required)")
	f.StringVar(&out, "out", "", "file for the results (default: FILE.AGENT.results)")
	f.BoolVar(&restart, "restart", false, "discard earlier results and ask all questions again")
	f.IntVar(&l.parallel, "parallel", 4, "number of questions to ask in parallel, 1 to 64")
	f.DurationVar(&l.taskTime, "task-time", 5*time.Minute, "maximum time per question")
	f.Int64Var(&l.taskTokens, "task-tokens", 0, "maximum number of tokens per question (default: no limit)")
	f.Int64Var(&l.tokens, "max-tokens", 0, "stop after this many tokens in total (default: no limit)")
	f.Float64Var(&cost, "max-cost", 0, "stop after this total cost, in the operator's currency (default: no limit)")
	_ = c.MarkFlagRequired("agent") // fails only if the flag does not exist
	a.completeFlag(c, "agent", agentNames)
	return c
}
