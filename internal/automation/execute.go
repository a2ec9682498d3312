package automation

import (
	"context"
	"encoding/json"
	"errors"
	"hash/fnv"
	"maps"
	"slices"

	"reeve"
	"reeve/internal/sandbox/js"
	"reeve/internal/store"
)

// Run executes a run of an automation with the version that the run was pinned to when it first began. A resumed run
// starts its script from the top and passes over finished items.
func (r *Runner) Run(ctx context.Context, run reeve.Run) reeve.RunEnd {
	if run.Reason == reeve.ReasonUser {
		return failedEnd(reeve.Errorf(reeve.Unsupported, "an automation cannot take part in a conversation").
			Hintf("run it with: reeve automations run"))
	}
	if r.isAbandonedStep(run) {
		return reeve.RunEnd{State: reeve.RunCancelled,
			Err: reeve.Errorf(reeve.Canceled, "the caller of this step is gone")}
	}
	w, held, err := r.prepare(ctx, run)
	if err != nil {
		return failedEnd(err)
	}
	if held != "" {
		return reeve.RunEnd{State: reeve.RunPaused, Output: held}
	}
	r.ItemRule.add(w)
	defer r.ItemRule.remove(w)
	var value json.RawMessage
	if w.record.Type == reeve.ApplyRun {
		err = w.applyPlan(ctx)
	} else {
		value, err = r.Pool.Run(ctx, w.jsScript(), r.Limits, w)
		r.recordStepValue(run, value)
	}
	return w.finish(ctx, value, err)
}

// prepare reads the version and the tools of a run, and stores the script run the first time. A non-empty held is the
// reason why the run does nothing.
func (r *Runner) prepare(ctx context.Context, run reeve.Run) (w *execution, held string, err error) {
	w = r.newExecution(ctx, run)
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
		if w.record, _, err = tx.Automations().FindScriptRun(ctx, run.Key); err != nil {
			return err
		}
		// includes calls that were approved between executions
		if w.record.Progress.Spent, err = tx.Runs().RunSpent(ctx, run.ID); err != nil {
			return err
		}
		if m.PausedAt != nil {
			if still, err := recordPausedRun(ctx, tx, run); err != nil || still {
				held = pausedOutput
				return err
			}
		}
		// a person may always start a run
		if m.Failure != nil && w.record.Type == reeve.ProductionRun && run.Reason != reeve.ReasonManual {
			held = m.Failure.BlockedReason()
		}
		if err := w.limitToDelegators(ctx, tx); err != nil {
			return err
		}
		if w.record.Type == reeve.DryRun { // a resumed dry run plans from the start
			return tx.Automations().DeletePlannedCalls(ctx, run.ID)
		}
		return nil
	})
	if err != nil || held != "" {
		return nil, held, err
	}
	r.Gate.CacheAncestry(w.run)
	w.record.Progress = reeve.Progress{Total: w.record.Progress.Total, Spent: w.record.Progress.Spent}
	if w.record.ScriptID == "" && w.record.Type != reeve.ApplyRun {
		return nil, "", reeve.Errorf(reeve.Conflict, "the automation has no active version").
			Hintf("save one with: reeve automations save")
	}
	if w.record.ScriptID != "" {
		if err := r.DB.View(ctx, func(s *store.Snap) (err error) {
			w.script, err = s.Automations().GetScript(ctx, run.WorkspaceID, w.record.ScriptID)
			return err
		}); err != nil {
			return nil, "", err
		}
	}
	tools, err := r.Gate.CallableTools(ctx, reeve.Call{Workspace: run.WorkspaceID, Agent: run.AgentID, Run: run.ID})
	if err == nil {
		err = w.nameFunctions(ctx, tools)
	}
	return w, "", err
}

// limitToDelegators limits the run to the rights of the agents and users on whose behalf its version was written.
func (w *execution) limitToDelegators(ctx context.Context, tx *store.Tx) error {
	if w.record.ScriptID == "" {
		return nil
	}
	v, err := tx.Automations().GetScript(ctx, w.run.WorkspaceID, w.record.ScriptID)
	if err != nil || len(v.OnBehalfOf) == 0 {
		return err
	}
	w.run.OnBehalfOf = reeve.JoinDelegators(w.run.OnBehalfOf, v.OnBehalfOf)
	return tx.Runs().PutDelegators(ctx, w.run)
}

// jsScript returns the script for the sandbox. Its clock and random seed derive from the run, so a resumed run sees the
// same values.
func (w *execution) jsScript() js.Script {
	seed := fnv.New64a()
	_, _ = seed.Write([]byte(w.run.Key)) // never fails
	functions := slices.AppendSeq(w.functions.functionNames(), maps.Keys(w.functions.uncallable))
	return js.Script{Source: w.script.Source, Name: "script." + w.script.Language,
		Language: js.Language(w.script.Language), Functions: functions,
		Sync: []string{getDocs}, Methods: []string{ignoreError}, Input: w.scriptInput(w.run),
		Now: w.run.StartedAt, Seed: int64(seed.Sum64() >> 1)} //nolint:gosec // one bit less always fits
}

