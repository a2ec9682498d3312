package wake

import (
	"context"
	"slices"

	"reeve"
	"reeve/internal/store"
)

// startRuns starts runs for due wakes and appends them to runs, up to n runs in all.
func (r *Scheduler) startRuns(ctx context.Context, tx *store.Tx, due []reeve.Wake, runs []reeve.Run,
	n int) ([]reeve.Run, error) {
	for len(runs) < n && len(due) > 0 {
		limit := n - len(runs)
		started, hasEndedWakes, err := r.startBatch(ctx, tx, due, limit)
		if err != nil {
			return nil, err
		}
		runs = append(runs, started...)
		if len(due) < limit || !hasEndedWakes || len(started) == limit {
			break
		}
		if due, err = tx.Queue().DueWakes(ctx, n-len(runs), &due[len(due)-1]); err != nil {
			return nil, err
		}
	}
	return runs, nil
}

// startBatch starts up to n runs for due wakes, each with all wakes that it can serve together. It reports whether any
// wake was taken or skipped. There is no run if all wakes were skipped, or if another server started the run first.
func (r *Scheduler) startBatch(ctx context.Context, tx *store.Tx, due []reeve.Wake,
	n int) (started []reeve.Run, hasEndedWakes bool, err error) {
	var runs []reeve.Run
	var ends []store.WakeEnd
	var skipped []reeve.Wake
	known, err := tx.Queue().WakeContext(ctx, due)
	if err != nil {
		return nil, false, err
	}
	startedLanes, seenGroups := map[string]bool{}, map[string]bool{} // a lane may have wakes for several users
	for _, first := range due {
		if len(runs) == n {
			break
		}
		lane := store.Lane(first)
		group := lane + " " + first.SessionID + " " + first.UserID
		if startedLanes[lane] || seenGroups[group] {
			continue
		}
		seenGroups[group] = true
		wakes := []reeve.Wake{first}
		if first.SessionID == "" || known.Backlogged[first.SessionID] {
			if wakes, err = r.listMergeableWakes(ctx, tx, first); err != nil {
				return nil, false, err
			}
		}
		wanted, unwanted, err := r.filterWakes(ctx, tx, known, wakes)
		if err != nil {
			return nil, false, err
		}
		skipped = append(skipped, unwanted...)
		if len(wanted) == 0 {
			continue
		}
		startedLanes[lane] = true
		run := r.newRun(wanted)
		runs = append(runs, run)
		for _, w := range wanted {
			ends = append(ends, store.WakeEnd{RunKey: w.RunKey, State: reeve.WakeTaken, RunID: run.ID})
		}
	}
	inserted, err := tx.Runs().InsertRuns(ctx, runs)
	if err != nil {
		return nil, false, err
	}
	for _, run := range runs {
		if !inserted[run.ID] {
			continue
		}
		started = append(started, run)
		limits := r.Timetable.limits
		if isUnattended(run.Reason) && !limits.Budget.IsZero() &&
			(run.Reason != reeve.ReasonScriptJob || limits.LimitScriptJobs) {
			if err := tx.Runs().PutRunBudget(ctx, run, r.Timetable.limits.Budget); err != nil {
				return nil, false, err
			}
		}
	}
	ends = slices.DeleteFunc(ends, func(e store.WakeEnd) bool { return !inserted[e.RunID] })
	for _, w := range skipped {
		ends = append(ends, store.WakeEnd{RunKey: w.RunKey, State: w.State, Why: w.Why})
	}
	if err = tx.Queue().EndManyWakes(ctx, ends); err == nil {
		err = r.callSkipHandlers(ctx, tx, skipped)
	}
	return started, len(ends) > 0, err
}

// filterWakes separates the wakes to serve from the wakes to skip. Skipped wakes have their state and reason set.
func (r *Scheduler) filterWakes(ctx context.Context, tx *store.Tx, known store.WakeContext,
	wakes []reeve.Wake) (wanted, skipped []reeve.Wake, err error) {
	for _, w := range wakes {
		agent, why := getAgentStatus(known, w)
		if why == "" && !agent.Mode.Allows(w.Reason) {
			why = "the agent is " + string(agent.Mode)
		}
		if why == "" {
			if why, err = r.subscriptionSkipReason(ctx, tx, w); err != nil {
				return nil, nil, &unreadableWake{w.RunKey, err}
			}
		}
		if why == "" {
			wanted = append(wanted, w)
		} else {
			w.State, w.Why = reeve.WakeSkipped, why
			skipped = append(skipped, w)
		}
	}
	return wanted, skipped, nil
}

// getAgentStatus returns the status of a wake's agent, and the reason why the agent cannot run. An empty reason means
// that it can.
func getAgentStatus(known store.WakeContext, w reeve.Wake) (status store.AgentStatus, skipReason string) {
	if known.Corrupt[w.WorkspaceID] || known.Corrupt[w.AgentID] {
		return store.AgentStatus{},
			"the database row of the agent or workspace cannot be read; run reeve doctor for details"
	}
	ws, ok := known.Workspaces[w.WorkspaceID]
	if !ok {
		return store.AgentStatus{}, "the workspace is gone"
	}
	a, ok := known.Agents[w.AgentID]
	switch {
	case !ok || a.WorkspaceID != w.WorkspaceID:
		return a, "the agent is gone"
	case ws.StoppedAt != nil:
		return a, "everything in the workspace is stopped"
	case a.Stopped:
		return a, "the agent is stopped"
	case a.Lifecycle != reeve.AgentActive:
		return a, "the agent is " + string(a.Lifecycle)
	}
	return a, ""
}

