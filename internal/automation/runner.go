package automation

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"reeve"
	"reeve/internal/backoff"
	"reeve/internal/sandbox/js"
	"reeve/internal/store"
)

// Gate is the gate.
type Gate interface {
	Call(ctx context.Context, c reeve.Call) (reeve.Result, error)
	Preview(ctx context.Context, c reeve.Call) (reeve.Explanation, error)
	CallableTools(ctx context.Context, who reeve.Call) ([]reeve.Tool, error)
	// CacheAncestry tells the gate on whose behalf a run acts.
	CacheAncestry(run reeve.Run)
	// CancelForItem takes back the calls of an item that wait for a person.
	CancelForItem(ctx context.Context, tx *store.Tx, v reeve.Item, why string) error
}

// Settings validates an agent's settings for a tool.
type Settings interface {
	CheckConfig(t reeve.Tool, config []byte) (json.RawMessage, error)
}

// WakeQueue begins runs.
type WakeQueue interface {
	Wakeup()
	WakeIn(ctx context.Context, tx *store.Tx, w reeve.Wake, key string) (_ reeve.Wake, fresh bool, err error)
}

// SchedulePlanner plans schedules.
type SchedulePlanner interface {
	CheckScheduleCount(ctx context.Context, tx *store.Tx, t reeve.Timer) error
	Plan(t reeve.Timer, now time.Time) (reeve.Timer, []time.Time, error)
}

// Config says how automations run.
type Config struct {
	DB       *store.DB
	Log      *slog.Logger
	Pool     *js.Pool
	Gate     Gate            // makes the calls of scripts
	Items    *Items          // knows the scripts that run here; the gate's item rule
	Settings Settings        // checks the settings of tools that are attached
	Waker    WakeQueue       // asks for runs
	Timers   SchedulePlanner // plans schedules
	Process  string          // who owns the runs begun here; it must be announced in the store
	Limits   js.Limits       // of one run. Default: an hour, and otherwise the sandbox's own

	// before a run that the network failed is made again. Default: 10 s doubling to 10 min, 5 tries
	Backoff backoff.Policy
	Webhook bool // whether notifications are also sent to a webhook
}

// Runner runs automations and keeps their ledger.
type Runner struct {
	Config
	mu    sync.Mutex
	steps map[string]*step // by run: what somebody here waits for
}

// NewRunner returns a runner.
func NewRunner(cfg Config) *Runner {
	if cfg.Limits.Time == 0 {
		cfg.Limits.Time = time.Hour
	}
	return &Runner{Config: cfg, steps: map[string]*step{}}
}