// finish returns how the run ended. It records the end of an item that is still open.
func (w *execution) finish(ctx context.Context, value json.RawMessage, err error) reeve.RunEnd {
	end := w.decideEnd(ctx, value, err)
	w.mu.Lock()
	w.isOver = true
	if t := w.buffer.timer; t != nil {
		t.Stop()
		w.buffer.timer = nil
	}
	if o := w.openItem; o != nil && end.State == reeve.RunFailed && !o.wasDone && ctx.Err() == nil {
		state := reeve.ItemFailed
		if w.needsAttention {
			state = reeve.ItemNeedsAttention
		}
		w.record.Progress.Failed++
		w.recordItemEnd(o.Item, state, end.Err)
	}
	w.openItem = nil
	w.record.Class = ""
	if end.State == reeve.RunFailed {
		w.record.Class = w.failureClass(err, end.Err)
	}
	w.buffer.progressChanges++
	w.mu.Unlock()
	keep := context.WithoutCancel(ctx)
	if e := w.writeEnd(keep, end); e != nil {
		return failedEnd(e)
	}
	return end
}

// writeEnd writes the pending records and, for a paused run, which run the pause ended. If the automation is resumed
// before the run ends, the end of the run enqueues another: see continueIfResumed.
func (w *execution) writeEnd(ctx context.Context, end reeve.RunEnd) error {
	w.buffer.writing.Lock()
	defer w.buffer.writing.Unlock()
	err := w.DB.Update(ctx, func(tx *store.Tx) error {
		if err := w.writePending(ctx, tx, true); err != nil || end.State != reeve.RunPaused {
			return err
		}
		_, err := recordPausedRun(ctx, tx, w.run)
		return err
	})
	if err == nil {
		w.markCommitted()
	}
	return err
}

// recordPausedRun stores which run a pause ended, so that Resume continues it. It returns false if the automation is no
// longer paused. Steps are not stored: the turn that waits for a step handles its end.
func recordPausedRun(ctx context.Context, tx *store.Tx, run reeve.Run) (bool, error) {
	if store.IsStep(run) {
		return true, nil
	}
	return tx.Automations().RecordPausedRun(ctx, run.AgentID, run.ID)
}

// decideEnd returns how the run ended, from the value or the error of its script.
func (w *execution) decideEnd(ctx context.Context, value json.RawMessage, err error) reeve.RunEnd {
	w.mu.Lock()
	defer w.mu.Unlock()
	ended := reeve.CancelCause(ctx)
	switch {
	case w.end != nil:
		return *w.end
	case ended != nil: // by a person, not by a stopping server
		return reeve.RunEnd{State: reeve.RunCancelled, Err: ended}
	case ctx.Err() != nil:
		return failedEnd(reeve.Errorf(reeve.Canceled, "the server is stopping"))
	case w.fatalErr != nil:
		return failedEnd(addScriptLocation(w.fatalErr, err))
	case err != nil:
		e := reeve.AsError(err)
		var thrown *js.Error
		if errors.As(err, &thrown) {
			said := *e
			said.Message = thrown.Error()
			e = &said
		}
		return failedEnd(e)
	case w.record.Progress.Failed > 0:
		return failedEnd(reeve.Errorf(reeve.ToolFailed, "%d items failed; first error: %s", w.record.Progress.Failed,
			w.firstFailure))
	}
	out := ""
	if value != nil && string(value) != "null" && json.Unmarshal(value, &out) != nil {
		out = string(value)
	}
	return reeve.RunEnd{State: reeve.RunCompleted, Output: reeve.Truncate(out, 16<<10), Notify: out != ""}
}

// addScriptLocation adds the position in the script to the error that aborted the run, if the position is known.
func addScriptLocation(fatal, err error) error {
	var at *js.Error
	if !errors.As(err, &at) || at.Kind != js.Aborted || at.Line == 0 {
		return fatal
	}
	e := *reeve.AsError(fatal)
	e.Message = at.Error()
	return &e
}

// failureClass returns the class of a failure, which decides who can fix it. An abort is classified by its code.
// Anything that the script threw, and every exceeded limit, is a logic failure. The caller holds w.mu.
func (w *execution) failureClass(err error, e *reeve.Error) reeve.FailureClass {
	if w.fatalErr != nil {
		return reeve.FailureClassOf(reeve.CodeOf(w.fatalErr))
	}
	if isModelFailure(reeve.CodeOf(err)) { // the model of an agent that the script asked failed
		return reeve.FailureClassOf(reeve.CodeOf(err))
	}
	switch js.KindOf(err) {
	case js.Timeout, js.Memory, js.Stack, js.Output, js.Syntax, js.Stalled, js.Thrown, js.Unhandled,
		js.Compute:
		return reeve.LogicFailure
	case js.Crashed:
		return reeve.InternalFailure
	case js.Aborted, js.Canceled:
	}
	return reeve.FailureClassOf(reeve.CodeOf(e))
}

func failedEnd(err error) reeve.RunEnd {
	return reeve.RunEnd{State: reeve.RunFailed, Err: reeve.AsError(err)}
}
