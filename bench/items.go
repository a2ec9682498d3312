package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"reeve"
)

const automation = "bench"

// itemScript works on input.n items and makes one call for each that is not done.
const itemScript = `for (let i = 0; i < input.n; i++)
  await Items.withItem('item-' + String(i + input.from).padStart(7, '0'), 'Item ' + i, async (ctx) => {
    if (!ctx.item.isDone) await Tools.call('step', { path: '/steps/' + i % 50 + '.txt', content: input.content })
  })`

// measureItems measures an automation on SQLite: items with one local effect each beside bare transactions, one after the
// other; and how fast a run passes over items that are done.
func measureItems(ctx context.Context, c config, t *table) (err error) {
	s, err := startOwn(ctx, filepath.Join(c.dir, "items"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	if _, err := s.api.CreateAutomation(ctx, reeve.AutomationRequest{Name: automation, Tools: []string{toolName},
		ScriptRequest: reeve.ScriptRequest{Source: itemScript}}); err != nil {
		return err
	}
	w, err := newWorld(ctx, c, onSQLite, "items")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	four, err := w.bare(ctx, 1, 2)
	if err != nil {
		return err
	}
	same, err := w.bare(ctx, 1, 0)
	if err != nil {
		return err
	}
	each, begun := pick(c, 10_000, 1000), 0
	c.rounds = min(c.rounds, 3)
	got, err := alternate(ctx, c, func(ctx context.Context, _ time.Duration) (float64, error) {
		begun += each
		return s.work(ctx, begun-each, each)
	}, four, same)
	if err != nil {
		return err
	}
	t.compare("items with one call", "items/s", got[0], "bare transaction of four rows", got[1], atLeast(0.5))
	t.compare("items with one call", "items/s", got[0], "bare transaction, same rows", got[2], informs)
	done, err := alternate(ctx, c, func(ctx context.Context, _ time.Duration) (float64, error) { return s.work(ctx, 0, each) })
	if err != nil {
		return err
	}
	t.floor("items that are done, passed over", "items/s", median(done[0]), 15_000)
	return nil
}

// work runs the automation over n items and returns how many it worked on per second, by the times of its run.
func (s *server) work(ctx context.Context, from, n int) (float64, error) {
	input, err := json.Marshal(map[string]any{"from": from, "n": n, "content": content})
	if err != nil {
		return 0, err
	}
	asked, err := s.api.StartAutomation(ctx, automation, reeve.AutomationRunRequest{Input: input})
	if err != nil {
		return 0, err
	}
	run, err := s.api.RunOf(ctx, *asked.Wake)
	if err != nil {
		return 0, err
	}
	ended, err := s.api.WatchRun(ctx, automation, run.ID, func(reeve.AutomationRun) {})
	if err != nil {
		return 0, err
	}
	run = *ended.Run
	if run.State != reeve.RunCompleted {
		return 0, fmt.Errorf("the run is %s: %s", run.State, run.Message)
	}
	return float64(n) / run.FinishedAt.Sub(run.StartedAt).Seconds(), nil
}
