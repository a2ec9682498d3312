package automation

import (
	"context"
	"encoding/json"
	"errors"
	"hash/fnv"

	"reeve"
	"reeve/internal/sandbox/js"
	"reeve/internal/store"
)

// Run runs an automation: the version that the run is pinned to since it first began. A run that is taken up again
// starts its script from the top, and passes over what is done.
func (r *Runner) Run(ctx context.Context, run reeve.Run) reeve.RunEnd {
	if run.Reason == reeve.ReasonUser {
		return failed(reeve.Errorf(reeve.Unsupported, "an automation holds no conversation").
			Hintf("run it: reeve automations run"))
	}
	if r.forsaken(run) {
		return reeve.RunEnd{State: reeve.RunCancelled,
			Err: reeve.Errorf(reeve.Canceled, "nobody waits for it any more")}
	}
	w, held, err := r.begin(ctx, run)
	if err != nil {
		return failed(err)
	}
	if held != "" {
		return reeve.RunEnd{State: reeve.RunPaused, Output: held}
	}
	r.Items.add(w)
	defer r.Items.remove(w)
	var value json.RawMessage
	if w.note.Type == reeve.ApplyRun {
		err = w.apply(ctx)
	} else {
		value, err = r.Pool.Run(ctx, w.text(), r.Limits, w)
		r.came(run, value)
	}
	return w.finish(ctx, value, err)
}

// begin reads what the run is to do, and notes it the first time. Held says why it does nothing.
func (r *Runner) begin(ctx context.Context, run reeve.Run) (w *work, held string, err error) {
	w = r.newWork(ctx, run)
	err = r.DB.Update(ctx, func(tx *store.Tx) error {
		m, err := tx.Automations().GetAutomation(ctx, run.WorkspaceID, run.AgentID)
		if err != nil {
			return err
		}
		held = ""
		note := reeve.ScriptRun{RunKey: run.Key, WorkspaceID: run.WorkspaceID, AgentID: run.AgentID,
			Type: reeve.ProductionRun}
		if _, err := tx.Automations().InsertScriptRun(ctx, note); err != nil {
			return err
		}
		if err := tx.Automations().BeginScriptRun(ctx, run.Key, run.ID, m.ScriptID); err != nil {
			return err
		}
		if w.note, _, err = tx.Automations().FindScriptRun(ctx, run.Key); err != nil {
			return err
		}
		// also what it cost while nobody ran it: an approved call
		if w.note.Progress.Spent, err = tx.Runs().RunSpent(ctx, run.ID); err != nil {
			return err
		}
		if m.PausedAt != nil {
			if still, err := noteHeld(ctx, tx, run); err != nil || still {
				held = paused
				return err
			}
		}
		// a person may always try
		if m.Failure != nil && w.note.Type == reeve.ProductionRun && run.Reason != reeve.ReasonManual {
			held = m.Failure.BlockedReason()
		}
		if err := w.narrow(ctx, tx); err != nil {
			return err
		}
		if w.note.Type == reeve.DryRun { // one that is taken up plans anew
			return tx.Automations().DeletePlannedCalls(ctx, run.ID)
		}
		return nil
	})
	if err != nil || held != "" {
		return nil, held, err
	}
	r.Gate.CacheAncestry(w.run)
	w.note.Progress = reeve.Progress{Total: w.note.Progress.Total, Spent: w.note.Progress.Spent}
	if w.note.ScriptID == "" && w.note.Type != reeve.ApplyRun {
		return nil, "", reeve.Errorf(reeve.Conflict, "the automation has no active version").
			Hintf("save one: reeve automations save")
	}
	if w.note.ScriptID != "" {
		if err := r.DB.View(ctx, func(s *store.Snap) (err error) {
			w.script, err = s.Automations().GetScript(ctx, run.WorkspaceID, w.note.ScriptID)
			return err
		}); err != nil {
			return nil, "", err
		}
	}
	tools, err := r.Gate.CallableTools(ctx, reeve.Call{Workspace: run.WorkspaceID, Agent: run.AgentID, Run: run.ID})
	w.names = nameTools(tools)
	return w, "", err
}

// narrow limits the run to the rights of those on whose behalf its version of the script was written.
func (w *work) narrow(ctx context.Context, tx *store.Tx) error {
	if w.note.ScriptID == "" {
		return nil
	}
	v, err := tx.Automations().GetScript(ctx, w.run.WorkspaceID, w.note.ScriptID)
	if err != nil || len(v.OnBehalfOf) == 0 {
		return err
	}
	w.run.OnBehalfOf = reeve.JoinDelegators(w.run.OnBehalfOf, v.OnBehalfOf)
	return tx.Runs().PutDelegators(ctx, w.run)
}

