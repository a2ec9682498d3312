package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"reeve"
)

const automation = "bench"

// itemScript processes input.n items with one call for each that is not done.
const itemScript = `for (let i = 0; i < input.n; i++)
  await Items.withItem('item-' + String(i + input.from).padStart(7, '0'), 'Item ' + i, async (ctx) => {
    if (!ctx.item.isDone) await Tools.call('step', { path: '/steps/' + i % 50 + '.txt', content: input.content })
  })`

// measureItems measures an automation on SQLite: items with one local effect each against sequential bare transactions,
// and the rate at which a run skips items that are done.
func measureItems(ctx context.Context, c config, t *table) {
	s := startBenchServer(ctx, filepath.Join(c.dir, "items"))
	defer s.stop()
	must(s.api.Automations().Create(ctx, reeve.AutomationRequest{Name: automation, Tools: []string{toolName},
		ScriptRequest: reeve.ScriptRequest{Source: itemScript}}))
	w := newFixture(ctx, c, onSQLite, "items")
	defer w.close()
	each, total := pick(c, 10_000, 1000), 0
	c.rounds = min(c.rounds, 3)
	got := must(alternate(ctx, c, func(ctx context.Context, _ time.Duration) (float64, error) {
		total += each
		return s.work(ctx, total-each, each)
	}, w.bareTransactions(ctx, 1, 2), w.bareTransactions(ctx, 1, 0)))
	t.compare("items with one call", "items/s", got[0], "bare transaction of four rows", got[1], atLeast(0.5))
	t.compare("items with one call", "items/s", got[0], "bare transaction, same rows", got[2], informational)
	done := must(alternate(ctx, c, func(ctx context.Context, _ time.Duration) (float64, error) {
		return s.work(ctx, 0, each)
	}))
	t.floor("items that are done, skipped", "items/s", median(done[0]), 15_000)
}

// work runs the automation over n items and returns items per second, from the start and end times of the run.
func (s *server) work(ctx context.Context, from, n int) (float64, error) {
	input := fmt.Appendf(nil, `{"from": %d, "n": %d, "content": %q}`, from, n, content)
	asked, err := s.api.Automations().Start(ctx, automation, reeve.AutomationRunRequest{Input: input})
	if err != nil {
		return 0, err
	}
	run, err := s.api.Runs().WaitForWake(ctx, *asked.Wake)
	if err != nil {
		return 0, err
	}
	ended, err := s.api.Automations().WaitForRun(ctx, automation, run.ID, func(reeve.AutomationRun) {})
	if err != nil {
		return 0, err
	}
	run = *ended.Run
	if run.State != reeve.RunCompleted {
		return 0, fmt.Errorf("the run is %s: %s", run.State, run.Message)
	}
	return float64(n) / run.FinishedAt.Sub(run.StartedAt).Seconds(), nil
}
