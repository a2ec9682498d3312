package automation

import (
	"cmp"
	"context"
	"errors"

	"reeve"
	"reeve/internal/store"
)

// Start enqueues a run that a person asked for.
func (s *Service) Start(ctx context.Context, workspace, id, user string,
	q reeve.AutomationRunRequest) (reeve.AutomationRun, error) {
	note := reeve.ScriptRun{Type: q.Type}
	if q.Type == "" {
		note.Type = reeve.ProductionRun
	}
	var m reeve.Automation
	err := s.DB.View(ctx, func(s *store.Snap) (err error) {
		if m, err = s.Automations().GetAutomation(ctx, workspace, id); err != nil {
			return err
		}
		note.ScriptID = m.ScriptID
		if q.Version != "" {
			major, minor, err := reeve.ParseVersion(q.Version)
			if err != nil {
				return err
			}
			v, err := s.Automations().GetVersion(ctx, m.AgentID, major, minor)
			if err != nil {
				return err
			}
			if note.ScriptID = v.ID; major == 0 && note.Type == reeve.ProductionRun {
				return reeve.Errorf(reeve.Conflict, "version %s is a draft", q.Version).
					Hintf("run it with type test or dry, or save it as a version")
			}
		}
		switch {
		case note.ScriptID == "":
			return reeve.Errorf(reeve.Conflict, "the automation has no active version").
				Hintf("save a version, or set version to a draft")
		case m.PausedAt != nil:
			return reeve.Errorf(reeve.Conflict, "the automation is paused").Hintf("resume it first")
		}
		return nil
	})
	if err != nil {
		return reeve.AutomationRun{}, err
	}
	return s.enqueueRun(ctx, workspace, m.AgentID, user, "", string(q.Input), note)
}

// Apply enqueues a run that performs the plan of a dry run. A plan is applied once: a repeated or concurrent request
// returns the run that applies it.
func (s *Service) Apply(ctx context.Context, workspace, run, user string) (out reeve.AutomationRun, err error) {
	var note reeve.ScriptRun
	look := func(s *store.Snap) (err error) {
		note, out, err = findApplied(ctx, s, workspace, run)
		return err
	}
	if err := s.DB.View(ctx, look); err != nil || out.AlreadyApplied {
		return out, err
	}
	note.Type, note.PlanOf = reeve.ApplyRun, run
	if out, err = s.enqueueRun(ctx, workspace, note.AgentID, user, "apply:"+run, "", note); errors.Is(err,
		errPlanApplied) {
		err = s.DB.Update(ctx, func(tx *store.Tx) error { // waits until the other request has committed
			if err := look(&tx.Snap); err != nil {
				return err
			}
			return tx.Ledger().SaveResponse(ctx, out)
		})
	}
	return out, err
}

// errPlanApplied reports that a concurrent request has applied the plan.
var errPlanApplied = errors.New("another request has applied the plan")

// findApplied reads a plan that can be applied. If it has been applied, out is the run that did so and out.Again is
// true.
func findApplied(ctx context.Context, s *store.Snap,
	workspace, run string) (note reeve.ScriptRun, out reeve.AutomationRun, err error) {
	note, ok, err := s.Automations().FindScriptRunOf(ctx, workspace, run)
	if err == nil && (!ok || note.Type != reeve.DryRun) {
		err = reeve.Errorf(reeve.NotFound, "plan %q not found", run)
	}
	if err != nil {
		return note, out, err
	}
	if out.Script, out.AlreadyApplied, err = s.Automations().FindApplied(ctx, workspace, run); err != nil {
		return note, out, err
	}
	if out.AlreadyApplied {
		w, err := s.Queue().GetWake(ctx, out.Script.RunKey)
		out.Wake = &w
		return note, out, err
	}
	v, err := s.Runs().GetRun(ctx, workspace, run)
	if err == nil && v.State != reeve.RunCompleted {
		err = reeve.Errorf(reeve.Conflict, "the plan is incomplete: its run is %s", v.State).
			Hintf("apply a plan whose dry run completed")
	}
	return note, out, err
}

// enqueueRun inserts a wake and its script run in one transaction, so a failed request leaves nothing behind. With a
// plan, out.Again reports whether the run existed before.
func (s *Service) enqueueRun(ctx context.Context, workspace, agent, user, key, input string,
	note reeve.ScriptRun) (out reeve.AutomationRun, err error) {
	err = s.DB.Update(ctx, func(tx *store.Tx) error {
		w, fresh, err := s.Waker.WakeIn(ctx, tx, reeve.Wake{WorkspaceID: workspace, AgentID: agent, UserID: user,
			Input: input}, key)
		if err == nil && fresh {
			err = insertScriptRun(ctx, tx, w, note)
		}
		if err != nil {
			return err
		}
		out.Wake, out.AlreadyApplied = &w, note.PlanOf != "" && !fresh
		if out.Script, _, err = tx.Automations().FindScriptRun(ctx, w.RunKey); err != nil {
			return err
		}
		return tx.Ledger().SaveResponse(ctx, out)
	})
	if err == nil {
		s.Waker.Wakeup()
	}
	return out, err
}

// insertScriptRun stores the version, type and plan of the run of a new wake.
func insertScriptRun(ctx context.Context, tx *store.Tx, w reeve.Wake, note reeve.ScriptRun) error {
	if note.PlanOf != "" {
		// serializes concurrent requests to apply the plan
		if err := tx.Automations().LockScriptRun(ctx, note.RunKey); err != nil {
			return err
		}
		if _, faster, err := tx.Automations().FindApplied(ctx, w.WorkspaceID, note.PlanOf); err != nil || faster {
			return cmp.Or(err, errPlanApplied)
		}
	}
	_, err := tx.Automations().
		InsertScriptRun(ctx, reeve.ScriptRun{RunKey: w.RunKey, WorkspaceID: w.WorkspaceID, AgentID: w.AgentID,
			ScriptID: note.ScriptID, Type: note.Type, PlanOf: note.PlanOf})
	return err
}
