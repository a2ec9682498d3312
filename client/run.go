package client

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"reeve"
	"reeve/api"
	"reeve/internal/notify"
)

// RunFilter chooses runs.
type RunFilter struct {
	Agent string         // of one agent. Default: of all
	State reeve.RunState // in one state. Default: in any
	Page
}

// List lists runs, newest first.
func (s RunService) List(ctx context.Context, f RunFilter) (api.RunList, error) {
	q := f.query()
	q.Set("agent", f.Agent)
	q.Set("state", string(f.State))
	return get[api.RunList](ctx, s.conn, path("runs"), q)
}

// Get returns one run.
func (s RunService) Get(ctx context.Context, id string) (reeve.Run, error) {
	return get[reeve.Run](ctx, s.conn, path("runs", id), nil)
}

// Wakes says why a run ran: the wakes it serves, newest first.
func (s RunService) Wakes(ctx context.Context, id string, p Page) (api.WakeList, error) {
	return get[api.WakeList](ctx, s.conn, path("runs", id, "wakes"), p.query())
}

// Messages lists a part of what a run thought and did, oldest first.
func (s RunService) Messages(ctx context.Context, run reeve.Run, p Page) (api.MessageList, error) {
	return AgentService(s).Messages(ctx, run.AgentID, MessageFilter{Run: run.ID, Page: p})
}

// Cancel ends a run. What it has begun is still recorded.
func (s RunService) Cancel(ctx context.Context, id string) (reeve.Run, error) {
	return post[reeve.Run](ctx, s.conn, path("runs", id, "cancel"), nil)
}

// Create asks for a run of an agent. The same key wakes it once; without one, each request does.
// [RunService.WaitForWake] gives the run.
func (s WakeService) Create(ctx context.Context, agent, key string, w api.WakeRequest) (out reeve.Wake, err error) {
	if key == "" {
		key = s.conn.key()
	}
	return out, s.conn.do(ctx, &request{method: http.MethodPost, path: path("agents", agent, "wake"), body: w, key: key,
		again: "ask again with the Idempotency-Key " + key + ": it wakes once"}, &out)
}

// List lists an agent's wakes, newest first: those that wait, too, and those that were skipped.
func (s WakeService) List(ctx context.Context, agent string, p Page) (api.WakeList, error) {
	return get[api.WakeList](ctx, s.conn, path("agents", agent, "wakes"), p.query())
}

// Get returns a wake by its run key.
func (s WakeService) Get(ctx context.Context, key string) (reeve.Wake, error) {
	return get[reeve.Wake](ctx, s.conn, path("wakes", key), nil)
}

// WaitForWake waits until a run serves the wake and returns the run. It fails with Skipped if the wake is skipped. If
// the wake waits behind another run of its agent in one of the states behind, WaitForWake fails with InProgress and
// returns that run.
func (s RunService) WaitForWake(ctx context.Context, w reeve.Wake,
	behind ...reeve.RunState) (run reeve.Run, err error) {
	err = patiently(ctx, "the agent is not awake yet", true, func() (bool, error) {
		is, err := WakeService(s).Get(ctx, w.RunKey)
		if err != nil {
			return false, err
		}
		switch is.State {
		case reeve.WakeSkipped:
			return false, reeve.Errorf(reeve.Skipped, "the wake was skipped: %s", is.Why)
		case reeve.WakeTaken:
			run, err = s.Get(ctx, is.RunID)
			return true, err
		case reeve.WakeQueued:
			for _, state := range behind {
				if run, err = s.first(ctx, w.AgentID, state); err != nil || run.ID != "" {
					break
				}
			}
			if err == nil && run.ID != "" {
				err = reeve.Errorf(reeve.InProgress, "the agent's run %s goes first, and is %s", run.ID, run.State)
			}
			return false, err
		}
		return false, nil
	})
	return run, err
}

// first returns the run of an agent in a state that its wakes wait for: not a turn, nor one that is served beside the
// others. One that is parked only until an agent has answered goes on, and is none.
func (s RunService) first(ctx context.Context, agent string, state reeve.RunState) (run reeve.Run, err error) {
	for f := (RunFilter{Agent: agent, State: state, Page: Page{Limit: 500}}); ; {
		list, err := s.List(ctx, f)
		if err != nil {
			return run, err
		}
		for _, r := range list.Runs {
			if r.Reason == reeve.ReasonUser || strings.HasPrefix(r.SessionID, "schedule:") ||
				strings.HasPrefix(r.SessionID, "step:") {
				continue
			}
			if r, err = s.Get(ctx, r.ID); err != nil || r.State == state && !r.WaitsForAgents {
				return r, err
			}
		}
		if f.Cursor = list.Next; f.Cursor == "" {
			return run, nil
		}
	}
}

// Wait looks at a run until it has ended, or is in one of the states given. One that is parked only until an agent has
// answered goes on.
func (s RunService) Wait(ctx context.Context, id string, until ...reeve.RunState) (run reeve.Run, err error) {
	err = patiently(ctx, "run "+id+" has not ended", false, func() (bool, error) {
		run, err = s.Get(ctx, id)
		return run.State.IsFinal() || slices.Contains(until, run.State) && !run.WaitsForAgents, err
	})
	return run, err
}

const (
	away    = 30 * time.Second // how long a server that was there may be gone: it may just be started again
	slowest = 2 * time.Second  // the longest time between two looks
)

// patiently looks until there is something to see. Short pauses come first. A server that was met before is given time
// to come back.
func patiently(ctx context.Context, not string, met bool, look func() (bool, error)) error {
	last := reeve.Monotonic()
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, slowest) {
		seen, err := look()
		switch {
		case reeve.CodeOf(err) == reeve.Unavailable && met && reeve.Since(last) < away:
		case seen || err != nil:
			return err
		default:
			met, last = true, reeve.Monotonic()
		}
		if !notify.Sleep(ctx, pause) {
			return &reeve.Error{Code: reeve.Canceled, Message: "interrupted: " + not, Err: ctx.Err()}
		}
	}
}
