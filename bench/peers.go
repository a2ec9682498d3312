package main

import (
	"context"
	"errors"
	"fmt"

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
		got, err := turns(ctx, c, w.gated(n), river.lane, bare, w.least(n))
		if err := errors.Join(err, river.stop()); err != nil {
			return err
		}
		at := fmt.Sprintf("%s, %d in flight", name, n)
		t.add(compare(row{Section: "peers", Name: at, Unit: "steps/s", Against: river.name, Target: 2}, got[0], got[1]))
		r := compare(row{}, got[0], got[2])
		theirs := dbos[name].steps[i] / dbos[name].bare[i]
		t.add(row{Section: "peers", Name: at + ", share of the bare store", Unit: "share", Ours: r.Ratio, Against: "DBOS 1.2 (as measured before)", Peer: theirs,
			Ratio: r.Ratio / theirs, BestRatio: r.BestRatio / theirs, Target: 1.5})
		t.add(compare(row{Section: "peers", Name: at + ", the bare store: the four rows of a call", Unit: "steps/s", Against: river.name}, got[2], got[1]))
		t.add(compare(row{Section: "peers", Name: at + ", the bare store: its effect's row alone", Unit: "steps/s", Against: river.name}, got[3], got[1]))
	}
	return nil
}

// least is the lane of transactions that write an effect and nothing of who did it and why: as fast as steps on this store can be, and no record of them.
func (w *world) least(n int) lane {
	body := []byte(content)
	return callers(n, func(ctx context.Context, caller, i int) error {
		session := fmt.Sprintf("%s:session:least-%d-of-%d", w.agent, caller, n)
		return w.db.Update(ctx, func(tx *store.Tx) error { return tx.PutSessionFile(ctx, workspace, session, path(i), body) })
	})
}
