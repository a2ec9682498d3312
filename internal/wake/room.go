package wake

import (
	"context"
	"log/slog"
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
}

// Room is the wake room.
type Room struct {
	Config
	predicates *predicates
	zones      Zones
	nudged     chan struct{}
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
	return &Room{Config: cfg, predicates: p, nudged: make(chan struct{}, 1)}, nil
}

// Nudge makes the loop look now. A nudge while it looks is not lost.
func (r *Room) Nudge() {
	select {
	case r.nudged <- struct{}{}:
	default:
	}
}

// Wake asks for a run of an agent by hand.
func (r *Room) Wake(ctx context.Context, workspace, agent, user, key, input string) (w reeve.Wake, err error) {
	err = r.DB.Update(ctx, func(tx *store.Tx) error {
		a, err := tx.GetAgent(ctx, workspace, agent)
		if err != nil {
			return err
		}
		if a.Lifecycle == reeve.AgentDestroyed {
			return reeve.Errorf(reeve.Conflict, "the agent is destroyed")
		}
		if key == "" {
			key = tx.NewID(reeve.PrefixRun)
		}
		w = reeve.Wake{RunKey: reeve.Key("wake", string(reeve.ReasonManual), a.ID, key), WorkspaceID: workspace, AgentID: a.ID, Reason: reeve.ReasonManual,
			ReasonID: user, UserID: user, Input: input, DueAt: tx.Now(), State: reeve.WakeQueued, CreatedAt: tx.Now()}
		_, err = tx.InsertWake(ctx, w)
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
		run = was
		now := tx.Now()
		run.State, run.FinishedAt, run.Owner, run.Code, run.Message = reeve.RunCancelled, &now, "", reeve.Canceled, "a person ended it"
		return tx.MoveRun(ctx, was, run)
	})
	return run, err
}
