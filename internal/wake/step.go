package wake

import (
	"context"
	"errors"
	"maps"
	"slices"
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

// Step starts up to n runs and says how long until there may be more to do. It is one transaction: a timer advances
// with the wake it queued, and wakes are taken with the run that serves them. Every run it gives must be given to
// Serve.
func (r *Scheduler) Step(ctx context.Context, n int) (runs []reeve.Run, next time.Duration, err error) {
	r.stepping.Lock()
	defer r.stepping.Unlock()
	unsure := r.DB.UncertainCommits() // a run may have been begun here by one of those, which nobody has handed to us
	r.mu.Lock()
	if !r.looping.Load() { // else the loop serves what was begun here
		for run, ok := r.Queue.next(); ok; run, ok = r.Queue.next() {
			r.doubt, r.fresh[run.ID] = true, true
		}
	}
	doubt := r.doubt || unsure != r.unsure
	r.doubt, r.unsure = false, unsure // whoever doubts while we look is heard by the next step
	r.mu.Unlock()
	var over []ending
	for again := true; again; { // without a wake that cannot be judged, until there is none
		runs, next, over, err = r.stepOnce(ctx, n, doubt)
		var u *unreadable
		if again = errors.As(err, &u); again {
			if err = r.putOff(ctx, u); err != nil {
				break
			}
		}
	}
	if err == nil {
		r.tell(over)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.leave()
		r.doubt = true // it may have been committed all the same
		return nil, time.Second, err
	}
	for _, run := range runs {
		r.held[run.ID] = &activeRun{}
		delete(r.fresh, run.ID)
	}
	r.found = nil
	if r.eager = len(runs) == n; r.eager && doubt {
		r.doubt = true // there may be more of ours than there was room for
	}
	return runs, next, nil
}

// stepOnce is one transaction of Step. It also gives the runs that it ended.
func (r *Scheduler) stepOnce(ctx context.Context, n int,
	doubt bool) (runs []reeve.Run, next time.Duration, over []ending, err error) {
	var bad *unreadable // which the store's own words would hide
	var now time.Time
	var timer, wake []int64 // when the next ones are due
	more := false
	err = r.DB.Update(ctx, func(tx *store.Tx) (err error) {
		runs, over, bad, now, timer, wake = nil, nil, nil, tx.Now(), nil, nil
		defer func() { errors.As(err, &bad) }()
		ahead, err := tx.Queue().DueWork(ctx, r.Process, mostTimers, n)
		if err != nil {
			return err
		}
		if ahead.Held {
			return nil
		}
		if more, err = r.fire(ctx, tx, ahead.Timers); err != nil {
			return err
		}
		if runs, over, err = r.rescue(ctx, tx, n, ahead.Left, doubt); err != nil {
			return err
		}
		if len(ahead.Timers) > 0 && len(runs) < n { // which have queued more
			if ahead.Wakes, err = tx.Queue().DueWakes(ctx, n-len(runs), nil); err != nil {
				return err
			}
		}
		if runs, err = r.begin(ctx, tx, ahead.Wakes, runs, n); err != nil || more {
			return err
		}
		return tx.Queue().QueueNextDue(ctx, &timer, &wake, len(runs) < n) // else we look again when one of them ends
	})
	if next = poll; more {
		next = 0
	}
	for _, at := range slices.Concat(timer, wake) {
		next = min(next, max(time.Millisecond, reeve.FromMillis(at).Sub(now)))
	}
	if err != nil && bad != nil {
		err = bad
	}
	return runs, next, over, err
}

// unreadable is a wake whose subscription, schedule or entities could not be read. The failure has ended the
// transaction, and without an end to it would end every other.
type unreadable struct {
	key string
	err error
}

func (u *unreadable) Error() string {
	return "what the wake " + u.key + " is about cannot be read: " + u.err.Error()
}
func (u *unreadable) Unwrap() error { return u.err }

// putOff looks at a wake that cannot be judged later, and after a few times not any more. A store that is down, or a
// caller that went away, is not the wake's fault.
func (r *Scheduler) putOff(ctx context.Context, u *unreadable) error {
	if code := reeve.CodeOf(store.UserError(u.err)); ctx.Err() != nil || code == reeve.Unavailable {
		return u.err
	}
	r.Log.Error("what a wake is about could not be read", "wake", u.key, "error", u.err)
	return r.DB.Update(ctx, func(tx *store.Tx) error {
		return tx.Queue().DelayWake(ctx, u.key, firstLook, mostLooks, "what changed could not be read")
	})
}

// rescue takes up to n runs that nobody works on: left by servers that are gone, parked and free to go on, or ours by
// the store and not in our hands. One that was taken up too often ends here. Where every run is our own and under way,
// none is looked for.
func (r *Scheduler) rescue(ctx context.Context, tx *store.Tx, n int,
	left, doubt bool) (runs []reeve.Run, over []ending, err error) {
	if n <= 0 {
		return nil, nil, nil
	}
	if doubt {
		if runs, err = r.find(ctx, tx, n); err != nil {
			return nil, nil, err
		}
	}
	if !left {
		return runs, nil, nil
	}
	lost, err := tx.Runs().ClaimRuns(ctx, r.Process, n-len(runs))
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
		over = append(over, done...)
	}
	return runs, over, nil
}

