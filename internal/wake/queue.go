package wake

import (
	"context"
	"sync"

	"reeve"
	"reeve/internal/notify"
	"reeve/internal/store"
)

// Queue accepts requests for runs. Wakes are rows. Turns are runs that have been inserted already and only need to be
// served. Queue does not need a brain, so the packages that request runs can be created before the Scheduler.
type Queue struct {
	db           *store.DB
	wakesChanged notify.Signal // there may be a due wake

	mu           sync.Mutex
	turns        []reeve.Run   // turns that wait to be served, oldest first
	turnEnqueued notify.Signal // a run was added to turns
}

// NewQueue returns an empty queue.
func NewQueue(db *store.DB) *Queue {
	return &Queue{db: db, wakesChanged: notify.New(), turnEnqueued: notify.New()}
}

// Wakeup makes the scheduler look for due wakes now. A call during a step causes another step.
func (q *Queue) Wakeup() { q.wakesChanged.Notify() }

// Enqueue passes a run to the scheduler that this process has inserted and owns in the store. Such a run (a turn) does
// not wait for other runs. If the scheduler does not loop, its next Step serves the run.
func (q *Queue) Enqueue(run reeve.Run) {
	q.mu.Lock()
	q.turns = append(q.turns, run)
	q.mu.Unlock()
	q.turnEnqueued.Notify()
}

// dequeue removes and returns the oldest turn. It returns false if the queue is empty.
func (q *Queue) dequeue() (run reeve.Run, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.turns) == 0 {
		return run, false
	}
	run, q.turns = q.turns[0], q.turns[1:]
	return run, true
}

// listQueuedIDs returns the run ids of the turns in the queue.
func (q *Queue) listQueuedIDs() map[string]bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	ids := make(map[string]bool, len(q.turns))
	for _, run := range q.turns {
		ids[run.ID] = true
	}
	return ids
}

// Wake requests a run of an agent by hand. A repeated key returns the existing wake in its current state.
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

// Fire fires an active timer now, in the caller's transaction, and besides its planned firings. The caller calls Wakeup
// after the commit.
func (q *Queue) Fire(ctx context.Context, tx *store.Tx, t reeve.Timer) (w reeve.Wake, err error) {
	if t.State != reeve.TimerActive {
		return w, reeve.Errorf(reeve.Conflict, "the schedule is %s", t.State).Hintf("resume it first")
	}
	a, err := tx.Agents().GetAgent(ctx, t.WorkspaceID, t.AgentID)
	if err == nil {
		err = a.CheckWakes(reeve.ReasonTimer)
	}
	if err != nil {
		return w, err
	}
	automations, err := tx.Automations().ScriptAgents(ctx, []string{t.AgentID})
	if err != nil {
		return w, err
	}
	now := tx.Now()
	w = newFiring(t, now, automations[t.AgentID])
	w.RunKey, w.CreatedAt = reeve.DeriveID("wake", string(reeve.ReasonTimer), t.ID, tx.NewID(reeve.PrefixRun)), now
	if _, err := tx.Queue().InsertWake(ctx, w); err != nil {
		return w, err
	}
	return w, signalFirings(ctx, tx, []reeve.Timer{t}, []reeve.Wake{w})
}

// WakeIn is Wake in the caller's transaction. The caller calls Wakeup after the commit. The wake names the workspace,
// agent, user, input and delegators. WakeIn reports whether the wake is new.
func (q *Queue) WakeIn(ctx context.Context, tx *store.Tx, w reeve.Wake,
	key string) (_ reeve.Wake, isNew bool, err error) {
	a, err := tx.Agents().GetAgent(ctx, w.WorkspaceID, w.AgentID)
	if err != nil {
		return w, false, err
	}
	if a.Lifecycle == reeve.AgentDestroyed {
		return w, false, reeve.Errorf(reeve.Conflict, "the agent is destroyed")
	}
	if key == "" {
		key = tx.NewID(reeve.PrefixRun)
	}
	input := w.Input
	w = reeve.Wake{RunKey: reeve.DeriveID("wake", string(reeve.ReasonManual), a.ID, w.UserID, key),
		WorkspaceID: a.WorkspaceID, AgentID: a.ID,
		Reason: reeve.ReasonManual, ReasonID: w.UserID, UserID: w.UserID, Input: input, DueAt: tx.Now(),
		State: reeve.WakeQueued, CreatedAt: tx.Now(),
		OnBehalfOf: w.OnBehalfOf}
	w.SessionID = store.ManualSession + w.RunKey // no other wake has this session, so it is served alone
	if isNew, err = tx.Queue().InsertWake(ctx, w); err != nil || isNew {
		return w, isNew, err
	}
	if w, err = tx.Queue().GetWake(ctx, w.RunKey); err == nil && w.Input != input {
		err = reeve.Errorf(reeve.Conflict, "the Idempotency-Key was used before for a different wake").
			Hintf("use a new key; nothing was done")
	}
	return w, false, err
}
