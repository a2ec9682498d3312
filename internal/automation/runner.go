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

// Gate is the part of the gate that automations use.
type Gate interface {
	Call(ctx context.Context, c reeve.Call) (reeve.Result, error)
	Preview(ctx context.Context, c reeve.Call) (reeve.Explanation, error)
	CallableTools(ctx context.Context, who reeve.Call) ([]reeve.Tool, error)
	// CacheAncestry stores on whose behalf a run acts, so that its calls need not read it.
	CacheAncestry(run reeve.Run)
	// CancelForItem cancels the calls of an item that wait for a person.
	CancelForItem(ctx context.Context, tx *store.Tx, v reeve.Item, why string) error
}

// Settings checks an agent's settings for a tool.
type Settings interface {
	CheckConfig(t reeve.Tool, config []byte) (json.RawMessage, error)
}

// WakeQueue enqueues wakes.
type WakeQueue interface {
	Wakeup()
	WakeIn(ctx context.Context, tx *store.Tx, w reeve.Wake, key string) (_ reeve.Wake, fresh bool, err error)
}

// SchedulePlanner computes the times of schedules.
type SchedulePlanner interface {
	CheckScheduleCount(ctx context.Context, tx *store.Tx, t reeve.Timer) error
	Plan(t reeve.Timer, now time.Time) (reeve.Timer, []time.Time, error)
}

// Config holds the dependencies and settings of the types in this package.
type Config struct {
	DB       *store.DB
	Log      *slog.Logger
	Pool     *js.Pool
	Gate     Gate            // makes the calls of scripts
	ItemRule *ItemRule       // the gate's item rule; it knows the scripts that run in this process
	Settings Settings        // checks the settings of attached tools
	Waker    WakeQueue       // enqueues runs
	Timers   SchedulePlanner // plans schedules
	Process  string          // owner of the runs begun here; it must be registered in the store
	Limits   js.Limits       // limits of one run. Default: one hour, and the sandbox's own limits

	// Backoff delays the retry of a run that failed for the network. Default: 10 s doubling to 10 min, 5 tries
	Backoff backoff.Policy
	Webhook bool // notifications are also sent to the webhook. Default: false
}

// Runner executes the scripts of automations.
type Runner struct {
	Config
	mu    sync.Mutex
	steps map[string]*pendingStep // by run id: the steps that a turn in this process waits for
}

// NewRunner returns a runner.
func NewRunner(cfg Config) *Runner {
	if cfg.Limits.Time == 0 {
		cfg.Limits.Time = time.Hour
	}
	return &Runner{Config: cfg, steps: map[string]*pendingStep{}}
}
