package main

import (
	"context"
	"errors"
	"fmt"

	"reeve"
	"reeve/internal/store"
)

// overhead holds a gated local call against a bare transaction that writes the same rows on the same store: what is left is
// the price of judging, running and recording.
func overhead(ctx context.Context, c config, t *table) error {
	for _, e := range engines {
		engine, err := e.open(ctx, c, "overhead")
		if err != nil {
			return err
		}
		w, err := newWorld(ctx, engine)
		if err != nil {
			return err
		}
		if err := errors.Join(w.overhead(ctx, c, e.name, t), w.close()); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) overhead(ctx context.Context, c config, name string, t *table) error {
	w.serve(ctx)
	one, err := w.bare(ctx, 1)
	if err != nil {
		return err
	}
	eight, err := w.bare(ctx, 8)
	if err != nil {
		return err
	}
	got, err := turns(ctx, c, w.gated(1), one, w.gated(8), eight)
	if err != nil {
		return err
	}
	r := row{Section: "overhead", Unit: "calls/s", Against: "bare transaction", Target: 0.7}
	r.Name = name + ", 1 caller"
	t.add(compare(r, got[0], got[1]))
	r.Name = name + ", 8 callers"
	t.add(compare(r, got[2], got[3]))
	r.Name, r.Against, r.Target = name+", 8 callers against 1", "1 caller", 1.5
	if name != "SQLite" {
		r.Target = 0 // asked of group commit, which is SQLite's
	}
	t.add(compare(r, got[2], got[0]))
	return nil
}

// written is what one gated call left, to be written again.
type written struct {
	call   store.Call
	judged store.Judged
}

// read reads what an operation left.
func (w *world) read(ctx context.Context, operation string) (v written, err error) {
	return v, w.db.View(ctx, func(s *store.Snap) error {
		ws, err := s.GetWorkspace(ctx, workspace)
		if err != nil {
			return err
		}
		v.judged.Revision = ws.Revision
		op, err := s.GetOperation(ctx, workspace, operation)
		if err != nil {
			return err
		}
		v.call, err = s.GetCall(ctx, workspace, op.CallID)
		return err
	})
}

// bare is the lane of transactions without a gate. What they write is what one gated call wrote, copied, with ids and
// sessions of their own: row for row and byte for byte as much.
func (w *world) bare(ctx context.Context, n int) (lane, error) {
	res, err := w.step(ctx, "template", 0)
	if err != nil {
		return nil, err
	}
	return w.bareAs(ctx, n, res.OperationID, func(int, int) string { return w.db.NewID(reeve.PrefixOperation) })
}

// bareAs writes the rows that an operation left, under operation ids that name gives.
func (w *world) bareAs(ctx context.Context, n int, operation string, name func(caller, i int) string) (lane, error) {
	v, err := w.read(ctx, operation)
	if err != nil {
		return nil, err
	}
	return w.writing(n, "bare", func(ctx context.Context, tx *store.Tx, session, file string, caller, i int) error {
		c, r := v.call, *v.call.Result
		o := &c.Operation
		o.CallID, o.ID, o.ThreadID, r.ID = tx.NewID(reeve.PrefixMessage), name(caller, i), session, tx.NewID(reeve.PrefixMessage)
		c.Result = &r
		if err := tx.InsertCall(ctx, c, v.judged); err != nil || w.tool != "write_file" {
			return err
		}
		return tx.InsertEvents(ctx, workspace, w.agent, o.ID, []reeve.Token{{Class: reeve.SemanticKey, Name: "SESSION_FILE"}, {Class: reeve.EntityID, Name: session + file}})
	}), nil
}

// writing is a lane of transactions that write an effect, and what else is said.
func (w *world) writing(n int, name string, more func(ctx context.Context, tx *store.Tx, session, file string, caller, i int) error) lane {
	body := []byte(content)
	return callers(n, func(ctx context.Context, caller, i int) error {
		session, file := fmt.Sprintf("%s:session:%s-%d-of-%d", w.agent, name, caller, n), path(i)
		return w.db.Update(ctx, func(tx *store.Tx) error {
			if err := tx.PutSessionFile(ctx, workspace, session, file, body); err != nil {
				return err
			}
			return more(ctx, tx, session, file, caller, i)
		})
	})
}
