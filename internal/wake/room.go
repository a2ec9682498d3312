package wake

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"

	"reeve"
	"reeve/internal/notify"
	"reeve/internal/store"
)

// Brain runs an agent: it loops over thinking and calling, and says how it ended. It may be handed the same run again after a
// crash, and then goes on from what is recorded.
type Brain interface {
	Run(ctx context.Context, run reeve.Run) reeve.RunEnd
}

// Entities reads what predicates look at: the entities with these ids, as they are now. One that is gone, or that the watcher may not see, is left out.
type Entities interface {
	Entities(ctx context.Context, s *store.Snap, who store.Hand, key string, ids []string) ([]map[string]any, error)
}

// Client sends requests. Who may be reached is its affair.
type Client interface {
	Do(*http.Request) (*http.Response, error)
}

// Config says how the room works.
type Config struct {
	DB         *store.DB
	Log        *slog.Logger
	Process    string   // who owns the runs started here; it must be announced in the store
	Brain      Brain    // runs agents
	Entities   Entities // for predicates
	Concurrent int      // runs at once. Default: 128
	Attempts   int      // how often a run is begun, the first time and after crashes, before it fails. Default: 5
	Limits     Limits   // what schedules may be. Default: see Limits
	Webhook    string   // where notifications are sent too. Default: nowhere
	Client     Client   // sends them
	Turns      int      // turns at once. Default: 1000
	Ended      Ended    // told of runs that end. Default: nobody
}

// Ended writes what belongs to the ends of runs, and to wakes that no run will serve, into the transaction that ends them, and is told of runs once that is committed.
type Ended interface {
	Ending(ctx context.Context, tx *store.Tx, runs []reeve.Run) error
	Skipped(ctx context.Context, tx *store.Tx, wakes []reeve.Wake) error
	Over(run reeve.Run)
}

// Room is the wake room.
type Room struct {
	Config
	predicates *predicates
	zones      Zones
	nudged     notify.Signal
	posted     notify.Signal  // a notification waits for the webhook
	handed     chan reeve.Run // turns that were begun here; see Take
	looping    atomic.Bool
	stopping   atomic.Bool // the loop was told to end

	stepping  sync.Mutex    // one Step at a time, so that what it starts is in our hands before another looks
	mute      error         // the store did not answer when a run was to be let go of; under stepping
	unsure    int64         // commits that nobody can tell of and that a step has heeded; under stepping
	recording chan struct{} // taken by whoever records ends, for all that are done by then
	mu        sync.Mutex
	fresh     map[string]bool  // runs that were begun here, and no brain has seen
	held      map[string]*grip // runs in our hands
	found     []string         // those that the step under way has found in nobody's
	stumbles  map[string]int   // how often the store failed one of them
	doubt     bool             // there may be runs that are ours by the store, and in nobody's hands
	eager     bool             // there may be wakes that wait for nothing but a place
	closed    []*closing       // runs whose brains are done, and which nobody records yet
	ending    int              // those, and those that are being recorded
}

// grip is how a run is in our hands. One that was parked may be taken up again before whoever served it first has let go: each has a
// grip of its own.
type grip struct {
	run    reeve.Run               // that a brain works on
	cancel context.CancelCauseFunc // interrupts that; nil means that none does yet
}

// New makes the room.
func New(cfg Config) (*Room, error) {
	if cfg.Concurrent == 0 {
		cfg.Concurrent = 128
	}
	if cfg.Turns == 0 {
		cfg.Turns = 1000
	}
	if cfg.Attempts == 0 {
		cfg.Attempts = 5
	}
	cfg.Limits = cfg.Limits.withDefaults()
	p, err := newPredicates()
	if err != nil {
		return nil, err
	}
	return &Room{Config: cfg, predicates: p, nudged: notify.New(), posted: notify.New(), handed: make(chan reeve.Run, cfg.Turns),
		recording: make(chan struct{}, 1), fresh: map[string]bool{}, held: map[string]*grip{}, stumbles: map[string]int{}}, nil
}

// Nudge makes the loop look now. A nudge while it looks is not lost.
func (r *Room) Nudge() { r.nudged.Notify() }

