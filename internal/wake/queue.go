package wake

import (
	"context"
	"sync"

	"reeve"
	"reeve/internal/notify"
	"reeve/internal/store"
)

// Queue takes requests for runs: wakes, which are rows, and runs that were begun already and only have to be served. It
// needs no brain, so the parts that ask for runs are made with it, and the Scheduler that works it off is made last.
type Queue struct {
	db     *store.DB
	nudged notify.Signal // there may be a wake to look for

	mu      sync.Mutex
	begun   []reeve.Run   // runs that wait to be served, the oldest first
	arrived notify.Signal // a run was added to them
}

// NewQueue makes an empty queue.
func NewQueue(db *store.DB) *Queue {
	return &Queue{db: db, nudged: notify.New(), arrived: notify.New()}
}

// Wakeup makes the scheduler look for due wakes now. A nudge while it looks is not lost.
func (q *Queue) Wakeup() { q.nudged.Notify() }

// Enqueue hands a run to the scheduler that this process has begun and owns in the store: a turn, which waits for no
// other run. When the scheduler does not loop, its next Step serves the run.
func (q *Queue) Enqueue(run reeve.Run) {
	q.mu.Lock()
	q.begun = append(q.begun, run)
	q.mu.Unlock()
	q.arrived.Notify()
}

// next removes the oldest run that waits to be served. False means that none does.
func (q *Queue) next() (run reeve.Run, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.begun) == 0 {
		return run, false
	}
	run, q.begun = q.begun[0], q.begun[1:]
	return run, true
}

// waiting returns the ids of the runs that wait to be served.
func (q *Queue) waiting() map[string]bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	ids := make(map[string]bool, len(q.begun))
	for _, run := range q.begun {
		ids[run.ID] = true
	}
	return ids
}

// Wake asks for a run of an agent by hand. The same key again gives the same wake, as it is by then.
func (q *Queue) Wake(ctx context.Context, workspace, agent, user, key, input string) (w reeve.Wake, err error) {
	err = q.db.Update(ctx, func(tx *store.Tx) error {
		w, _, err = q.WakeIn(ctx, tx, reeve.Wake{WorkspaceID: workspace, AgentID: agent, UserID: user, Input: input},
			key)
		return err
	})
	if err == nil {
		q.Wakeup()
	}
	return w, err
}

// WakeIn is Wake as a part of the caller's transaction. The caller nudges when that is committed. The wake says whom to
// wake, for which user, with what input and on whose behalf. WakeIn tells whether it is new.
func (q *Queue) WakeIn(ctx context.Context, tx *store.Tx, w reeve.Wake,
	key string) (_ reeve.Wake, fresh bool, err error) {
	a, err := tx.Agents().GetAgent(ctx, w.WorkspaceID, w.AgentID)
	if err != nil {
		return w, false, err
	}
	if a.Lifecycle == reeve.AgentDestroyed {
		return w, false, reeve.Errorf(reeve.Conflict, "the agent is destroyed")
	}
	unique := key
	if unique == "" {
		unique = tx.NewID(reeve.PrefixRun)
	}
	input := w.Input
	w = reeve.Wake{RunKey: reeve.Key("wake", string(reeve.ReasonManual), a.ID, w.UserID, unique),
		WorkspaceID: a.WorkspaceID, AgentID: a.ID,
		Reason: reeve.ReasonManual, ReasonID: w.UserID, UserID: w.UserID, Input: input, DueAt: tx.Now(),
		State: reeve.WakeQueued, CreatedAt: tx.Now(),
		OnBehalfOf: w.OnBehalfOf}
	w.SessionID = store.ManualLane + w.RunKey // what a person asks for is not mixed with anything
	if fresh, err = tx.Queue().InsertWake(ctx, w); err != nil || fresh {
		return w, fresh, err
	}
	if w, err = tx.Queue().GetWake(ctx, w.RunKey); err == nil && w.Input != input {
		err = reeve.Errorf(reeve.Conflict, "the Idempotency-Key was used before, for another wake").
			Hintf("use a new key; nothing was done")
	}
	return w, false, err
}
