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
func (w *world) bareAs(ctx context.Context, n int, operation string, name func(caller, i int) string) (_ lane, err error) {
	var op reeve.Operation
	var action, result reeve.Message
	var revision int64
	err = w.db.View(ctx, func(s *store.Snap) (err error) {
		ws, err := s.GetWorkspace(ctx, workspace)
		if err != nil {
			return err
		}
		revision = ws.Revision
		if op, err = s.GetOperation(ctx, workspace, operation); err != nil {
			return err
		}
		if action, err = s.GetMessage(ctx, workspace, op.CallID); err != nil {
			return err
		}
		result, err = s.GetMessage(ctx, workspace, op.ResultID)
		return err
	})
	if err != nil {
		return nil, err
	}
	body := []byte(content)
	return callers(n, func(ctx context.Context, caller, i int) error {
		session := fmt.Sprintf("%s:session:bare-%d-of-%d", w.agent, caller, n)
		file := path(i)
		a, r, o := action, result, op
		a.ID, o.ID, r.ID = w.db.NewID(reeve.PrefixMessage), name(caller, i), w.db.NewID(reeve.PrefixMessage)
		a.ThreadID, r.ThreadID, o.ThreadID = session, session, session
		a.OperationID, r.OperationID, r.ActionID, o.CallID, o.ResultID = o.ID, o.ID, a.ID, a.ID, r.ID
		events := []reeve.Token{{Class: reeve.SemanticKey, Name: "SESSION_FILE"}, {Class: reeve.EntityID, Name: session + file}}
		return w.db.Update(ctx, func(tx *store.Tx) error {
			if err := tx.PutSessionFile(ctx, workspace, session, file, body); err != nil {
				return err
			}
			if err := tx.AppendCall(ctx, a, r, store.Judged{Revision: revision}); err != nil {
				return err
			}
			if w.tool == "write_file" {
				if err := tx.InsertEvents(ctx, workspace, w.agent, o.ID, events); err != nil {
					return err
				}
			}
			return tx.InsertOperation(ctx, o)
		})
	}), nil
}