// find takes up to n runs that are ours by the store, not in our hands and not in the queue. They are in our hands from
// that moment on, so that whoever has just begun one does not serve it too.
func (r *Scheduler) find(ctx context.Context, tx *store.Tx, n int) (runs []reeve.Run, err error) {
	r.mu.Lock()
	r.leave() // what the step found that is made again
	before, fresh := maps.Clone(r.held), maps.Clone(r.fresh)
	waited := r.Queue.waiting() // a run that ends while we read was in our hands before, or in the queue
	r.mu.Unlock()
	ours, err := tx.Runs().RunsOwnedBy(ctx, r.Process)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	waiting := r.Queue.waiting()
	for _, run := range ours {
		known := before[run.ID] != nil || waited[run.ID] || waiting[run.ID]
		if !known && len(runs) < n && r.grab(run.ID) {
			run.Resumed = !r.fresh[run.ID]
			runs = append(runs, run)
			r.found = append(r.found, run.ID)
		}
		delete(fresh, run.ID)
	}
	for id := range fresh { // it has ended before anybody saw it
		delete(r.fresh, id)
	}
	return runs, nil
}

// grab takes a run into our hands, unless it is in them. The caller holds mu.
func (r *Scheduler) grab(run string) bool {
	if r.held[run] != nil {
		return false
	}
	r.held[run] = &activeRun{}
	return true
}

// leave lets go of what the step has found that comes to nothing. The caller holds mu.
func (r *Scheduler) leave() {
	for _, id := range r.found {
		delete(r.held, id)
	}
	r.found = nil
}

// begin starts runs for what is due, up to n in all.
func (r *Scheduler) begin(ctx context.Context, tx *store.Tx, due []reeve.Wake, runs []reeve.Run,
	n int) ([]reeve.Run, error) {
	for len(runs) < n && len(due) > 0 {
		most := n - len(runs)
		started, settled, err := r.start(ctx, tx, due, most)
		if err != nil {
			return nil, err
		}
		runs = append(runs, started...)
		if len(due) < most || !settled || len(started) == most {
			break
		}
		if due, err = tx.Queue().DueWakes(ctx, n-len(runs), &due[len(due)-1]); err != nil {
			return nil, err
		}
	}
	return runs, nil
}

// start makes up to n runs of due wakes, each with all that it can serve together. It tells whether any wake was
// settled: where every wake was unwanted there is no run, and where another server was faster there is not even that.
func (r *Scheduler) start(ctx context.Context, tx *store.Tx, due []reeve.Wake,
	n int) (started []reeve.Run, settled bool, err error) {
	var plans []reeve.Run
	var ends []store.WakeEnd
	var skipped []reeve.Wake
	known, err := tx.Queue().WakeContext(ctx, due)
	if err != nil {
		return nil, false, err
	}
	taken := map[string]bool{}
	for _, first := range due {
		if len(plans) == n {
			break
		}
		lane := store.Lane(first)
		if taken[lane] {
			continue
		}
		taken[lane] = true
		wakes := []reeve.Wake{first}
		if first.SessionID == "" || known.Crowded[first.SessionID] {
			if wakes, err = r.together(ctx, tx, first); err != nil {
				return nil, false, err
			}
		}
		kept, unwanted, err := r.sift(ctx, tx, known, wakes)
		if err != nil {
			return nil, false, err
		}
		skipped = append(skipped, unwanted...)
		if len(kept) == 0 {
			continue
		}
		run := r.plan(kept)
		plans = append(plans, run)
		for _, w := range kept {
			ends = append(ends, store.WakeEnd{RunKey: w.RunKey, State: reeve.WakeTaken, RunID: run.ID})
		}
	}
	made, err := tx.Runs().InsertRuns(ctx, plans)
	if err != nil {
		return nil, false, err
	}
	for _, run := range plans {
		if !made[run.ID] {
			continue
		}
		started = append(started, run)
		if unwatched(run.Reason) && !r.Planner.limits.Budget.IsZero() {
			if err := tx.Runs().PutRunBudget(ctx, run, r.Planner.limits.Budget); err != nil {
				return nil, false, err
			}
		}
	}
	ends = slices.DeleteFunc(ends, func(e store.WakeEnd) bool { return !made[e.RunID] })
	for _, w := range skipped {
		ends = append(ends, store.WakeEnd{RunKey: w.RunKey, State: w.State, Why: w.Why})
	}
	if err = tx.Queue().EndManyWakes(ctx, ends); err == nil {
		err = r.handleSkips(ctx, tx, skipped)
	}
	return started, len(ends) > 0, err
}

