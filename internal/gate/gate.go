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
	Builders    map[reeve.ToolKind]Builder // build the handlers of user-defined tools. Default: none
	ItemRule    ItemRule                   // decides on calls of scripts. Default: they are refused
	Secrets     func() []string            // values to redact besides stored secrets; called once. Default: none
	OutputCap   int                        // bytes of output that a caller gets. Default: 16 KiB
	ApprovalTTL time.Duration              // time until an approval expires. Default: 7 days
	// delay between attempts to find the outcome of an operation. Default: 10 s doubling to 10 min, 5 tries
	Backoff      backoff.Policy
	LeaseTimeout time.Duration       // time without a heartbeat after which a process loses its lease. Default: 20 s
	OnChange     func()              // called after the commit of a change that may be watched. Default: none
	RunBudgets   bool                // runs have their own budgets. Default: false
	Window       time.Duration       // time in which further changes join the same wake of a watcher. Default: 100 ms
	Tracer       trace.Tracer        // gets a span for each attempt. Default: none
	OnCall       func(AttemptRecord) // called after each attempt. Default: none
}

// ItemRule decides on calls of scripts and writes the records of their items.
type ItemRule interface {
	// CheckCall refuses a call that the script may not make now. For a call that changes something it returns the
	// operation id. The gate calls it again when it decides again. Calls with the same Ref get the same operation id.
	CheckCall(ctx context.Context, c reeve.Call, t reeve.Tool, args json.RawMessage) (operation string, err error)
	// WriteItems writes the state of the call's item in the transaction that admits the call.
	WriteItems(ctx context.Context, tx *store.Tx, c reeve.Call) error
}

// Builder makes the handler of a user-defined tool from the row of the tool.
type Builder interface {
	Build(t reeve.Tool) (reeve.Tool, error)
}

// Definer is a Builder that checks a row before it is stored. Define checks everything that Build checks, and more.
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
	inFlight   sync.WaitGroup // dispatched calls whose outcome is not recorded yet
	pending    pendingWrites
	lease      lease
	ancestry   ancestryCache
}

// New returns a gate without tools. Add tools to its Catalogue, then call Open.
func New(cfg Config) *Gate {
	if cfg.OutputCap == 0 {
		cfg.OutputCap = 16 << 10
	}
	if cfg.ApprovalTTL == 0 {
		cfg.ApprovalTTL = 7 * 24 * time.Hour
	}
	cfg.Backoff = cfg.Backoff.WithDefaults()
	if cfg.Window == 0 {
		cfg.Window = store.ChangeWindow
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

// maxDecisions limits how often the gate decides on one call again because its workspace changed meanwhile.
const maxDecisions = 20

// Call decides on a call, executes it and records it. A refusal is recorded too and returned as an error, with a result
// that names the call. A failure of the tool itself is not an error but a result with IsError set.
func (g *Gate) Call(ctx context.Context, c reeve.Call) (reeve.Result, error) {
	return g.call(ctx, c, origin{})
}

// origin is what a call of a person refers to. It is empty for other calls.
type origin struct {
	undoes   string       // id of the operation that the call undoes
	replaces *replacement // the parked call that the call replaces
}

// call is Call for a call that may undo an operation or replace a parked call.
func (g *Gate) call(ctx context.Context, c reeve.Call, from origin) (res reeve.Result, err error) {
	ctx, span := g.startTrace(ctx)
	defer span.End()
	detached := context.WithoutCancel(ctx) // a call is recorded even if its caller cancels
	idUsedElsewhere := false
	for range maxDecisions {
		req, err := g.newRequest(detached, c)
		if err != nil {
			return reeve.Result{}, err
		}
		req.origin, req.idUsedElsewhere = from, idUsedElsewhere
		d := g.decide(ctx, req)
		if d.expiredOperation != "" { // close the expired approval, then decide again
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
		if idUsedElsewhere, err = d.syncAfterConflict(detached, err); err != nil {
			return res, err
		}
	}
	return res, errKeepsChanging
}

// execute does what was decided and records it. If several cases apply, the first one counts.
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

// mustDecideAgain reports whether a write failed because the decision is out of date. Either the workspace has changed
// since the decision, or another call has used the operation id.
func mustDecideAgain(err error) bool {
	return errors.As(err, new(store.ErrStaleDecision)) || errors.As(err, new(store.ErrDuplicateOperation))
}

var errKeepsChanging = reeve.Errorf(reeve.Unavailable, "the workspace changed too often while the call was decided").
	Hintf("try again")

// cancellationError returns the error of a call whose context ended before the call was executed.
func cancellationError(ctx context.Context) error {
	if why := reeve.CancelCause(ctx); why != nil {
		return why
	}
	return reeve.Errorf(reeve.Canceled, "the caller cancelled the call before it was executed")
}
