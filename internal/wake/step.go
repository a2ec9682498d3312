package wake

import (
	"context"
	"errors"
	"time"

	"reeve"
	"reeve/internal/store"
)

const (
	mostWakes  = 1000                   // wakes that one run serves
	mostTimers = 500                    // timers that one step fires
	poll       = 2 * time.Second        // how long work of other servers may wait for us to look
	mostLooks  = 5                      // times that what a wake is about is tried to be read
	firstLook  = 250 * time.Millisecond // before the second; doubles each time
)

// Step starts up to n runs and says how long until there may be more to do. It is one transaction: a timer advances with the
// wake it queued, and wakes are taken with the run that serves them. Every run it gives must be given to Serve.
func (r *Room) Step(ctx context.Context, n int) (runs []reeve.Run, next time.Duration, err error) {
	r.stepping.Lock()
	defer r.stepping.Unlock()
	var over []ending
	for again := true; again; { // without a wake that cannot be judged, until there is none
		runs, next, over, err = r.stepOnce(ctx, n)
		var u *unreadable
		if again = errors.As(err, &u); again {
			if err = r.putOff(ctx, u); err != nil {
				break
			}
		}
	}
	if err == nil {
		for _, done := range over {
			r.ended(done)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.doubt = true // it may have been committed all the same
		return nil, time.Second, err
	}
	for _, run := range runs {
		r.held[run.ID] = nil
	}
	if len(runs) < n {
		r.doubt = false
	}
	return runs, next, nil
}

// stepOnce is one transaction of Step. It also gives the runs that it ended.
func (r *Room) stepOnce(ctx context.Context, n int) (runs []reeve.Run, next time.Duration, over []ending, err error) {
	var bad *unreadable // which the store's own words would hide
	err = r.DB.Update(ctx, func(tx *store.Tx) (err error) {
		runs, next, over, bad = nil, poll, nil, nil
		defer func() { errors.As(err, &bad) }()
		more, err := r.fire(ctx, tx)
		if err != nil {
			return err
		}
		if runs, over, err = r.rescue(ctx, tx, n); err != nil {
			return err
		}
		callers, err := tx.DueCallers(ctx, max(0, n-len(runs)))
		if err != nil {
			return err
		}
		for _, c := range callers {
			run, ok, err := r.start(ctx, tx, c)
			if err != nil {
				return err
			}
			if ok {
				runs = append(runs, run)
			}
		}
		switch {
		case more:
			next = 0
			return nil
		case len(runs) >= n: // when one of them ends, we look again
			next, err = r.untilTimer(ctx, tx)
			return err
		}
		next, err = r.untilNext(ctx, tx)
		return err
	})
	if err != nil && bad != nil {
		err = bad
	}
	return runs, next, over, err
}

// unreadable is a wake whose subscription or entities could not be read. The failure has spoilt the transaction, and without
// an end to it would spoil every other.
type unreadable struct {
	key string
	err error
}

func (u *unreadable) Error() string {
	return "what the wake " + u.key + " is about cannot be read: " + u.err.Error()
}
func (u *unreadable) Unwrap() error { return u.err }

// putOff looks at a wake that cannot be judged later, and after a few times not any more. A store that is down, or a caller that
// went away, is not the wake's fault.
func (r *Room) putOff(ctx context.Context, u *unreadable) error {
	if code := reeve.CodeOf(store.Explain(u.err)); ctx.Err() != nil || code == reeve.Unavailable {
		return u.err
	}
	r.Log.Error("what a wake is about could not be read", "wake", u.key, "error", u.err)
	return r.DB.Update(ctx, func(tx *store.Tx) error {
		return tx.PutOffWake(ctx, u.key, firstLook, mostLooks, "what changed could not be read")
	})
}

// rescue takes up to n runs that nobody works on: left by servers that are gone, parked and free to go on, or ours by the store
// and not in our hands. One that was taken up too often ends here.
func (r *Room) rescue(ctx context.Context, tx *store.Tx, n int) (runs []reeve.Run, over []ending, err error) {
	if n <= 0 {
		return nil, nil, nil
	}
	r.mu.Lock()
	doubt := r.doubt
	r.mu.Unlock()
	if doubt {
		ours, err := tx.RunsOf(ctx, r.Process)
		if err != nil {
			return nil, nil, err
		}
		r.mu.Lock()
		for _, run := range ours {
			if _, held := r.held[run.ID]; !held && len(runs) < n {
				runs = append(runs, run)
			}
		}
		r.mu.Unlock()
	}
	lost, err := tx.ClaimRuns(ctx, r.Process, n-len(runs))
	if err != nil {
		return nil, nil, err
	}
	for _, run := range lost {
		if run.Attempts <= r.Attempts {
			runs = append(runs, run)
			continue
		}
		done, err := r.giveUp(ctx, tx, run)
		if err != nil {
			return nil, nil, err
		}
		over = append(over, done)
	}
	return runs, over, nil
}

// untilNext finds the earliest due time that is known.
func (r *Room) untilNext(ctx context.Context, tx *store.Tx) (time.Duration, error) {
	next, err := r.untilTimer(ctx, tx)
	if err != nil {
		return next, err
	}
	return soonest(ctx, tx, tx.NextWake, next)
}

func (r *Room) untilTimer(ctx context.Context, tx *store.Tx) (time.Duration, error) {
	return soonest(ctx, tx, tx.NextTimer, poll)
}

func soonest(ctx context.Context, tx *store.Tx, get func(context.Context) (int64, bool, error), next time.Duration) (time.Duration, error) {
	at, ok, err := get(ctx)
	if ok {
		next = min(next, max(time.Millisecond, reeve.FromMillis(at).Sub(tx.Now())))
	}
	return next, err
}

// start makes one run of a caller's wakes. False means that there was none to make: every wake was skipped, or another server
// was faster.
func (r *Room) start(ctx context.Context, tx *store.Tx, c store.Caller) (run reeve.Run, ok bool, err error) {
	wakes, err := r.together(ctx, tx, c)
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
				return run, false, &unreadable{w.RunKey, err}
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
	if byClock(run.Reason) && !r.Limits.Budget.IsZero() {
		if err := tx.PutRunBudget(ctx, run, r.Limits.Budget); err != nil {
			return run, false, err
		}
	}
	keys := make([]string, len(kept))
	for i, w := range kept {
		keys[i] = w.RunKey
	}
	return run, true, tx.EndWakes(ctx, keys, reeve.WakeTaken, run.ID, "")
}

// together reads the wakes that one run can serve: all changes that wait, all firings of one timer unless each is to run, or
// one demand of a person.
func (r *Room) together(ctx context.Context, tx *store.Tx, c store.Caller) ([]reeve.Wake, error) {
	if c.SessionID == "" {
		return tx.QueuedWakes(ctx, c, mostWakes)
	}
	wakes, err := tx.QueuedWakes(ctx, c, 1)
	if err != nil || len(wakes) == 0 || !byClock(wakes[0].Reason) {
		return wakes, err
	}
	t, err := tx.Snap.GetTimer(ctx, c.WorkspaceID, "", wakes[0].ReasonID)
	switch {
	case reeve.CodeOf(err) == reeve.NotFound || err == nil && t.Misfire == reeve.RunAll:
		return wakes, nil
	case err != nil:
		return nil, err
	}
	return tx.QueuedWakes(ctx, c, mostWakes)
}

func byClock(r reeve.Reason) bool { return r == reeve.ReasonTimer || r == reeve.ReasonCatchup }

// awake tells why a caller cannot run at all; empty means that it can.
func (r *Room) awake(ctx context.Context, tx *store.Tx, c store.Caller) (reeve.Agent, string, error) {
	w, err := tx.HoldWorkspace(ctx, c.WorkspaceID)
	if reeve.CodeOf(err) == reeve.NotFound {
		return reeve.Agent{}, "the workspace is gone", nil
	}
	if err != nil {
		return reeve.Agent{}, "", err
	}
	a, err := tx.GetAgent(ctx, c.WorkspaceID, c.AgentID)
	switch {
	case reeve.CodeOf(err) == reeve.NotFound:
		return a, "the agent is gone", nil
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
	ids := []string{sub.Token.Name} // who watches one thing is asked about that one
	if sub.Token.Class != reeve.EntityID {
		if ids, err = tx.ChangedIDs(ctx, w.WorkspaceID, w.OperationID); err != nil {
			return "", err
		}
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

// plan is the run that serves wakes: it takes its key from the first, its reason from the last, and everything that led to any
// of them.
func (r *Room) plan(tx *store.Tx, wakes []reeve.Wake) reeve.Run {
	first, last := wakes[0], wakes[len(wakes)-1]
	run := reeve.Run{ID: tx.NewID(reeve.PrefixRun), Key: first.RunKey, WorkspaceID: first.WorkspaceID, AgentID: first.AgentID, Reason: last.Reason,
		ReasonID: last.ReasonID, SessionID: last.SessionID, UserID: last.UserID, Input: last.Input, State: reeve.RunRunning, Wakes: len(wakes),
		Attempts: 1, ScheduledAt: last.ScheduledAt, StartedAt: tx.Now(), Owner: r.Process}
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
