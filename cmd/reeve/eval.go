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
	c := a.task("eval FILE", "Ask an agent a set of questions, and score its answers", `eval questions.yaml --agent reader
  reeve eval questions.jsonl --agent reader --parallel 8 --max-cost 2.50 --json`, cobra.ExactArgs(1), func(ctx context.Context, c *client.Client, args []string) (err error) {
		if l.parallel < 1 || l.parallel > 64 {
			return usagef("--parallel takes 1 to 64")
		}
		set, err := a.tasks(args[0])
		if err != nil {
			return err
		}
		who, err := c.Agents().Get(ctx, agent)
		if err != nil {
			return err
		}
		if out == "" {
			if out = args[0] + "." + who.Name + ".results"; args[0] == "-" {
				out = "eval." + who.Name + ".results"
			}
		}
		record, err := openRecord(out, restart)
		if err != nil {
			return err
		}
		defer func() { err = cmp.Or(err, record.file.Close()) }()
		l.micros = int64(cost * 1e6)
		x := &examiner{app: a, client: c, agent: who.ID, limits: l, record: record}
		e := evaluation{Set: cmp.Or(set.Name, args[0]), Agent: who.Name, Tasks: len(set.Tasks)}
		if e.Results, err = x.ask(ctx, set.Tasks); err != nil {
			return err
		}
		e.Limit = x.limit
		if e.sum(); e.Left == 0 {
			e.Limit = ""
		}
		if err := a.print(e, func(w io.Writer) { e.print(a, w) }); err != nil {
			return err
		}
		if e.Failed+e.Left > 0 {
			return silent{exitFailed}
		}
		return nil
	})
	c.Long = `Asks an agent each question of a task set, each in a conversation of its own, several at once, and scores the answers: exact, contains, and source recall, which is the
share of a task's sources that the answer names or that calls were made about. FILE is YAML or JSON, {"tasks": [{"id": ..., "question": ..., "answer": text or list, "sources": [...]}]},
or JSON lines with a task on each.

Outcomes are kept in --out as they come. Given again, the command goes on where it was: what is answered is not asked again, not even a question that was under way. The exit code
is 1 if a task failed or was not asked; scores do not change it.`
	f := c.Flags()
	f.StringVar(&agent, "agent", "", "who is asked")
	f.StringVar(&out, "out", "", "where outcomes are kept (default: FILE.AGENT.results)")
	f.BoolVar(&restart, "restart", false, "forget earlier outcomes and ask all again")
	f.IntVar(&l.parallel, "parallel", 4, "how many questions at once")
	f.DurationVar(&l.taskTime, "task-time", 5*time.Minute, "how long one answer may take")
	f.Int64Var(&l.taskTokens, "task-tokens", 0, "how many tokens one answer may take (default: no limit)")
	f.Int64Var(&l.tokens, "max-tokens", 0, "ask no more once that many tokens were spent (default: no limit)")
	f.Float64Var(&cost, "max-cost", 0,
		"ask no more once that much was spent, in the operator's currency (default: no limit)")
	_ = c.MarkFlagRequired("agent") // there is one
	a.suggest(c, "agent", agentNames)
	return c
}
