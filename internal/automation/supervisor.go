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
	jobs     *Jobs
	failures failures
}

// NewSupervisor returns a supervisor that opens repairs with jobs.
func NewSupervisor(cfg Config, jobs *Jobs) *Supervisor {
	cfg.Backoff = cfg.Backoff.WithDefaults()
	return &Supervisor{Config: cfg, jobs: jobs, failures: failures{webhook: cfg.Webhook}}
}

// mostFixes is how often a script is repaired before it has succeeded once, and then a person is asked.
const mostFixes = 3

// OnRunsEnd decides, in the transaction that ends runs, what follows from each: an automation that failed is tried
// again, repaired or stopped, and one that succeeded is well. So there is one decision for each end, whatever crashes.
// Most runs are no automation's, and one look tells of all of them.
func (s *Supervisor) OnRunsEnd(ctx context.Context, tx *store.Tx, runs []reeve.Run) error {
	var keys, agents []string
	for _, run := range runs {
		if follows(run) && run.Reason != reeve.ReasonScriptJob {
			keys, agents = append(keys, run.Key), append(agents, run.AgentID)
		}
	}
	notes, scripts, err := tx.Automations().FindScriptRuns(ctx, keys, agents)
	if err != nil {
		return err
	}
	for _, run := range runs {
		note, noted := notes[run.Key]
		switch {
		case !follows(run):
		case run.State == reeve.RunPaused && run.Output == paused:
			err = s.released(ctx, tx, run)
		case run.Reason == reeve.ReasonScriptJob:
			err = s.jobs.returned(ctx, tx, run)
		// tests, and what a person looks at, are nobody's task
		case noted && note.Type == reeve.ProductionRun || !noted && scripts[run.AgentID] &&
			run.State == reeve.RunFailed:
			err = s.decide(ctx, tx, run, note)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// OnWakesSkipped decides, in the transaction that skips wakes, what follows from each: a script job that nobody does,
// and a run that failed and is not made again, are a person's.
func (s *Supervisor) OnWakesSkipped(ctx context.Context, tx *store.Tx, wakes []reeve.Wake) error {
	var err error
	for i := 0; i < len(wakes) && err == nil; i++ {
		switch w := wakes[i]; {
		case w.Reason == reeve.ReasonScriptJob:
			err = s.undone(ctx, tx, w)
		case w.Reason == reeve.ReasonRetry:
			err = s.untried(ctx, tx, w)
		}
	}
	return err
}

// undone closes a script job whose agent was not woken.
func (s *Supervisor) undone(ctx context.Context, tx *store.Tx, w reeve.Wake) error {
	k, err := tx.Automations().GetScriptJob(ctx, w.WorkspaceID, w.ReasonID)
	if reeve.CodeOf(err) == reeve.NotFound || err == nil && k.RunKey != w.RunKey {
		return nil
	}
	if err != nil {
		return err
	}
	return s.jobs.conclude(ctx, tx, unserved(w), k)
}

// untried stops an automation whose failed run was to be made again, and was not.
func (s *Supervisor) untried(ctx context.Context, tx *store.Tx, w reeve.Wake) error {
	m, err := tx.Automations().GetAutomation(ctx, w.WorkspaceID, w.AgentID)
	if reeve.CodeOf(err) == reeve.NotFound || err == nil && (m.Failure == nil || m.Failure.RetryKey != w.RunKey) {
		return nil
	}
	if err != nil {
		return err
	}
	is, err := s.failures.stop(ctx, tx, m, unserved(w), *m.Failure, "it was not tried again, because "+w.Why,
		"Resume the automation to try again")
	if err != nil {
		return err
	}
	return tx.Runs().PutFailure(ctx, is)
}

// unserved is the run that a skipped wake has not become.
func unserved(w reeve.Wake) reeve.Run {
	return reeve.Run{WorkspaceID: w.WorkspaceID, AgentID: w.AgentID, UserID: w.UserID, State: reeve.RunSkipped,
		Message: w.Why}
}

// follows tells whether something may follow from a run. Whoever waits for a step deals with it.
func follows(run reeve.Run) bool {
	return run.State.Final() && run.Reason != reeve.ReasonUser && !store.IsStep(run)
}

func (s *Supervisor) decide(ctx context.Context, tx *store.Tx, run reeve.Run, note reeve.ScriptRun) error {
	switch run.State {
	case reeve.RunCompleted:
		return s.recover(ctx, tx, run)
	case reeve.RunFailed:
		return s.route(ctx, tx, run, note)
	case reeve.RunRunning, reeve.RunParked, reeve.RunSkipped, reeve.RunCancelled, reeve.RunPaused:
	}
	return nil
}

// recover notes that an automation is well: counters begin anew, and nobody need repair anything.
func (s *Supervisor) recover(ctx context.Context, tx *store.Tx, run reeve.Run) error {
	if _, ok, err := tx.Runs().FindFailure(ctx, run.AgentID); err != nil || !ok {
		return err
	}
	return clearFailure(ctx, tx, run.AgentID, "a run succeeded meanwhile")
}

// route decides what follows from a failure, by its class. Whoever saves a version at the same moment comes before it,
// or after.
func (s *Supervisor) route(ctx context.Context, tx *store.Tx, run reeve.Run, note reeve.ScriptRun) error {
	m, err := tx.Automations().LockAutomation(ctx, run.WorkspaceID, run.AgentID)
	if reeve.CodeOf(err) == reeve.NotFound {
		return nil // it was removed while it ran
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
		note.Class, run.Code, run.Message, run.ID, root(run)
	is.RetryAt, is.RetryKey = nil, ""
	if is.Class == "" { // it did not even begin
		is.Class = reeve.ClassOf(run.Code)
	}
	v := verdict{Supervisor: s, m: m, run: run, note: note, was: was}
	if is, err = v.decide(ctx, tx, is); err != nil {
		return err
	}
	return tx.Runs().PutFailure(ctx, is)
}

// verdict is one failure that is being decided on.
type verdict struct {
	*Supervisor
	m    reeve.Automation
	run  reeve.Run
	note reeve.ScriptRun
	was  reeve.FailureState
}

func (v verdict) decide(ctx context.Context, tx *store.Tx, is reeve.FailureState) (reeve.FailureState, error) {
	aside, err := tx.Runs().LeftItemNeedingAttention(ctx, v.run.AgentID, v.run.ID)
	switch {
	case err != nil:
		return is, err
	case aside: // the next run passes over the item, so nothing need stop
		return is, v.tell(ctx, tx, v.m.Name+": an item needs you", v.run.Message+"\n\nreeve items "+v.m.Name+
			" --status needs_attention")
	case is.Class == reeve.NetworkFailure:
		return v.again(ctx, tx, is)
	case is.Class == reeve.LogicFailure:
		return v.repair(ctx, tx, is)
	case is.Class == reeve.AuthFailure:
		return v.stop(ctx, tx, is, "a credential is missing or no longer good", "Renew it, then resume the automation")
	case unanswered(is.Code):
		return v.stop(ctx, tx, is, "a model did not answer", "See to the model, then resume the automation")
	case is.Class == reeve.PermissionFailure:
		return v.stop(ctx, tx, is, "it was not allowed to",
			"Allow it, or change the script, then resume the automation")
	}
	return v.stop(ctx, tx, is, "a fault of Reeve's own, not of the script",
		"Resume the automation to try again, and report the fault if it stays")
}

// again makes a run that the network failed once more, later each time; after the last try a person is asked.
func (v verdict) again(ctx context.Context, tx *store.Tx, is reeve.FailureState) (reeve.FailureState, error) {
	if is.NetworkFailures++; is.NetworkFailures > v.Backoff.Tries {
		return v.stop(ctx, tx, is, fmt.Sprintf("the network failed it %d times in a row", is.NetworkFailures),
			"Resume the automation when what it needs can be reached")
	}
	at := tx.Now().Add(v.Backoff.After(is.NetworkFailures))
	is.RetryAt, is.RetryKey = &at, reeve.Key("wake", string(reeve.ReasonRetry), v.run.ID)
	is.StoppedAt = nil
	return is, enqueueRetry(ctx, tx, v.run, is.RetryKey, at)
}

// repair sends the maintainer to mend the version that failed: once for each version, and a few times in all.
func (v verdict) repair(ctx context.Context, tx *store.Tx, is reeve.FailureState) (reeve.FailureState, error) {
	switch {
	case v.note.ScriptID == "":
		return v.stop(ctx, tx, is, "it has no script to run", "Save one, or activate a version")
	case v.note.ScriptID != v.m.ScriptID: // somebody was faster than the failure
		return is, nil
	case v.was.ScriptJobID != "":
		return is, nil // it is under way
	case is.Repairs >= mostFixes:
		return v.stop(ctx, tx, is, fmt.Sprintf("%d repairs did not help", is.Repairs),
			"Change what it does, or its script, then resume it")
	}
	k, fresh, err := v.sendMaintainer(ctx, tx)
	if err != nil {
		return is, err
	}
	if !fresh {
		return v.stop(ctx, tx, is, "version "+v.m.Version+" was to be repaired before, and fails still",
			"Change what it does, or its script, then resume it")
	}
	is.Repairs++
	is.ScriptJobID, is.StoppedAt = k.ID, nil
	return is, nil
}

func (v verdict) stop(ctx context.Context, tx *store.Tx, is reeve.FailureState,
	why, do string) (reeve.FailureState, error) {
	if v.was.Class != is.Class {
		is.StoppedAt = nil // another reason to be told
	}
	return v.failures.stop(ctx, tx, v.m, v.run, is, why, do)
}

func (v verdict) tell(ctx context.Context, tx *store.Tx, title, body string) error {
	return v.failures.notifyOwner(ctx, tx, v.m, v.run, title, body)
}
