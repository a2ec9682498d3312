package automation

import (
	"context"
	"fmt"
	"time"

	"reeve"
	"reeve/internal/store"
)

// mostFixes is how often a script is repaired before it has succeeded once, and then a person is asked.
const mostFixes = 3

// OnRunsEnd decides, in the transaction that ends runs, what follows from each: an automation that failed is tried
// again, repaired or stopped, and one that succeeded is well. So there is one decision for each end, whatever crashes.
// Most runs are no automation's, and one look tells of all of them.
func (r *Runner) OnRunsEnd(ctx context.Context, tx *store.Tx, runs []reeve.Run) error {
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
			err = r.released(ctx, tx, run)
		case run.Reason == reeve.ReasonScriptJob:
			err = r.returned(ctx, tx, run)
		// tests, and what a person looks at, are nobody's task
		case noted && note.Type == reeve.ProductionRun || !noted && scripts[run.AgentID] &&
			run.State == reeve.RunFailed:
			err = r.decide(ctx, tx, run, note)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// OnWakesSkipped decides, in the transaction that skips wakes, what follows from each: a script job that nobody does,
// and a run that failed and is not made again, are a person's.
func (r *Runner) OnWakesSkipped(ctx context.Context, tx *store.Tx, wakes []reeve.Wake) error {
	var err error
	for i := 0; i < len(wakes) && err == nil; i++ {
		switch w := wakes[i]; {
		case w.Reason == reeve.ReasonScriptJob:
			err = r.undone(ctx, tx, w)
		case w.Reason == reeve.ReasonRetry:
			err = r.untried(ctx, tx, w)
		}
	}
	return err
}

// undone closes a script job whose agent was not woken.
func (r *Runner) undone(ctx context.Context, tx *store.Tx, w reeve.Wake) error {
	k, err := tx.Automations().GetScriptJob(ctx, w.WorkspaceID, w.ReasonID)
	if reeve.CodeOf(err) == reeve.NotFound || err == nil && k.RunKey != w.RunKey {
		return nil
	}
	if err != nil {
		return err
	}
	return r.conclude(ctx, tx, unserved(w), k)
}

// untried stops an automation whose failed run was to be made again, and was not.
func (r *Runner) untried(ctx context.Context, tx *store.Tx, w reeve.Wake) error {
	m, err := tx.Automations().GetAutomation(ctx, w.WorkspaceID, w.AgentID)
	if reeve.CodeOf(err) == reeve.NotFound || err == nil && (m.Failure == nil || m.Failure.RetryKey != w.RunKey) {
		return nil
	}
	if err != nil {
		return err
	}
	is, err := r.stop(ctx, tx, m, unserved(w), *m.Failure, "it was not tried again, because "+w.Why,
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

func (r *Runner) decide(ctx context.Context, tx *store.Tx, run reeve.Run, note reeve.ScriptRun) error {
	switch run.State {
	case reeve.RunCompleted:
		return r.recover(ctx, tx, run)
	case reeve.RunFailed:
		return r.route(ctx, tx, run, note)
	case reeve.RunRunning, reeve.RunParked, reeve.RunSkipped, reeve.RunCancelled, reeve.RunPaused:
	}
	return nil
}

// recover notes that an automation is well: counters begin anew, and nobody need repair anything.
func (r *Runner) recover(ctx context.Context, tx *store.Tx, run reeve.Run) error {
	if _, ok, err := tx.Runs().FindFailure(ctx, run.AgentID); err != nil || !ok {
		return err
	}
	return r.wellAgain(ctx, tx, run.AgentID, "a run succeeded meanwhile")
}

// wellAgain ends an automation's trouble, and the repairs that are under way.
func (r *Runner) wellAgain(ctx context.Context, tx *store.Tx, agent, why string) error {
	open, err := tx.Automations().OpenScriptJobs(ctx, agent)
	if err != nil {
		return err
	}
	for _, k := range open {
		if k.Kind != reeve.RepairJob {
			continue
		}
		was := k.State
		k.State, k.Message = reeve.ScriptJobStale, why
		if _, err := tx.Automations().TransitionScriptJob(ctx, was, k); err != nil {
			return err
		}
		if err := tx.Queue().EndWakes(ctx, []string{k.RunKey}, reeve.WakeSkipped, "", why); err != nil {
			return err
		}
	}
	return tx.Runs().DeleteFailure(ctx, agent)
}

// route decides what follows from a failure, by its class. Whoever saves a version at the same moment comes before it,
// or after.
func (r *Runner) route(ctx context.Context, tx *store.Tx, run reeve.Run, note reeve.ScriptRun) error {
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
	v := verdict{Runner: r, m: m, run: run, note: note, was: was}
	if is, err = v.decide(ctx, tx, is); err != nil {
		return err
	}
	return tx.Runs().PutFailure(ctx, is)
}

// root is the run that a run repeats, or the run itself.
func root(run reeve.Run) string {
	if run.Reason == reeve.ReasonRetry {
		return run.ReasonID
	}
	return run.ID
}

// verdict is one failure that is being decided on.
type verdict struct {
	*Runner
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
	return is, v.repeat(ctx, tx, v.run, is.RetryKey, at)
}

// repeat queues a run that does what another was to do. One key is one run.
func (r *Runner) repeat(ctx context.Context, tx *store.Tx, run reeve.Run, key string, at time.Time) error {
	fresh, err := tx.Queue().
		InsertWake(ctx, reeve.Wake{RunKey: key, WorkspaceID: run.WorkspaceID, AgentID: run.AgentID,
			Reason: reeve.ReasonRetry, ReasonID: root(run), SessionID: store.ManualLane + key,
			UserID: run.UserID, Input: run.Input, Origins: run.Origins, ScheduledAt: run.ScheduledAt, DueAt: at,
			State:      reeve.WakeQueued,
			OnBehalfOf: run.OnBehalfOf})
	if err != nil || !fresh {
		return err
	}
	_, err = tx.Automations().
		InsertScriptRun(ctx, reeve.ScriptRun{RunKey: key, WorkspaceID: run.WorkspaceID, AgentID: run.AgentID,
			Type: reeve.ProductionRun})
	return err
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

// stop keeps everything but a person from running the automation, and asks for one.
func (r *Runner) stop(ctx context.Context, tx *store.Tx, m reeve.Automation, run reeve.Run, is reeve.FailureState,
	why, do string) (reeve.FailureState, error) {
	now := tx.Now()
	first := is.StoppedAt == nil
	is.StoppedAt, is.RetryAt, is.RetryKey, is.ScriptJobID = &now, nil, "", ""
	if err := tx.Runs().SkipRetries(ctx, m.WorkspaceID, m.AgentID, "the automation is stopped"); err != nil || !first {
		return is, err
	}
	return is, r.tell(ctx, tx, m, run, m.Name+" is stopped: "+why,
		fmt.Sprintf("%s\n\n%s: reeve automations resume %s (run %s)", is.Message, do, m.Name, is.RunID))
}

func (v verdict) stop(ctx context.Context, tx *store.Tx, is reeve.FailureState,
	why, do string) (reeve.FailureState, error) {
	if v.was.Class != is.Class {
		is.StoppedAt = nil // another reason to be told
	}
	return v.Runner.stop(ctx, tx, v.m, v.run, is, why, do)
}

func (v verdict) tell(ctx context.Context, tx *store.Tx, title, body string) error {
	return v.Runner.tell(ctx, tx, v.m, v.run, title, body)
}

// tell notifies the automation's person: its owner, else whoever the run was for. A run tells once.
func (r *Runner) tell(ctx context.Context, tx *store.Tx, m reeve.Automation, run reeve.Run, title, body string) error {
	user := m.Owner
	if user == "" {
		user = run.UserID
	}
	if user == "" {
		return nil // nobody's; the automation shows it
	}
	_, err := tx.Queue().InsertNotificationAndEvents(ctx, reeve.Notification{ID: tx.NewID(reeve.PrefixNotification),
		WorkspaceID: m.WorkspaceID, UserID: user, RunID: run.ID, AgentID: m.AgentID, Title: title, Body: body},
		r.Webhook)
	return err
}
