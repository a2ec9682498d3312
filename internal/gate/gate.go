package gate

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"reeve"
	"reeve/internal/backoff"
	"reeve/internal/notify"
	"reeve/internal/store"
)

// Config configures a Gate.
type Config struct {
	DB          *store.DB
	Log         *slog.Logger
	Builders    map[reeve.ToolKind]Builder // make handlers for user-defined tools. Default: none
	ItemRule    ItemRule                   // decides on calls of scripts. Default: they are refused
	Secrets     func() []string            // values never to show, besides stored ones; asked once, by the first call
	OutputCap   int                        // bytes of output that a caller is shown. Default: 16 KiB
	ApprovalTTL time.Duration              // how long an approval waits. Default: 7 days
	// between tries to settle an operation. Default: 10 s doubling to 10 min, 5 tries
	Backoff      backoff.Policy
	LeaseTimeout time.Duration       // silence after which another process counts as gone. Default: 20 s
	OnChange     func()              // called after the commit of a change that may be watched. Default: nothing
	RunBudgets   bool                // whether runs have budgets of their own. Default: no
	Window       time.Duration       // how long more changes may join before a watcher wakes. Default: 100 ms
	Tracer       trace.Tracer        // gets a span for each attempt. Default: none
	OnCall       func(AttemptRecord) // called after each attempt. Default: nothing
}

// ItemRule decides on calls of scripts and keeps the records of their items.
type ItemRule interface {
	// CheckCall refuses a call that the script may not make now. It returns the operation id of a call that changes
	// something. The gate asks again when a call is decided again; a call with the same Ref gets the same operation id.
	CheckCall(ctx context.Context, c reeve.Call, t reeve.Tool, args json.RawMessage) (operation string, err error)
	// WriteItems writes the item's part of the transaction that lets a call go.
	WriteItems(ctx context.Context, tx *store.Tx, c reeve.Call) error
}

// Builder makes a handler from a user-defined tool's row.
type Builder interface {
	Build(t reeve.Tool) (reeve.Tool, error)
}

// Definer is a Builder that also checks a row before it is stored. It checks all that Build does, and more.
type Definer interface {
	Define(t reeve.Tool) error
}

// Gate decides on calls, executes them and records them.
type Gate struct {
	Config
	Catalogue *Catalogue
	Inbox     *Inbox

	processID  string
	secrets    func() []string
	viewCache  viewCache
	wakeSignal notify.Signal
	inFlight   sync.WaitGroup // calls that were sent and are not recorded yet
	pending    pendingWrites
	lease      lease
	ancestry   ancestryCache
}

// New makes a gate. Add tools to it, then Open it.
func New(cfg Config) *Gate {
	if cfg.OutputCap == 0 {
		cfg.OutputCap = 16 << 10
	}
	if cfg.ApprovalTTL == 0 {
		cfg.ApprovalTTL = 7 * 24 * time.Hour
	}
	cfg.Backoff = cfg.Backoff.WithDefaults()
	if cfg.Window == 0 {
		cfg.Window = store.Window
	}
	if cfg.LeaseTimeout == 0 {
		cfg.LeaseTimeout = 20 * time.Second
	}
	if cfg.Secrets == nil {
		cfg.Secrets = func() []string { return nil }
	}
	g := &Gate{Config: cfg, processID: new(reeve.IDs).New(reeve.PrefixProcess, reeve.Now()),
		secrets: sync.OnceValue(cfg.Secrets), wakeSignal: notify.New(), viewCache: newViewCache()}
	g.Catalogue = &Catalogue{db: cfg.DB, builders: cfg.Builders, handlers: map[string]reeve.Tool{}}
	g.Inbox = &Inbox{g}
	return g
}

// maxDecisions limits how often a call is decided again because something changed while it was under way.
const maxDecisions = 20

// Call decides on a call, executes it and records it. A refusal is an error and is recorded too; the result then still
// names the call. A tool's own failure is not an error: it is a result.
func (g *Gate) Call(ctx context.Context, c reeve.Call) (reeve.Result, error) {
	return g.call(ctx, c, "")
}

// call is Call for a call that may undo an operation.
func (g *Gate) call(ctx context.Context, c reeve.Call, undoes string) (res reeve.Result, err error) {
	detached, foreign := context.WithoutCancel(ctx), false // a caller that goes away still leaves a record
	for range maxDecisions {
		req, err := g.newRequest(detached, c)
		if err != nil {
			return reeve.Result{}, err
		}
		req.undoes, req.idUsedElsewhere = undoes, foreign
		d := g.decide(ctx, req)
		if d.expiredOperation != "" { // close the approval that is over, then decide again
			if err := g.Inbox.expireApprovalOf(ctx, d.expiredOperation); err != nil {
				return reeve.Result{}, err
			}
			continue
		}
		res, err = g.execute(ctx, d)
		if !mustDecideAgain(err) {
			d.notifyWatchers()
			return res, err
		}
		if foreign, err = d.syncAfterConflict(detached, err); err != nil {
			return res, err
		}
	}
	return res, errKeepsChanging
}

// execute executes what was decided, and records it. The order of the cases is the order in which they take
// precedence.
func (g *Gate) execute(ctx context.Context, d *Decision) (reeve.Result, error) {
	rec := newRecorder(d)
	switch {
	case ctx.Err() != nil:
		return rec.recordRefusal(ctx, cancellationError(ctx))
	case d.refusal != nil:
		return rec.recordRefusal(ctx, d.refusal)
	case d.call.PreviewOnly:
		return rec.recordPreview(ctx)
	case d.existing != nil:
		return d.replay(ctx)
	case d.isProposal:
		return rec.propose(ctx)
	case d.waitReason != "":
		return rec.park(ctx)
	case d.tool().Async && d.resumed == nil:
		return rec.enqueue(ctx)
	case d.tool().Effect == reeve.Read && d.resumed == nil:
		return newAttempt(rec).executeRead(ctx)
	case d.tool().Effect == reeve.Local:
		return newAttempt(rec).executeLocal(ctx)
	default:
		return newAttempt(rec).dispatch(ctx)
	}
}

// mustDecideAgain reports whether a call must be decided again: its workspace changed, or its operation id was used
// meanwhile.
func mustDecideAgain(err error) bool {
	return errors.As(err, new(store.ErrStaleDecision)) || errors.As(err, new(store.ErrDuplicateOperation))
}

var errKeepsChanging = reeve.Errorf(reeve.Unavailable, "the workspace keeps changing").Hintf("try again")

// cancellationError returns why the caller of a call is not there any more.
func cancellationError(ctx context.Context) error {
	if why := reeve.CancelCause(ctx); why != nil {
		return why
	}
	return reeve.Errorf(reeve.Canceled, "the caller went away before anything was done")
}