// text is the script as the sandbox takes it. Its clock and its chance are the run's: taken up again, it sees the same.
func (w *work) text() js.Script {
	seed := fnv.New64a()
	_, _ = seed.Write([]byte(w.run.Key)) // a hash takes everything
	return js.Script{Source: w.script.Source, Name: "script." + w.script.Language,
		Language: js.Language(w.script.Language), Functions: w.names.functions(), Input: w.given(w.run),
		Now: w.run.StartedAt, Seed: int64(seed.Sum64() >> 1)} //nolint:gosec // one bit less always fits
}

// finish says how the run ended, and leaves the ledger true: an item that was open is as the run left it.
func (w *work) finish(ctx context.Context, value json.RawMessage, err error) reeve.RunEnd {
	end := w.verdict(ctx, value, err)
	w.mu.Lock()
	w.over = true
	if t := w.ledger.timer; t != nil {
		t.Stop()
		w.ledger.timer = nil
	}
	if o := w.open; o != nil && end.State == reeve.RunFailed && !o.settled && ctx.Err() == nil {
		state := reeve.ItemFailed
		if w.attention {
			state = reeve.ItemNeedsAttention
		}
		w.note.Progress.Failed++
		w.close(o.Item, state, end.Err)
	}
	w.open = nil
	w.note.Class = ""
	if end.State == reeve.RunFailed {
		w.note.Class = w.class(err, end.Err)
	}
	w.ledger.moves++
	w.mu.Unlock()
	keep := context.WithoutCancel(ctx)
	if e := w.settle(keep, end); e != nil {
		return failed(e)
	}
	return end
}

// settle writes the last of the run: its ledger, and which run a pause ended. Where the automation is resumed before
// the run has ended, its end has another carry on.
func (w *work) settle(ctx context.Context, end reeve.RunEnd) error {
	w.ledger.writing.Lock()
	defer w.ledger.writing.Unlock()
	err := w.DB.Update(ctx, func(tx *store.Tx) error {
		if err := w.write(ctx, tx, true); err != nil || end.State != reeve.RunPaused {
			return err
		}
		_, err := noteHeld(ctx, tx, w.run)
		return err
	})
	if err == nil {
		w.wrote()
	}
	return err
}

// noteHeld notes that a pause ended a run, for whoever resumes the automation; false means that it is not paused any
// more. Whoever waits for a step deals with it.
func noteHeld(ctx context.Context, tx *store.Tx, run reeve.Run) (bool, error) {
	if store.IsStep(run) {
		return true, nil
	}
	return tx.Automations().RecordPausedRun(ctx, run.AgentID, run.ID)
}

// verdict says how the run ended.
func (w *work) verdict(ctx context.Context, value json.RawMessage, err error) reeve.RunEnd {
	w.mu.Lock()
	defer w.mu.Unlock()
	ended := reeve.CancelCause(ctx)
	switch {
	case w.stop != nil:
		return *w.stop
	case ended != nil: // by a person, and not by a server that stops
		return reeve.RunEnd{State: reeve.RunCancelled, Err: ended}
	case ctx.Err() != nil:
		return failed(reeve.Errorf(reeve.Canceled, "the server is stopping"))
	case w.fatal != nil:
		return failed(placed(w.fatal, err))
	case err != nil:
		e := reeve.AsError(err)
		var thrown *js.Error
		if errors.As(err, &thrown) {
			said := *e
			said.Message = thrown.Error()
			e = &said
		}
		return failed(e)
	case w.note.Progress.Failed > 0:
		return failed(reeve.Errorf(reeve.ToolFailed, "%d items failed; the first: %s", w.note.Progress.Failed,
			w.failure))
	}
	out := ""
	if value != nil && string(value) != "null" && json.Unmarshal(value, &out) != nil {
		out = string(value)
	}
	return reeve.RunEnd{State: reeve.RunCompleted, Output: reeve.Truncate(out, 16<<10), Notify: out != ""}
}

// placed says where in the script a call was made that ended the run, if that is known.
func placed(fatal, err error) error {
	var at *js.Error
	if !errors.As(err, &at) || at.Kind != js.Aborted || at.Line == 0 {
		return fatal
	}
	e := *reeve.AsError(fatal)
	e.Message = at.Error()
	return &e
}

// class says who can help. What ended the run from outside the script is known by its code, where it arose; whatever
// the script threw, or ran out of, is the script's. The caller holds w.mu.
func (w *work) class(err error, e *reeve.Error) reeve.FailureClass {
	if w.fatal != nil {
		return reeve.ClassOf(reeve.CodeOf(w.fatal))
	}
	if unanswered(reeve.CodeOf(err)) { // of an agent that it asked
		return reeve.ClassOf(reeve.CodeOf(err))
	}
	switch js.KindOf(err) {
	case js.Timeout, js.Memory, js.Stack, js.Output, js.Syntax, js.Stalled, js.Thrown, js.Unhandled:
		return reeve.LogicFailure
	case js.Crashed:
		return reeve.InternalFailure
	case js.Aborted, js.Canceled:
	}
	return reeve.ClassOf(reeve.CodeOf(e))
}

func failed(err error) reeve.RunEnd {
	return reeve.RunEnd{State: reeve.RunFailed, Err: reeve.AsError(err)}
}
