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

// Config says how the gate works.
type Config struct {
	DB          *store.DB
	Log         *slog.Logger
	Builders    map[reeve.ToolKind]Builder // make handlers for user-defined tools. Default: none
	ItemRule    ItemRule                   // judges calls of scripts. Default: they are refused
	Secrets     []string                   // values that must never be shown, besides the stored ones. Default: none
	OutputCap   int                        // bytes of output a caller is shown. Default: 16 KiB
	ApprovalTTL time.Duration              // how long an approval waits. Default: 7 days
	Backoff     backoff.Policy             // between attempts to learn what became of an operation. Default: 10 s doubling to 10 min, 5 tries
	Patience    time.Duration              // silence after which another process counts as gone. Default: 20 s
	OnChange    func()                     // called after a change that somebody may watch is committed. Default: nothing
	RunBudgets  bool                       // whether runs have budgets of their own. Default: no
	Window      time.Duration              // how long more changes may join before a watcher is woken. Default: 100 ms
	Tracer      trace.Tracer               // gets a span for each attempt. Default: none
	OnCall      func(Seen)                 // told of each attempt. Default: nobody
	Overdue     Overdue                    // settles calls whose time to wait is up. Default: they fail
}

// Overdue settles a call that waits for what it began: its time is up, or nobody told it of the end.
type Overdue func(ctx context.Context, op reeve.Operation) error

// ItemRule judges calls of scripts, and keeps the ledger of their items.
type ItemRule interface {
	// Allow refuses a call that may not be made now, and names the operation of one that changes something. The same call, which its
	// Ref tells, is judged again when it was overtaken, and is then named the same.
	Allow(ctx context.Context, c reeve.Call, t reeve.Tool, args json.RawMessage) (operation string, err error)
	// Admit writes what of the ledger belongs to the transaction that lets a call go.
	Admit(ctx context.Context, tx *store.Tx, c reeve.Call) error
}

// Builder makes a handler from a user-defined tool's row.
type Builder interface {
	Build(t reeve.Tool) (reeve.Tool, error)
}

// Definer is a Builder that asks all that Build does, and more, of a row that is about to be written.
type Definer interface {
	Define(t reeve.Tool) error
}

// Gate judges, performs and records calls.
type Gate struct {
	Config
	process  string
	handlers map[string]reeve.Tool // by handler key
	views    views
	nudged   notify.Signal
	live     sync.WaitGroup // calls that have left and are not recorded yet
	owed     owed
	lease    lease
	lines    lines
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
	if cfg.Patience == 0 {
		cfg.Patience = 20 * time.Second
	}
	return &Gate{Config: cfg, handlers: map[string]reeve.Tool{}, nudged: notify.New(),
		views: views{workspaces: map[string]*workspaceView{}, agents: map[string]*agentView{}}}
}

// rejudge bounds how often a call that was overtaken by a change is judged again.
const rejudge = 20

// Call takes one call all the way. A refusal is an error, and is recorded like everything else; the result then still names
// the call. A tool's own failure is no error here: it is a result.
func (g *Gate) Call(ctx context.Context, c reeve.Call) (reeve.Result, error) {
	return g.call(ctx, c, "")
}

// call is Call for a call that may be there to take an operation back.
func (g *Gate) call(ctx context.Context, c reeve.Call, undoes string) (res reeve.Result, err error) {
	foreign, keep := false, context.WithoutCancel(ctx) // whoever goes away leaves a record, also of a call that is judged again
	for range rejudge {
		p, err := g.begin(keep, c)
		if err != nil {
			return reeve.Result{}, err
		}
		p.undoes, p.foreign = undoes, foreign
		refusal := p.judge(ctx)
		if p.late != "" { // the loop has not noticed yet; what it would have done counts
			if err := g.expireOf(ctx, p.late); err != nil {
				return reeve.Result{}, err
			}
			continue
		}
		res, err = p.settle(ctx, refusal)
		if !overtaken(err) {
			p.told()
			return res, err
		}
		if foreign, err = p.catchUp(keep, err); err != nil {
			return res, err
		}
	}
	return res, reeve.Errorf(reeve.Unavailable, "the workspace keeps changing").Hintf("try again")
}

// overtaken tells whether a call must be judged again: its workspace changed, or its operation id was used meanwhile.
func overtaken(err error) bool {
	return errors.As(err, new(store.Stale)) || errors.As(err, new(store.Taken))
}

// settle acts on the judgement.
func (p *pass) settle(ctx context.Context, refusal error) (reeve.Result, error) {
	switch {
	case ctx.Err() != nil:
		return p.refuse(ctx, gone(ctx))
	case refusal != nil:
		return p.refuse(ctx, refusal)
	case p.call.PreviewOnly:
		return p.showPreview(ctx)
	case p.existing != nil:
		return p.replay(ctx)
	case p.proposes:
		return p.propose(ctx)
	case p.waits != "":
		return p.park(ctx)
	case p.tool().Async && p.resumed == nil:
		return p.later(ctx)
	case p.onlyReads():
		return p.performRead(ctx)
	case p.tool().Effect == reeve.Local:
		return p.performLocal(ctx)
	default:
		return p.dispatch(ctx)
	}
}

// gone says why nobody is there for a call any more.
func gone(ctx context.Context) error {
	if why := reeve.WhyEnded(ctx); why != nil {
		return why
	}
	return reeve.Errorf(reeve.Canceled, "the caller went away before anything was done")
}

// onlyReads tells whether a call that was let through is made now and leaves no operation: no earlier one counts, and nobody waits for a later one.
func (p *pass) onlyReads() bool {
	return p.tool().Effect == reeve.Read && !p.tool().Async && !p.call.PreviewOnly && p.existing == nil && !p.proposes && p.waits == "" && p.resumed == nil
}
