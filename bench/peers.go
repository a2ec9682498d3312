package main

import (
	"context"
	"errors"
	"fmt"

	"reeve"
	"reeve/internal/store"
)

// dbos is DBOS Transact Go 1.2 as it was measured before: durable steps per second at 1, 8 and 32 workflows in flight, beside
// the bare store of that machine and run (our pattern: operation, two messages and state in one transaction; full sync). It
// cannot be had here, so only its ratio to the bare store can be compared.
var dbos = map[string]struct{ steps, bare [3]float64 }{
	"SQLite":     {steps: [3]float64{3300, 3200, 1500}, bare: [3]float64{7300, 12700, 9300}},
	"PostgreSQL": {steps: [3]float64{2100, 5400, 2100}, bare: [3]float64{5300, 9600, 7500}},
}

var inFlight = [3]int{1, 8, 32}

// peers compares durable steps per second. A step of ours is one gated local call; a step of River's is one resumable step
// that writes the same row and records itself in one transaction.
func peers(ctx context.Context, c config, t *table) error {
	for _, e := range engines {
		engine, err := e.open(ctx, c, "peers")
		if err != nil {
			return err
		}
		w, err := newWorld(ctx, engine)
		if err != nil {
			return err
		}
		w.tool = "step"
		if err := errors.Join(w.peers(ctx, c, e.name, t), w.close()); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) peers(ctx context.Context, c config, name string, t *table) error {
	w.serve(ctx)
	for i, n := range inFlight {
		river, err := startRiver(ctx, c, name, n)
		if err != nil {
			return err
		}
		bare, err := w.bare(ctx, n)
		if err != nil {
			return err
		}
		pattern, err := w.pattern(ctx, n)
		if err != nil {
			return err
		}
		got, err := turns(ctx, c, w.gated(n), river.lane, pattern, bare, w.least(n))
		if err := errors.Join(err, river.stop()); err != nil {
			return err
		}
		at := fmt.Sprintf("%s, %d in flight", name, n)
		t.add(compare(row{Section: "peers", Name: at, Unit: "steps/s", Against: river.name, Target: 2}, got[0], got[1]))
		r := compare(row{}, got[0], got[2])
		theirs := dbos[name].steps[i] / dbos[name].bare[i]
		t.add(row{Section: "peers", Name: at + ", share of the bare store's four rows", Unit: "share", Ours: r.Ratio, Against: "DBOS 1.2 (as measured before)", Peer: theirs,
			Ratio: r.Ratio / theirs, BestRatio: r.BestRatio / theirs, Target: 1.5})
		t.add(compare(row{Section: "peers", Name: at + ", the bare store: the two rows of a call", Unit: "steps/s", Against: river.name}, got[3], got[1]))
		t.add(compare(row{Section: "peers", Name: at + ", the bare store: its effect's row alone", Unit: "steps/s", Against: river.name}, got[4], got[1]))
	}
	return nil
}

// pattern is the lane of transactions that write what the bare store did when DBOS was measured beside it: a state, a call and two messages, each a row.
func (w *world) pattern(ctx context.Context, n int) (lane, error) {
	res, err := w.step(ctx, "pattern", 0)
	if err != nil {
		return nil, err
	}
	return w.patternAs(ctx, n, res.OperationID, func(int, int) string { return w.db.NewID(reeve.PrefixOperation) })
}

// patternAs writes what an operation left in this way, under operation ids that name gives.
func (w *world) patternAs(ctx context.Context, n int, operation string, name func(caller, i int) string) (lane, error) {
	v, err := w.read(ctx, operation)
	return w.writing(n, "pattern", func(ctx context.Context, tx *store.Tx, session, _ string, caller, i int) error {
		c, r := v.call, *v.call.Result
		o := &c.Operation
		o.CallID, o.ID, o.ThreadID, r.ID = tx.NewID(reeve.PrefixMessage), name(caller, i), session, tx.NewID(reeve.PrefixMessage)
		c.Result = &r
		if err := tx.InsertCall(ctx, c, v.judged); err != nil {
			return err
		}
		for _, text := range []string{c.Args, r.Content} {
			m := reeve.Message{ID: tx.NewID(reeve.PrefixMessage), WorkspaceID: workspace, ThreadID: session, AgentID: w.agent, Kind: reeve.Thought, Content: text, Metadata: c.Request}
			if err := tx.AppendMessage(ctx, m); err != nil {
				return err
			}
		}
		return nil
	}), err
}

// least is the lane of transactions that write an effect and nothing of who did it and why: as fast as steps on this store can be, and no record of them.
func (w *world) least(n int) lane {
	return w.writing(n, "least", func(context.Context, *store.Tx, string, string, int, int) error { return nil })
}
