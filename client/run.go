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

// RunFilter selects runs.
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

// Requests lists what the model was asked in a run, with what was left out.
func (s RunService) Requests(ctx context.Context, id string) (api.AskedRequestList, error) {
	return get[api.AskedRequestList](ctx, s.conn, path("runs", id, "requests"), nil)
}

// Wakes lists the wakes that a run serves, newest first.
func (s RunService) Wakes(ctx context.Context, id string, p Page) (api.WakeList, error) {
	return get[api.WakeList](ctx, s.conn, path("runs", id, "wakes"), p.query())
}

// Messages lists messages of a run, oldest first.
func (s RunService) Messages(ctx context.Context, run reeve.Run, p Page) (api.MessageList, error) {
	return AgentService(s).Messages(ctx, run.AgentID, MessageFilter{Run: run.ID, Page: p})
}

// Cancel cancels a run. Calls that have started are still recorded.
func (s RunService) Cancel(ctx context.Context, id string) (reeve.Run, error) {
	return post[reeve.Run](ctx, s.conn, path("runs", id, "cancel"), nil)
}

// Create wakes an agent. The same key wakes it once. Without a key, each request does. Use [RunService.OfWake] to get
// the run.
func (s WakeService) Create(ctx context.Context, agent, key string, w api.WakeRequest) (out reeve.Wake, err error) {
	if key == "" {
		key = s.conn.key()
	}
	return out, s.conn.do(ctx, &request{method: http.MethodPost, path: path("agents", agent, "wake"), body: w, key: key,
		retryHint: "repeat the request with Idempotency-Key " + key + "; the agent wakes once"}, &out)
}

// List lists an agent's wakes, newest first, including queued and skipped ones.
func (s WakeService) List(ctx context.Context, agent string, p Page) (api.WakeList, error) {
	return get[api.WakeList](ctx, s.conn, path("agents", agent, "wakes"), p.query())
}

// Get returns a wake by its run key.
func (s WakeService) Get(ctx context.Context, key string) (reeve.Wake, error) {
	return get[reeve.Wake](ctx, s.conn, path("wakes", key), nil)
}

// WaitForWake waits until a run serves the wake and returns the run. If the wake is skipped, the error has the code
// Skipped. If the wake is queued behind a run of its agent in one of the states, OfWake returns that run and an error
// with the code InProgress.
func (s RunService) WaitForWake(ctx context.Context, w reeve.Wake,
	behind ...reeve.RunState) (run reeve.Run, err error) {
	err = poll(ctx, "the run has not started", true, func() (bool, error) {
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
				if run, err = s.findBlocking(ctx, w.AgentID, state); err != nil || run.ID != "" {
					break
				}
			}
			if err == nil && run.ID != "" {
				err = reeve.Errorf(reeve.InProgress, "run %s of the agent must end first; it is %s", run.ID, run.State)
			}
			return false, err
		}
		return false, nil
	})
	return run, err
}

// findBlocking returns an agent's run in a state that blocks its queued wakes, or a zero run. Turns and runs of
// schedules and steps do not block others. A run that is parked only until another agent answers does not count,
// because it continues by itself.
func (s RunService) findBlocking(ctx context.Context, agent string, state reeve.RunState) (run reeve.Run, err error) {
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

// Wait polls a run until it has ended or is in one of the given states. A run that is parked only until another agent
// answers does not count as parked.
func (s RunService) Wait(ctx context.Context, id string, until ...reeve.RunState) (run reeve.Run, err error) {
	err = poll(ctx, "run "+id+" has not ended", false, func() (bool, error) {
		run, err = s.Get(ctx, id)
		return run.State.IsFinal() || slices.Contains(until, run.State) && !run.WaitsForAgents, err
	})
	return run, err
}

const (
	pollDowntime = 30 * time.Second // time for a server to come back, for example from a restart
	maxInterval  = 2 * time.Second  // longest time between two polls
)

// poll calls check, with growing pauses, until it reports true or fails. While the server is unavailable, poll retries
// for pollDowntime if the server has answered before. unfinished describes the state for the error of a cancelled
// context.
func poll(ctx context.Context, unfinished string, hasAnswered bool, check func() (bool, error)) error {
	last := reeve.Monotonic()
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, maxInterval) {
		done, err := check()
		switch {
		case reeve.CodeOf(err) == reeve.Unavailable && hasAnswered && reeve.Since(last) < pollDowntime:
		case done || err != nil:
			return err
		default:
			hasAnswered, last = true, reeve.Monotonic()
		}
		if !notify.Sleep(ctx, pause) {
			return &reeve.Error{Code: reeve.Canceled, Message: "interrupted: " + unfinished, Err: ctx.Err()}
		}
	}
}

// PlanUndo returns what an undo of a run would do, the latest change first.
func (s RunService) PlanUndo(ctx context.Context, id string) (api.UndoPlanList, error) {
	return get[api.UndoPlanList](ctx, s.conn, path("runs", id, "undo"), nil)
}

// Undo undoes what can be undone of a run, the latest change first.
func (s RunService) Undo(ctx context.Context, id string) (api.UndoPlanList, error) {
	return post[api.UndoPlanList](ctx, s.conn, path("runs", id, "undo"), nil)
}
