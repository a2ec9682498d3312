package wake

import (
	"context"
	"time"

	"reeve"
	"reeve/internal/store"
)

const (
	mostWakes = 1000             // wakes that one run serves
	poll      = 15 * time.Second // how long work of other servers may wait for us to look
)

// Step starts up to n runs and says how long until there may be more to do. It is one transaction: a timer advances with the
// wake it queued, and wakes are taken with the run that serves them.
func (r *Room) Step(ctx context.Context, n int) (runs []reeve.Run, next time.Duration, err error) {
	err = r.DB.Update(ctx, func(tx *store.Tx) error {
		runs, next = nil, poll
		if err := r.fire(ctx, tx); err != nil {
			return err
		}
		if n > 0 {
			lost, err := tx.ClaimRuns(ctx, r.Process, n)
			if err != nil {
				return err
			}
			runs = lost
		}
		callers, err := tx.DueCallers(ctx, max(0, n-len(runs))+1)
		if err != nil {
			return err
		}
		for _, c := range callers {
			if len(runs) >= n {
				return nil
			}
			run, ok, err := r.start(ctx, tx, c)
			if err != nil {
				return err
			}
			if ok {
				runs = append(runs, run)
			}
		}
		return r.untilNext(ctx, tx, &next)
	})
	return runs, next, err
}

// untilNext finds the earliest due time that is known.
func (r *Room) untilNext(ctx context.Context, tx *store.Tx, next *time.Duration) error {
	for _, get := range []func(context.Context) (int64, bool, error){tx.NextWake, tx.NextTimer} {
		at, ok, err := get(ctx)
		if err != nil {
			return err
		}
		if ok {
			*next = min(*next, max(20*time.Millisecond, reeve.FromMillis(at).Sub(tx.Now())))
		}
	}
	return nil
}

// start makes one run of a caller's wakes. False means that there was none to make: every wake was skipped, or another server
// was faster.
func (r *Room) start(ctx context.Context, tx *store.Tx, c store.Caller) (run reeve.Run, ok bool, err error) {
	wakes, err := tx.QueuedWakes(ctx, c, mostWakes)
	if err != nil || len(wakes) == 0 {
		return run, false, err
	}
	agent, why, err := r.awake(ctx, tx, c)
	if err != nil {
		return run, false, err
	}
	var kept []reeve.Wake
	for _, w := range wakes {
		say := why
		if say == "" && !agent.Mode.Wakes(w.Reason) {
			say = "the agent is " + string(agent.Mode)
		}
		if say == "" {
			if say, err = r.unwanted(ctx, tx, w); err != nil {
				return run, false, err
			}
		}
		if say == "" {
			kept = append(kept, w)
			continue
		}
		if err := tx.EndWakes(ctx, []string{w.RunKey}, reeve.WakeSkipped, "", say); err != nil {
			return run, false, err
		}
	}
	if len(kept) == 0 {
		return run, false, nil
	}
	run = r.plan(tx, kept)
	if ok, err = tx.InsertRun(ctx, run); err != nil || !ok {
		return run, false, err
	}
	keys := make([]string, len(kept))
	for i, w := range kept {
		keys[i] = w.RunKey
	}
	return run, true, tx.EndWakes(ctx, keys, reeve.WakeTaken, run.ID, "")
}

// awake tells why a caller cannot run at all; empty means that it can.
func (r *Room) awake(ctx context.Context, tx *store.Tx, c store.Caller) (reeve.Agent, string, error) {
	a, err := tx.GetAgent(ctx, c.WorkspaceID, c.AgentID)
	if reeve.CodeOf(err) == reeve.NotFound {
		return a, "the agent is gone", nil
	}
	if err != nil {
		return a, "", err
	}
	w, err := tx.GetWorkspace(ctx, c.WorkspaceID)
	switch {
	case err != nil:
		return a, "", err
	case w.StoppedAt != nil:
		return a, "everything in the workspace is stopped", nil
	case a.StoppedAt != nil:
		return a, "the agent is stopped", nil
	case a.Lifecycle != reeve.AgentActive:
		return a, "the agent is " + string(a.Lifecycle), nil
	}
	return a, "", nil
}

// unwanted asks a subscription's predicate about what changed, as it is now that the window is over. It says why the wake is
// not wanted; empty means that it is.
func (r *Room) unwanted(ctx context.Context, tx *store.Tx, w reeve.Wake) (string, error) {
	if w.Reason != reeve.ReasonSubscription {
		return "", nil
	}
	sub, err := tx.GetSubscription(ctx, w.WorkspaceID, w.ReasonID)
	if reeve.CodeOf(err) == reeve.NotFound {
		return "the subscription is gone", nil
	}
	if err != nil || sub.Predicate == "" {
		return "", err
	}
	ids, err := tx.ChangedIDs(ctx, w.WorkspaceID, w.OperationID)
	if err != nil {
		return "", err
	}
	var found []map[string]any
	if r.Entities != nil {
		if found, err = r.Entities.Entities(ctx, &tx.Snap, w.WorkspaceID, ids); err != nil {
			return "", err
		}
	}
	holds, err := r.predicates.holds(sub.Predicate, found)
	if err != nil {
		return "the predicate is not valid", nil //nolint:nilerr // a subscription that cannot be asked must not stop the others
	}
	if !holds {
		return "the predicate does not hold", nil
	}
	return "", nil
}

// plan is the run that serves wakes: it takes its reason from the first, and everything that led to any of them.
func (r *Room) plan(tx *store.Tx, wakes []reeve.Wake) reeve.Run {
	first := wakes[0]
	run := reeve.Run{ID: tx.NewID(reeve.PrefixRun), Key: first.RunKey, WorkspaceID: first.WorkspaceID, AgentID: first.AgentID, Reason: first.Reason,
		ReasonID: first.ReasonID, SessionID: first.SessionID, UserID: first.UserID, Input: first.Input, State: reeve.RunRunning, Wakes: len(wakes),
		Attempts: 1, ScheduledAt: first.ScheduledAt, StartedAt: tx.Now(), Owner: r.Process}
	run.ThreadID = run.AgentID + ":run:" + run.ID
	if run.Reason == reeve.ReasonUser {
		run.ThreadID = run.AgentID + ":session:" + run.SessionID
	}
	seen := map[string]bool{}
	for _, w := range wakes {
		for _, o := range w.Origins {
			if !seen[o] {
				seen[o] = true
				run.Origins = append(run.Origins, o)
			}
		}
	}
	return run
}
