package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strconv"
	"time"

	"reeve"
	"reeve/internal/automation"
	"reeve/internal/sandbox/js"
	"reeve/internal/store"
	"reeve/internal/store/sqlite"
)

const (
	itemRate = 0.5      // of bare commits: items with one local effect each
	skipRate = 15_000.0 // items per second that are done already
)

// items measures an automation: items with one local effect each against bare transactions that write the same rows as such a call, one after
// the other, and how fast a run passes over items that are done.
func items(ctx context.Context, c config, t *table) (err error) {
	program, err := buildWorker(ctx, c)
	if err != nil {
		return err
	}
	pool := js.New(js.Config{Binary: program, Warm: 1})
	defer func() { err = errors.Join(err, pool.Close()) }()
	e, err := sqlite.Open(ctx, sqlite.Config{File: filepath.Join(c.dir, "items.db")})
	if err != nil {
		return err
	}
	w, err := newWorld(ctx, e)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	room := automation.New(automation.Config{DB: w.db, Log: slog.New(slog.DiscardHandler), Pool: pool, Gate: w.gate, Items: w.items})
	w.serve(ctx)
	if err := w.automate(ctx, room, `for (let i = 0; i < input.n; i++) await Items.withItem('item-' + String(i + input.from).padStart(6, '0'), 'Item ' + i, async (ctx) => {
		if (!ctx.item.isDone) await Tools.call('step', { path: '/' + i % 50, content: input.content }) })`); err != nil {
		return err
	}
	each, seen := pick(c, 10_000, 2_000), 0
	c.rounds = min(c.rounds, 3)
	fresh := func(ctx context.Context, _ time.Duration) (float64, error) {
		seen += each
		return w.worked(ctx, room, seen-each, each)
	}
	w.tool = "step"
	pattern, bare, err := w.bareItems(ctx, room)
	if err != nil {
		return err
	}
	got, err := turns(ctx, c, fresh, pattern, bare)
	if err != nil {
		return err
	}
	t.add(compare(row{Section: "items", Name: "items with one local effect", Unit: "items/s", Against: "bare store, four rows", Target: itemRate}, got[0], got[1]))
	t.add(compare(row{Section: "items", Name: "items with one local effect", Unit: "items/s", Against: "bare store, the two rows of a call"}, got[0], got[2]))
	again := func(ctx context.Context, _ time.Duration) (float64, error) { return w.worked(ctx, room, each, each) }
	limit := func(context.Context, time.Duration) (float64, error) { return skipRate, nil }
	if got, err = turns(ctx, c, again, limit); err != nil {
		return err
	}
	r := compare(row{Section: "items", Name: "items that are done, passed over", Unit: "items/s", Against: "limit", Target: 1}, got[0], got[1])
	r.PeerMedian, r.PeerCPU, r.BestRatio = 0, 0, 0
	t.add(r)
	return nil
}

// automate makes the world's agent an automation with one tool.
func (w *world) automate(ctx context.Context, room *automation.Room, source string) error {
	if err := w.db.Update(ctx, func(tx *store.Tx) error {
		a, err := tx.GetAgent(ctx, workspace, w.agent)
		if err != nil {
			return err
		}
		tool, err := tx.GetTool(ctx, workspace, "step")
		if err != nil {
			return err
		}
		return tx.Attach(ctx, a, tool, nil)
	}); err != nil {
		return err
	}
	_, err := room.Create(ctx, workspace, "", reeve.Agent{}, reeve.AutomationRequest{Name: agentName, ScriptRequest: reeve.ScriptRequest{Source: source}})
	return err
}

// bareItems write what a call of an item leaves, its run and the kind of its id included, and nothing else: in four rows, as calls did when the target was set, and as they do.
func (w *world) bareItems(ctx context.Context, room *automation.Room) (four, two lane, err error) {
	if _, err := w.worked(ctx, room, 1_000_000, 1); err != nil {
		return nil, nil, err
	}
	var last []reeve.Operation
	if err := w.db.View(ctx, func(s *store.Snap) (err error) {
		last, err = s.ListOperations(ctx, workspace, store.OperationFilter{Agent: w.agent, Limit: 1})
		return err
	}); err != nil {
		return nil, nil, err
	}
	key := func(kind string) func(int, int) string {
		return func(_, i int) string { return reeve.ItemKey(w.agent, strconv.Itoa(i), 1, kind, "", 0) }
	}
	if four, err = w.patternAs(ctx, 1, last[0].ID, key("pattern")); err == nil {
		two, err = w.bareAs(ctx, 1, last[0].ID, key("bare"))
	}
	return four, two, err
}

// worked is how many items a second one run works through, its start included. The run has a row, as every one has.
func (w *world) worked(ctx context.Context, room *automation.Room, from, n int) (float64, error) {
	id := w.db.NewID(reeve.PrefixRun)
	run := reeve.Run{ID: id, Key: id, WorkspaceID: workspace, AgentID: w.agent, Reason: reeve.ReasonManual, State: reeve.RunRunning, StartedAt: time.Now(),
		Input: fmt.Sprintf(`{"from": %d, "n": %d, "content": %q}`, from, n, content), ThreadID: reeve.RunThread(w.agent, id)}
	if err := w.db.Update(ctx, func(tx *store.Tx) error {
		if made, err := tx.InsertRun(ctx, run); err != nil || !made {
			return errors.Join(err, errors.New("the automation is running"))
		}
		return nil
	}); err != nil {
		return 0, err
	}
	start := time.Now()
	end := room.Run(ctx, run)
	took := time.Since(start).Seconds()
	if end.State != reeve.RunCompleted {
		return 0, fmt.Errorf("the run is %s: %w", end.State, end.Err)
	}
	return float64(n) / took, w.db.Update(ctx, func(tx *store.Tx) error {
		is, now := run, tx.Now()
		is.State, is.FinishedAt = reeve.RunCompleted, &now
		return tx.MoveRun(ctx, run, is)
	})
}