// Wake asks for a run of an agent by hand. The same key again gives the same wake, as it is by then.
func (r *Room) Wake(ctx context.Context, workspace, agent, user, key, input string) (w reeve.Wake, err error) {
	err = r.DB.Update(ctx, func(tx *store.Tx) error {
		w, _, err = r.WakeIn(ctx, tx, reeve.Wake{WorkspaceID: workspace, AgentID: agent, UserID: user, Input: input}, key)
		return err
	})
	if err == nil {
		r.Nudge()
	}
	return w, err
}

// WakeIn is Wake as a part of the caller's transaction. The caller nudges when that is committed. The wake says whom to wake, for which
// user, with what input and on whose behalf. WakeIn tells whether it is new.
func (r *Room) WakeIn(ctx context.Context, tx *store.Tx, w reeve.Wake, key string) (_ reeve.Wake, fresh bool, err error) {
	a, err := tx.GetAgent(ctx, w.WorkspaceID, w.AgentID)
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
	w = reeve.Wake{RunKey: reeve.Key("wake", string(reeve.ReasonManual), a.ID, w.UserID, unique), WorkspaceID: a.WorkspaceID, AgentID: a.ID,
		Reason: reeve.ReasonManual, ReasonID: w.UserID, UserID: w.UserID, Input: input, DueAt: tx.Now(), State: reeve.WakeQueued, CreatedAt: tx.Now(),
		OnBehalfOf: w.OnBehalfOf}
	w.SessionID = store.ManualLane + w.RunKey // what a person asks for is not mixed with anything
	if fresh, err = tx.InsertWake(ctx, w); err != nil || fresh {
		return w, fresh, err
	}
	if w, err = tx.GetWake(ctx, w.RunKey); err == nil && w.Input != input {
		err = reeve.Errorf(reeve.Conflict, "the Idempotency-Key was used before, for another wake").Hintf("use a new key; nothing was done")
	}
	return w, false, err
}

// Cancel ends a run by a person's word. What it has begun is still recorded; nothing new of it is.
func (r *Room) Cancel(ctx context.Context, workspace, id string) (run reeve.Run, err error) {
	return r.End(ctx, workspace, id, reeve.Errorf(reeve.Canceled, "a person ended it"))
}

// End ends a run from outside, and the runs that its calls began, in one transaction.
func (r *Room) End(ctx context.Context, workspace, id string, why *reeve.Error) (run reeve.Run, err error) {
	var over []reeve.Run
	err = r.DB.Update(ctx, func(tx *store.Tx) error {
		was, err := tx.GetRun(ctx, workspace, id)
		if err != nil {
			return err
		}
		if was.State.Final() {
			return reeve.Errorf(reeve.Conflict, "the run has ended: it is %s", was.State)
		}
		if over, err = tx.CancelRun(ctx, was, why); err != nil {
			return err
		}
		if r.Ended != nil {
			if err := r.Ended.Ending(ctx, tx, over); err != nil {
				return err
			}
		}
		return tx.Answer(ctx, over[0])
	})
	if err != nil {
		return run, err
	}
	for _, run := range over {
		if r.Ended != nil {
			r.Ended.Over(run)
		}
		r.interrupt(run.ID)
	}
	r.Nudge() // its agent is free
	return over[0], nil
}

// Take serves a run that was begun here and is ours by the store: a turn, which waits for no other run. When nobody loops, or
// too many turns are under way, the next Step finds it.
func (r *Room) Take(run reeve.Run) {
	if r.looping.Load() {
		r.mu.Lock()
		taken := r.grab(run.ID)
		r.mu.Unlock()
		if !taken {
			return // a step that looked for what is in nobody's hands has it
		}
		select {
		case r.handed <- run:
			return
		default:
		}
		r.mu.Lock()
		delete(r.held, run.ID)
		r.mu.Unlock()
	}
	r.mu.Lock()
	r.doubt, r.fresh[run.ID] = true, true
	r.mu.Unlock()
	r.Nudge()
}

// Interrupt tells the brains of an agent's runs that are in our hands, and of those that its calls led to, or of a workspace's if no
// agent is named, that they are over.
func (r *Room) Interrupt(workspace, agent string, why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, g := range r.held {
		if g.cancel != nil && g.run.WorkspaceID == workspace && (agent == "" || g.run.AgentID == agent || g.run.ActsFor(agent)) {
			g.cancel(why)
		}
	}
}

// interrupt tells the brain of a run in our hands that it is over. One in another server's finds out when that looks; see watch.
func (r *Room) interrupt(run string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if g := r.held[run]; g != nil && g.cancel != nil {
		g.cancel(reeve.ErrEnded)
	}
}
