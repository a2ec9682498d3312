package wake

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"reeve"
	"reeve/internal/store"
)

// Windows in which changes join before somebody is woken: our own, and those that came from elsewhere.
const (
	LocalWindow  = 100 * time.Millisecond
	RemoteWindow = time.Second
)

// Brain runs an agent: it loops over thinking and calling, and says how it ended. It may be handed the same run again after a
// crash, and then goes on from what is recorded.
type Brain interface {
	Run(ctx context.Context, run reeve.Run) reeve.RunEnd
}

// Entities reads what predicates look at: the entities with these ids, as they are now. One that is gone is left out.
type Entities interface {
	Entities(ctx context.Context, s *store.Snap, workspace string, ids []string) ([]map[string]any, error)
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
	Concurrent int      // runs at once. Default: 8
	Limits     Limits   // what schedules may be. Default: see Limits
	Webhook    string   // where notifications are sent too. Default: nowhere
	Client     Client   // sends them
}

// Room is the wake room.
type Room struct {
	Config
	predicates *predicates
	zones      Zones
	nudged     chan struct{}
	posted     chan struct{} // a notification waits for the webhook

	stepping sync.Mutex // one Step at a time, so that what it starts is in our hands before another looks
	mu       sync.Mutex
	held     map[string]context.CancelFunc // runs in our hands, and what interrupts their brains
	doubt    bool                          // there may be runs that are ours by the store, and in nobody's hands
}

// New makes the room.
func New(cfg Config) (*Room, error) {
	if cfg.Concurrent == 0 {
		cfg.Concurrent = 8
	}
	cfg.Limits = cfg.Limits.withDefaults()
	p, err := newPredicates()
	if err != nil {
		return nil, err
	}
	return &Room{Config: cfg, predicates: p, nudged: make(chan struct{}, 1), posted: make(chan struct{}, 1), held: map[string]context.CancelFunc{}}, nil
}

// Nudge makes the loop look now. A nudge while it looks is not lost.
func (r *Room) Nudge() { signal(r.nudged) }

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Wake asks for a run of an agent by hand. The same key again gives the same wake, as it is by then.
func (r *Room) Wake(ctx context.Context, workspace, agent, user, key, input string) (w reeve.Wake, err error) {
	err = r.DB.Update(ctx, func(tx *store.Tx) error {
		a, err := tx.GetAgent(ctx, workspace, agent)
		if err != nil {
			return err
		}
		if a.Lifecycle == reeve.AgentDestroyed {
			return reeve.Errorf(reeve.Conflict, "the agent is destroyed")
		}
		unique := key
		if unique == "" {
			unique = tx.NewID(reeve.PrefixRun)
		}
		w = reeve.Wake{RunKey: reeve.Key("wake", string(reeve.ReasonManual), a.ID, user, unique), WorkspaceID: workspace, AgentID: a.ID, Reason: reeve.ReasonManual,
			ReasonID: user, UserID: user, Input: input, DueAt: tx.Now(), State: reeve.WakeQueued, CreatedAt: tx.Now()}
		w.SessionID = store.ManualLane + w.RunKey // what a person asks for is not mixed with anything
		fresh, err := tx.InsertWake(ctx, w)
		if err != nil || fresh {
			return err
		}
		if w, err = tx.GetWake(ctx, w.RunKey); err == nil && w.Input != input {
			err = reeve.Errorf(reeve.Conflict, "the Idempotency-Key was used before, for another wake").Hintf("use a new key; nothing was done")
		}
		return err
	})
	if err == nil {
		r.Nudge()
	}
	return w, err
}

// Cancel ends a run by a person's word. What it has begun is still recorded; nothing new of it is.
func (r *Room) Cancel(ctx context.Context, workspace, id string) (run reeve.Run, err error) {
	err = r.DB.Update(ctx, func(tx *store.Tx) error {
		was, err := tx.GetRun(ctx, workspace, id)
		if err != nil {
			return err
		}
		if was.State.Final() {
			return reeve.Errorf(reeve.Conflict, "the run has ended: it is %s", was.State)
		}
		run, err = tx.CancelRun(ctx, was, "a person ended it")
		return err
	})
	if err == nil {
		r.interrupt(id)
		r.Nudge() // its agent is free
	}
	return run, err
}

// interrupt tells the brain of a run in our hands that it is over. One in another server's finds out at its next call.
func (r *Room) interrupt(run string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if cancel := r.held[run]; cancel != nil {
		cancel()
	}
}
