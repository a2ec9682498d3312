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

// Brain runs an agent: it loops over thinking and calling, and says how it ended. It may be handed the same run again
// after a crash, and then goes on from what is recorded.
//
// The server serves and ends other runs: a brain may have some of its own served before it goes on.
type Brain interface {
	Run(ctx context.Context, run reeve.Run, server reeve.RunServer) reeve.RunEnd
}

// Entities reads what predicates look at: the entities with these ids, as they are now. One that is gone, or that the
// watcher may not see, is left out.
type Entities interface {
	Entities(ctx context.Context, s *store.Snap, who store.JournalScope, key string, ids []string) ([]map[string]any,
		error)
}

// Client sends requests. Who may be reached is its affair.
type Client interface {
	Do(*http.Request) (*http.Response, error)
}

// Config configures a Scheduler.
type Config struct {
	DB         *store.DB
	Log        *slog.Logger
	Process    string   // who owns the runs started here; it must be announced in the store
	Queue      *Queue   // where runs are asked for
	Planner    *Planner // knows when timers fire
	Brain      Brain    // runs agents
	Entities   Entities // for predicates
	Concurrent int      // runs at once. Default: 128
	Attempts   int      // how often a run is begun, the first time and after crashes, before it fails. Default: 5
	Webhook    string   // where notifications are sent too. Default: nowhere
	Client     Client   // sends them
	Turns      int      // turns at once. Default: 1000

	OnEnd    []EndHandler      // called in this order when runs end. Default: none
	OnSkip   []SkipHandler     // called in this order when wakes are skipped. Default: none
	AfterEnd []func(reeve.Run) // called in this order once the end of a run is committed. Default: none
}

// EndHandler writes what follows from the ends of runs, in the transaction that ends them. An error keeps the runs from
// ending.
type EndHandler func(ctx context.Context, tx *store.Tx, runs []reeve.Run) error

// SkipHandler writes what follows from wakes that no run will serve, in the transaction that skips them.
type SkipHandler func(ctx context.Context, tx *store.Tx, wakes []reeve.Wake) error

// EachRun makes an EndHandler of functions that take one run: it calls all of them for a run before it goes on to the
// next.
func EachRun(functions ...func(ctx context.Context, tx *store.Tx, run reeve.Run) error) EndHandler {
	return func(ctx context.Context, tx *store.Tx, runs []reeve.Run) error {
		for _, run := range runs {
			for _, f := range functions {
				if err := f(ctx, tx, run); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

// Scheduler starts runs for what is due and serves them.
type Scheduler struct {
	Config
	predicates *predicates
	posted     notify.Signal // a notification waits for the webhook
	looping    atomic.Bool
	stopping   atomic.Bool // the loop was told to end

	stepping  sync.Mutex    // one Step at a time, so that what it starts is in our hands before another looks
	mute      error         // the store did not answer when a run was to be let go of; under stepping
	unsure    int64         // commits that nobody can tell of and that a step has heeded; under stepping
	recording chan struct{} // taken by whoever records ends, for all that are done by then
	mu        sync.Mutex
	fresh     map[string]bool       // runs that were begun here, and no brain has seen
	held      map[string]*activeRun // runs in our hands
	found     []string              // those that the step under way has found in nobody's
	stumbles  map[string]int        // how often the store failed one of them
	doubt     bool                  // there may be runs that are ours by the store, and in nobody's hands
	eager     bool                  // there may be wakes that wait for nothing but a place
	closed    []*closing            // runs whose brains are done, and which nobody records yet
	ending    int                   // those, and those that are being recorded
}

// activeRun is how a run is in our hands. One that was parked may be taken up again before whoever served it first has
// let go: each has a grip of its own.
type activeRun struct {
	run    reeve.Run               // that a brain works on
	cancel context.CancelCauseFunc // interrupts that; nil means that none does yet
}

// NewScheduler makes a scheduler. It does nothing before Run or Step.
func NewScheduler(cfg Config) (*Scheduler, error) {
	if cfg.Concurrent == 0 {
		cfg.Concurrent = 128
	}
	if cfg.Turns == 0 {
		cfg.Turns = 1000
	}
	if cfg.Attempts == 0 {
		cfg.Attempts = 5
	}
	p, err := newPredicates()
	if err != nil {
		return nil, err
	}
	return &Scheduler{Config: cfg, predicates: p, posted: notify.New(), recording: make(chan struct{}, 1),
		fresh: map[string]bool{}, held: map[string]*activeRun{}, stumbles: map[string]int{}}, nil
}

// Cancel ends a run by a person's word. What it has begun is still recorded; nothing new of it is.
func (r *Scheduler) Cancel(ctx context.Context, workspace, id string) (run reeve.Run, err error) {
	return r.End(ctx, workspace, id, reeve.Errorf(reeve.Canceled, "a person ended it"))
}

// End ends a run from outside, and the runs that its calls began, in one transaction.
func (r *Scheduler) End(ctx context.Context, workspace, id string, why *reeve.Error) (run reeve.Run, err error) {
	var over []reeve.Run
	err = r.DB.Update(ctx, func(tx *store.Tx) error {
		was, err := tx.Runs().GetRun(ctx, workspace, id)
		if err != nil {
			return err
		}
		if was.State.Final() {
			return reeve.Errorf(reeve.Conflict, "the run has ended: it is %s", was.State)
		}
		if over, err = tx.Runs().CancelRun(ctx, was, why); err != nil {
			return err
		}
		if err := r.handleEnds(ctx, tx, over); err != nil {
			return err
		}
		return tx.Ledger().SaveResponse(ctx, over[0])
	})
	if err != nil {
		return run, err
	}
	for _, run := range over {
		r.afterEnd(run)
		r.interrupt(run.ID)
	}
	r.Queue.Wakeup() // its agent is free
	return over[0], nil
}

// Interrupt tells the brains of an agent's runs that are in our hands, and of those that its calls led to, or of a
// workspace's if no agent is named, that they are over.
func (r *Scheduler) Interrupt(workspace, agent string, why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, g := range r.held {
		if g.cancel != nil && g.run.WorkspaceID == workspace && (agent == "" || g.run.AgentID == agent ||
			g.run.ActsFor(agent)) {
			g.cancel(why)
		}
	}
}

// interrupt tells the brain of a run in our hands that it is over. One in another server's finds out when that looks;
// see watch.
func (r *Scheduler) interrupt(run string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if g := r.held[run]; g != nil && g.cancel != nil {
		g.cancel(reeve.ErrEnded)
	}
}

// handleEnds calls the handlers of runs that end.
func (r *Scheduler) handleEnds(ctx context.Context, tx *store.Tx, runs []reeve.Run) error {
	if len(runs) == 0 {
		return nil
	}
	for _, handle := range r.OnEnd {
		if err := handle(ctx, tx, runs); err != nil {
			return err
		}
	}
	return nil
}

// handleSkips calls the handlers of wakes that no run will serve.
func (r *Scheduler) handleSkips(ctx context.Context, tx *store.Tx, wakes []reeve.Wake) error {
	if len(wakes) == 0 {
		return nil
	}
	for _, handle := range r.OnSkip {
		if err := handle(ctx, tx, wakes); err != nil {
			return err
		}
	}
	return nil
}

// afterEnd tells of a run whose end is committed.
func (r *Scheduler) afterEnd(run reeve.Run) {
	for _, tell := range r.AfterEnd {
		tell(run)
	}
}