// subscriptionSkipReason evaluates the predicate of a subscription on the changed entities as they are now, after the
// debounce window. It returns the reason why the wake is not wanted, or an empty string.
func (r *Scheduler) subscriptionSkipReason(ctx context.Context, tx *store.Tx, w reeve.Wake) (string, error) {
	if w.Reason != reeve.ReasonSubscription {
		return "", nil
	}
	sub, err := tx.Queue().GetSubscription(ctx, w.WorkspaceID, w.ReasonID)
	if reeve.CodeOf(err) == reeve.NotFound {
		return "the subscription is gone", nil
	}
	if err != nil || sub.Predicate == "" {
		return "", err
	}
	ids, key := []string{sub.Token.Name}, "" // a subscription to one entity evaluates that entity
	if sub.Token.Class == reeve.SemanticKey {
		key = sub.Token.Name
	}
	if sub.Token.Class != reeve.EntityID {
		if ids, err = tx.Queue().ChangedIDs(ctx, w.WorkspaceID, w.OperationID); err != nil {
			return "", err
		}
	}
	var entities []map[string]any
	if r.Entities != nil {
		agent, err := tx.Agents().GetAgent(ctx, w.WorkspaceID, w.AgentID)
		if err != nil {
			return "", err
		}
		scope := store.JournalScope{Workspace: w.WorkspaceID, User: sub.UserID, Agent: w.AgentID,
			Categories: agent.Categories}
		if entities, err = r.Entities.Entities(ctx, &tx.Snap, scope, key, ids); err != nil {
			return "", err
		}
	}
	return r.predicates.explainMismatch(sub.Predicate, entities), nil
}

// listMergeableWakes returns the wakes that one run can serve together with first: all queued changes of an agent that
// wake it for the same user, or all queued firings of a timer, unless its misfire policy is RunAllMissed. A manual wake
// is served alone.
func (r *Scheduler) listMergeableWakes(ctx context.Context, tx *store.Tx, first reeve.Wake) ([]reeve.Wake, error) {
	if first.SessionID != "" {
		t, err := tx.Snap.Queue().GetTimer(ctx, first.WorkspaceID, "", first.ReasonID)
		switch {
		case reeve.CodeOf(err) == reeve.NotFound || err == nil && t.Misfire == reeve.RunAllMissed:
			return []reeve.Wake{first}, nil
		case err != nil:
			return nil, &unreadableWake{first.RunKey, err}
		}
	}
	return tx.Queue().QueuedWakes(ctx, store.DueAgent{AgentID: first.AgentID, WorkspaceID: first.WorkspaceID,
		SessionID: first.SessionID, UserID: first.UserID}, maxWakesPerRun)
}

// newRun returns the run that serves wakes. Its key is that of the first wake, and its reason and input are those of
// the last. Origins and delegators are those of all wakes. StartedAt is the current time and not the time of the
// transaction, because the previous run of the agent may have ended since the transaction began.
func (r *Scheduler) newRun(wakes []reeve.Wake) reeve.Run {
	first, last := wakes[0], wakes[len(wakes)-1]
	run := reeve.Run{
		ID: r.DB.NewID(reeve.PrefixRun), Key: first.RunKey, WorkspaceID: first.WorkspaceID, AgentID: first.AgentID,
		Reason: last.Reason, ReasonID: last.ReasonID, SessionID: last.SessionID, UserID: last.UserID,
		Input: last.Input, State: reeve.RunRunning, Wakes: len(wakes), Attempts: 1, ScheduledAt: last.ScheduledAt,
		StartedAt: reeve.Now(), Owner: r.Process,
	}
	run.ThreadID = reeve.RunThread(run.AgentID, run.ID)
	if run.Reason == reeve.ReasonUser {
		run.ThreadID = reeve.SessionThread(run.AgentID, run.SessionID)
	}
	seen := map[string]bool{}
	for _, w := range wakes {
		run.OnBehalfOf = reeve.JoinDelegators(run.OnBehalfOf, w.OnBehalfOf)
		for _, o := range w.Origins {
			if !seen[o] {
				seen[o] = true
				run.Origins = append(run.Origins, o)
			}
		}
	}
	return run
}

// isTimerReason reports whether a timer caused a run.
func isTimerReason(r reeve.Reason) bool { return r == reeve.ReasonTimer || r == reeve.ReasonCatchup }

// isUnattended reports whether a run starts without a person who watches it. The run budget applies to such runs.
func isUnattended(r reeve.Reason) bool {
	return isTimerReason(r) || r == reeve.ReasonRetry || r == reeve.ReasonScriptJob
}
