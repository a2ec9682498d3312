package automation

import (
	"context"
	"fmt"

	"reeve"
	"reeve/internal/store"
)

// Supervisor decides what follows from the end of a run: a retry, a repair or a stop.
type Supervisor struct {
	Config
	jobs    *Jobs
	stopper stopper
}

// NewSupervisor returns a supervisor that opens repairs with jobs.
func NewSupervisor(cfg Config, jobs *Jobs) *Supervisor {
	cfg.Backoff = cfg.Backoff.WithDefaults()
	return &Supervisor{Config: cfg, jobs: jobs, stopper: stopper{webhook: cfg.Webhook}}
}

// maxRepairs is how often a script is repaired without a successful run before the automation is stopped.
const maxRepairs = 3

// OnRunsEnd decides what follows from the end of runs: a failed automation is retried, repaired or stopped, and a
// successful one is cleared. It runs in the transaction that ends the runs, so each end has exactly one decision, even
// after a crash. One query finds the runs of automations among them.
func (s *Supervisor) OnRunsEnd(ctx context.Context, tx *store.Tx, runs []reeve.Run) error {
	var keys, agents []string
	for _, run := range runs {
		if isSupervised(run) && run.Reason != reeve.ReasonScriptJob {
			keys, agents = append(keys, run.Key), append(agents, run.AgentID)
		}
	}
	records, scripts, err := tx.Automations().FindScriptRuns(ctx, keys, agents)
	if err != nil {
		return err
	}
	for _, run := range runs {
		record, hasRecord := records[run.Key]
		switch {
		case !isSupervised(run):
		case run.State == reeve.RunPaused && run.Output == pausedOutput:
			err = s.continueIfResumed(ctx, tx, run)
		case run.Reason == reeve.ReasonScriptJob:
			err = s.jobs.concludeRun(ctx, tx, run)
		// test and dry runs are not supervised
		case hasRecord && record.Type == reeve.ProductionRun || !hasRecord && scripts[run.AgentID] &&
			run.State == reeve.RunFailed:
			err = s.handleProductionRun(ctx, tx, run, record)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// OnWakesSkipped closes the script jobs and stops the automations whose wakes were skipped. It runs in the transaction
// that skips them.
func (s *Supervisor) OnWakesSkipped(ctx context.Context, tx *store.Tx, wakes []reeve.Wake) error {
	var err error
	for i := 0; i < len(wakes) && err == nil; i++ {
		switch w := wakes[i]; {
		case w.Reason == reeve.ReasonScriptJob:
			err = s.concludeSkippedJob(ctx, tx, w)
		case w.Reason == reeve.ReasonRetry:
			err = s.stopUnretried(ctx, tx, w)
		}
	}
	return err
}

// concludeSkippedJob closes a script job whose agent was not woken.
func (s *Supervisor) concludeSkippedJob(ctx context.Context, tx *store.Tx, w reeve.Wake) error {
	k, err := tx.Automations().GetScriptJob(ctx, w.WorkspaceID, w.ReasonID)
	if reeve.CodeOf(err) == reeve.NotFound || err == nil && k.RunKey != w.RunKey {
		return nil
	}
	if err != nil {
		return err
	}
	return s.jobs.conclude(ctx, tx, skippedRun(w), k)
}

// stopUnretried stops an automation whose retry was skipped.
func (s *Supervisor) stopUnretried(ctx context.Context, tx *store.Tx, w reeve.Wake) error {
	m, err := tx.Automations().GetAutomation(ctx, w.WorkspaceID, w.AgentID)
	if reeve.CodeOf(err) == reeve.NotFound || err == nil && (m.Failure == nil || m.Failure.RetryKey != w.RunKey) {
		return nil
	}
	if err != nil {
		return err
	}
	is, err := s.stopper.stop(ctx, tx, m, skippedRun(w), *m.Failure, "its retry was skipped because "+w.Why,
		"Resume the automation to retry")
	if err != nil {
		return err
	}
	return tx.Runs().PutFailure(ctx, is)
}

// skippedRun returns a run record for a skipped wake.
func skippedRun(w reeve.Wake) reeve.Run {
	return reeve.Run{WorkspaceID: w.WorkspaceID, AgentID: w.AgentID, UserID: w.UserID, State: reeve.RunSkipped,
		Message: w.Why}
}

// isSupervised reports whether the supervisor handles the end of a run. Turns, and steps of other runs, are handled by
// their callers.
func isSupervised(run reeve.Run) bool {
	return run.State.IsFinal() && run.Reason != reeve.ReasonUser && !store.IsStep(run)
}

func (s *Supervisor) handleProductionRun(ctx context.Context, tx *store.Tx, run reeve.Run,
	record reeve.ScriptRun) error {
	switch run.State {
	case reeve.RunCompleted:
		return s.recordSuccess(ctx, tx, run)
	case reeve.RunFailed:
		return s.handleFailure(ctx, tx, run, record)
	case reeve.RunRunning, reeve.RunParked, reeve.RunSkipped, reeve.RunCancelled, reeve.RunPaused:
	}
	return nil
}

// recordSuccess clears the failure of an automation after a successful run.
func (s *Supervisor) recordSuccess(ctx context.Context, tx *store.Tx, run reeve.Run) error {
	if _, ok, err := tx.Runs().FindFailure(ctx, run.AgentID); err != nil || !ok {
		return err
	}
	return clearFailure(ctx, tx, run.AgentID, "a run succeeded")
}

// handleFailure decides what follows from a failure, by its class. The lock orders it before or after a concurrent
// save.
func (s *Supervisor) handleFailure(ctx context.Context, tx *store.Tx, run reeve.Run, record reeve.ScriptRun) error {
	m, err := tx.Automations().LockAutomation(ctx, run.WorkspaceID, run.AgentID)
	if reeve.CodeOf(err) == reeve.NotFound {
		return nil // the automation was deleted while it ran
	}
	if err != nil {
		return err
	}
	was, _, err := tx.Runs().FindFailure(ctx, run.AgentID)
	if err != nil {
		return err
	}
	is := was
	is.AgentID, is.WorkspaceID, is.Class, is.Code, is.Message, is.RunID, is.RootID = run.AgentID, run.WorkspaceID,
		record.Class, run.Code, run.Message, run.ID, rootRun(run)
	is.RetryAt, is.RetryKey = nil, ""
	if is.Class == "" { // the run failed before its script began
		is.Class = reeve.FailureClassOf(run.Code)
	}
	v := failureDecision{Supervisor: s, automation: m, run: run, record: record, previous: was}
	if is, err = v.decide(ctx, tx, is); err != nil {
		return err
	}
	return tx.Runs().PutFailure(ctx, is)
}

// failureDecision holds one failure while its consequence is decided.
type failureDecision struct {
	*Supervisor
	automation reeve.Automation
	run        reeve.Run
	record     reeve.ScriptRun
	previous   reeve.FailureState
}

func (v failureDecision) decide(ctx context.Context, tx *store.Tx, is reeve.FailureState) (reeve.FailureState, error) {
	needsAttention, err := tx.Runs().HasItemNeedingAttention(ctx, v.run.AgentID, v.run.ID)
	switch {
	case err != nil:
		return is, err
	case needsAttention: // the next run passes over the item
		return is, v.notifyOwner(ctx, tx, v.automation.Name+": an item needs your attention", v.run.Message+
			"\n\nreeve items "+v.automation.Name+
			" --status needs_attention")
	case is.Class == reeve.NetworkFailure:
		return v.retry(ctx, tx, is)
	case is.Class == reeve.LogicFailure:
		return v.repair(ctx, tx, is)
	case is.Class == reeve.AuthFailure:
		return v.stop(ctx, tx, is, "a credential is missing or invalid", "Renew it, then resume the automation")
	case isModelFailure(is.Code):
		return v.stop(ctx, tx, is, "a model did not answer", "Check the model, then resume the automation")
	case is.Class == reeve.PermissionFailure:
		return v.stop(ctx, tx, is, "permission denied", "Allow it, or change the script, then resume the automation")
	}
	return v.stop(ctx, tx, is, "an internal error of Reeve, not of the script",
		"Resume the automation to retry, and report the error if it persists")
}

// retry enqueues a retry after a network failure, with backoff. After the last try it stops the automation.
func (v failureDecision) retry(ctx context.Context, tx *store.Tx, is reeve.FailureState) (reeve.FailureState, error) {
	if is.NetworkFailures++; is.NetworkFailures > v.Backoff.Attempts {
		return v.stop(ctx, tx, is, fmt.Sprintf("%d network failures in a row", is.NetworkFailures),
			"Resume the automation when the network is available again")
	}
	at := tx.Now().Add(v.Backoff.After(is.NetworkFailures))
	is.RetryAt, is.RetryKey = &at, reeve.DeriveID("wake", string(reeve.ReasonRetry), v.run.ID)
	is.StoppedAt = nil
	return is, enqueueRetry(ctx, tx, v.run, is.RetryKey, at)
}

// repair opens a repair of the failed version: once for each version, and at most maxRepairs times without success.
func (v failureDecision) repair(ctx context.Context, tx *store.Tx, is reeve.FailureState) (reeve.FailureState, error) {
	switch {
	case v.record.ScriptID == "":
		return v.stop(ctx, tx, is, "it has no script", "Save or activate a version")
	case v.record.ScriptID != v.automation.ScriptID: // another version was activated meanwhile
		return is, nil
	case v.previous.ScriptJobID != "":
		return is, nil // a repair is open
	case is.Repairs >= maxRepairs:
		return v.stop(ctx, tx, is, fmt.Sprintf("%d repairs did not help", is.Repairs),
			"Change its request or its script, then resume it")
	}
	k, fresh, err := v.openRepair(ctx, tx)
	if err != nil {
		return is, err
	}
	if !fresh {
		return v.stop(ctx, tx, is, "version "+v.automation.Version+" had a repair before and still fails",
			"Change its request or its script, then resume it")
	}
	is.Repairs++
	is.ScriptJobID, is.StoppedAt = k.ID, nil
	return is, nil
}

// stop is stopper.stop. It notifies the owner again if the class of the failure has changed.
func (v failureDecision) stop(ctx context.Context, tx *store.Tx, is reeve.FailureState,
	why, do string) (reeve.FailureState, error) {
	if v.previous.Class != is.Class {
		is.StoppedAt = nil // notify again: the reason has changed
	}
	return v.stopper.stop(ctx, tx, v.automation, v.run, is, why, do)
}

func (v failureDecision) notifyOwner(ctx context.Context, tx *store.Tx, title, body string) error {
	return v.stopper.notifyOwner(ctx, tx, v.automation, v.run, title, body)
}
