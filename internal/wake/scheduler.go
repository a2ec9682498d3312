package wake

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"reeve"
	"reeve/internal/store"
)

// Brain runs an agent and returns how the run ended. After a crash it may get the same run again and continues from the
// log.
//
// A brain can use server to serve and end other runs, for example the runs that its own run waits for.
type Brain interface {
	Run(ctx context.Context, run reeve.Run, server reeve.RunServer) reeve.RunEnd
}

// EntityReader reads the entities that predicates are evaluated on, in their current state. It leaves out entities that
// do not exist or that the scope does not cover.
type EntityReader interface {
	Entities(ctx context.Context, s *store.Snap, scope store.JournalScope, key string, ids []string) ([]map[string]any,
		error)
}

// Config configures a Scheduler.
type Config struct {
	DB          *store.DB
	Log         *slog.Logger
	Process     string       // id of this process, which owns the runs started here; it must be registered in the store
	Queue       *Queue       // source of wakes and turns
	Timetable   *Timetable   // computes when timers fire
	Brain       Brain        // runs agents
	Entities    EntityReader // reads entities for predicates. Default: no entities
	MaxRuns     int          // concurrent runs, not counting turns. Default: 128
	MaxAttempts int          // attempts of a run, including the first, before crashes fail it. Default: 5
	Webhook     *Webhook     // also gets notifications. Default: none
	MaxTurns    int          // concurrent turns. Default: 1000

	OnEnd    []EndHandler      // called in this order when runs end. Default: none
	OnSkip   []SkipHandler     // called in this order when wakes are skipped. Default: none
	AfterEnd []func(reeve.Run) // called in this order after the end of a run is committed. Default: none

	// FramesAppended is called after a report or a file of a scheduled run was committed to a conversation. Default:
	// none
	FramesAppended func(conversation string)
}

// EndHandler performs follow-up writes in the transaction that ends runs. An error aborts the transaction, so the runs
// do not end.
type EndHandler func(ctx context.Context, tx *store.Tx, runs []reeve.Run) error

// SkipHandler performs follow-up writes in the transaction that skips wakes.
type SkipHandler func(ctx context.Context, tx *store.Tx, wakes []reeve.Wake) error

// EachRun returns an EndHandler that calls the functions for each run, in order: all functions for the first run, then
// all for the next.
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

// Scheduler starts runs for due wakes and serves them.
type Scheduler struct {
	Config
	predicates *predicateCache
	isLooping  atomic.Bool // Run is active
	isStopping atomic.Bool // the context of Run has ended

	// serializes steps, so that runs of one step are active before the next looks for orphans
	stepMu          sync.Mutex
	releaseErr      error         // store failure of a release during shutdown; guarded by stepMu
	uncertainSeen   int64         // count of uncertain commits that a step has handled; guarded by stepMu
	recorderSlot    chan struct{} // held by the goroutine that records all pending ends
	mu              sync.Mutex
	neverServed     map[string]bool       // enqueued runs that no brain has seen
	active          map[string]*activeRun // runs that this process serves, by id
	claimedInStep   []string              // orphans that the current step has claimed
	storeFailures   map[string]int        // store failures of active runs, by run id
	mayHaveOrphans  bool                  // the store may assign runs to this process that are not active
	mayHaveDueWakes bool                  // due wakes may be waiting for a free slot
	pendingEnds     []*pendingEnd         // ends that no transaction has picked up yet
	unrecordedEnds  int                   // pendingEnds, plus the ends that are being recorded
}

// activeRun is a run that a goroutine of this process serves. A parked run can be resumed before its first goroutine
// has returned. Then each goroutine has its own activeRun.
type activeRun struct {
	run    reeve.Run               // the run of the brain
	cancel context.CancelCauseFunc // interrupts the brain; nil if no brain has started
}

// NewScheduler returns a scheduler. It is passive until Run or Step is called.
func NewScheduler(cfg Config) (*Scheduler, error) {
	if cfg.MaxRuns == 0 {
		cfg.MaxRuns = 128
	}
	if cfg.MaxTurns == 0 {
		cfg.MaxTurns = 1000
	}
	if cfg.MaxAttempts == 0 {
		cfg.MaxAttempts = 5
	}
	p, err := newPredicates()
	if err != nil {
		return nil, err
	}
	return &Scheduler{Config: cfg, predicates: p, recorderSlot: make(chan struct{}, 1),
		neverServed: map[string]bool{}, active: map[string]*activeRun{}, storeFailures: map[string]int{}}, nil
}

// Cancel ends a run at the request of a person. Calls that have started are still recorded, new calls are refused.
func (r *Scheduler) Cancel(ctx context.Context, workspace, id string) (reeve.Run, error) {
	return r.End(ctx, workspace, id, reeve.Errorf(reeve.Canceled, "cancelled by a person"))
}

// End ends a run from outside, together with the runs that its calls started, in one transaction. It fails with
// Conflict if the run has ended already.
func (r *Scheduler) End(ctx context.Context, workspace, id string, why *reeve.Error) (run reeve.Run, err error) {
	var ended []reeve.Run
	var shown []string
	err = r.DB.Update(ctx, func(tx *store.Tx) error {
		was, err := tx.Runs().GetRun(ctx, workspace, id)
		if err != nil {
			return err
		}
		if was.State.IsFinal() {
			return reeve.Errorf(reeve.Conflict, "the run has ended: it is %s", was.State)
		}
		if ended, err = tx.Runs().CancelRun(ctx, was, why); err != nil {
			return err
		}
		if err := r.callEndHandlers(ctx, tx, ended); err != nil {
			return err
		}
		if shown, err = showMedia(ctx, tx, ended); err != nil {
			return err
		}
		return tx.Ledger().SaveResponse(ctx, ended[0])
	})
	if err != nil {
		return run, err
	}
	r.announceFrames(shown)
	for _, run := range ended {
		r.callAfterEnd(run)
		r.interruptRun(run.ID)
	}
	r.Queue.Wakeup() // the agent is free for its next wake
	return ended[0], nil
}

// Interrupt cancels the brains of an agent's active runs, and of runs that act on behalf of the agent. If agent is
// empty, it cancels all active runs of the workspace.
func (r *Scheduler) Interrupt(workspace, agent string, why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.active {
		if a.cancel != nil && a.run.WorkspaceID == workspace && (agent == "" || a.run.AgentID == agent ||
			a.run.ActsFor(agent)) {
			a.cancel(why)
		}
	}
}

// interruptRun cancels the brain of an active run. Other servers interrupt theirs in watchEndedRuns.
func (r *Scheduler) interruptRun(run string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a := r.active[run]; a != nil && a.cancel != nil {
		a.cancel(reeve.ErrEnded)
	}
}

func (r *Scheduler) callEndHandlers(ctx context.Context, tx *store.Tx, runs []reeve.Run) error {
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

func (r *Scheduler) callSkipHandlers(ctx context.Context, tx *store.Tx, wakes []reeve.Wake) error {
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

// callAfterEnd calls the AfterEnd functions for a run whose end is committed.
func (r *Scheduler) callAfterEnd(run reeve.Run) {
	for _, f := range r.AfterEnd {
		f(run)
	}
}
