package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
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

// items measures an automation: items with one local effect each against bare transactions that write the same rows as such an effect, one after
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
	room := automation.New(automation.Config{DB: w.db, Log: slog.New(slog.DiscardHandler), Pool: pool, Gate: w.gate})
	w.gate.ItemRule = room
	n := pick(c, 10_000, 2_000)
	source := fmt.Sprintf(`for (let i = 0; i < %d; i++) await Items.withItem('item-' + String(i).padStart(6, '0'), 'Item ' + i, async (ctx) => {
		if (!ctx.item.isDone) await Tools.call('step', { path: '/' + i %% 50, content: input }) })`, n)
	if err := w.automate(ctx, room, source); err != nil {
		return err
	}
	w.tool = "step"
	bare, err := w.bare(ctx, 1)
	if err != nil {
		return err
	}
	before, err := bare(ctx, 2*c.slice)
	if err != nil {
		return err
	}
	done, err := w.timed(ctx, room)
	if err != nil {
		return err
	}
	after, err := bare(ctx, 2*c.slice)
	if err != nil {
		return err
	}
	ours, peer := float64(n)/done.Seconds(), (before+after)/2
	t.add(row{Section: "items", Name: "items with one local effect", Unit: "items/s", Ours: ours, Against: "bare transaction", Peer: peer, Ratio: ours / peer, Target: itemRate})
	skipped, err := w.timed(ctx, room)
	if err != nil {
		return err
	}
	rate := float64(n) / skipped.Seconds()
	t.add(row{Section: "items", Name: "items that are done, passed over", Unit: "items/s", Ours: rate, Against: "limit", Peer: skipRate, Ratio: rate / skipRate, Target: 1})
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

// timed is how long one run takes.
func (w *world) timed(ctx context.Context, room *automation.Room) (time.Duration, error) {
	id := w.db.NewID(reeve.PrefixRun)
	start := time.Now()
	end := room.Run(ctx, reeve.Run{ID: id, Key: id, WorkspaceID: workspace, AgentID: w.agent, Reason: reeve.ReasonManual, Input: content, StartedAt: start, ThreadID: w.agent + ":run:" + id})
	if end.State != reeve.RunCompleted {
		return 0, fmt.Errorf("the run is %s: %w", end.State, end.Err)
	}
	return time.Since(start), nil
}