// sift parts the wakes that are wanted from those that are not, with the reason why.
func (r *Scheduler) sift(ctx context.Context, tx *store.Tx, known store.WakeContext,
	wakes []reeve.Wake) (kept, unwanted []reeve.Wake, err error) {
	for _, w := range wakes {
		agent, why := awake(known, w)
		if why == "" && !agent.Mode.Wakes(w.Reason) {
			why = "the agent is " + string(agent.Mode)
		}
		if why == "" {
			if why, err = r.unwanted(ctx, tx, w); err != nil {
				return nil, nil, &unreadable{w.RunKey, err}
			}
		}
		if why == "" {
			kept = append(kept, w)
		} else {
			w.State, w.Why = reeve.WakeSkipped, why
			unwanted = append(unwanted, w)
		}
	}
	return kept, unwanted, nil
}

// together reads the wakes that one run can serve with the first: all changes that wait, or all firings of one timer
// unless each is to run. What a person asks for is served alone.
func (r *Scheduler) together(ctx context.Context, tx *store.Tx, first reeve.Wake) ([]reeve.Wake, error) {
	if first.SessionID != "" {
		t, err := tx.Snap.Queue().GetTimer(ctx, first.WorkspaceID, "", first.ReasonID)
		switch {
		case reeve.CodeOf(err) == reeve.NotFound || err == nil && t.Misfire == reeve.RunAll:
			return []reeve.Wake{first}, nil
		case err != nil:
			return nil, &unreadable{first.RunKey, err}
		}
	}
	return tx.Queue().QueuedWakes(ctx, store.DueAgent{AgentID: first.AgentID, WorkspaceID: first.WorkspaceID,
		SessionID: first.SessionID}, mostWakes)
}

func byClock(r reeve.Reason) bool { return r == reeve.ReasonTimer || r == reeve.ReasonCatchup }

// unwatched tells whether a run was begun by nobody who looks on: what it may spend is limited.
func unwatched(r reeve.Reason) bool {
	return byClock(r) || r == reeve.ReasonRetry || r == reeve.ReasonScriptJob
}

// unwanted asks a subscription's predicate about what changed, as it is now that the window is over. It says why the
// wake is not wanted; empty means that it is.
func (r *Scheduler) unwanted(ctx context.Context, tx *store.Tx, w reeve.Wake) (string, error) {
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
	ids, key := []string{sub.Token.Name}, "" // who watches one thing is asked about that one
	if sub.Token.Class == reeve.SemanticKey {
		key = sub.Token.Name
	}
	if sub.Token.Class != reeve.EntityID {
		if ids, err = tx.Queue().ChangedIDs(ctx, w.WorkspaceID, w.OperationID); err != nil {
			return "", err
		}
	}
	var found []map[string]any
	if r.Entities != nil {
		agent, err := tx.Agents().GetAgent(ctx, w.WorkspaceID, w.AgentID)
		if err != nil {
			return "", err
		}
		who := store.JournalScope{Workspace: w.WorkspaceID, User: sub.UserID, Agent: w.AgentID,
			Categories: agent.Categories}
		if found, err = r.Entities.Entities(ctx, &tx.Snap, who, key, ids); err != nil {
			return "", err
		}
	}
	return r.predicates.fails(sub.Predicate, found), nil
}

// plan is the run that serves wakes: it takes its key from the first, its reason from the last, and everything that led
// to any of them. It starts now, and not when the transaction did: the run before it may have ended in between.
func (r *Scheduler) plan(wakes []reeve.Wake) reeve.Run {
	first, last := wakes[0], wakes[len(wakes)-1]
	run := reeve.Run{ID: r.DB.NewID(reeve.PrefixRun), Key: first.RunKey, WorkspaceID: first.WorkspaceID,
		AgentID: first.AgentID, Reason: last.Reason,
		ReasonID: last.ReasonID, SessionID: last.SessionID, UserID: last.UserID, Input: last.Input,
		State: reeve.RunRunning, Wakes: len(wakes),
		Attempts: 1, ScheduledAt: last.ScheduledAt, StartedAt: reeve.Now(), Owner: r.Process}
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
