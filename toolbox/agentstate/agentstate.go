package agentstate

import (
	"context"
	"time"

	"reeve"
	"reeve/internal/store"
)

// Pack is the pack of the agent state tools.
type Pack struct{ DB *store.DB }

type noArgs struct{}

// state is the state of an agent as its tools show it.
type state struct {
	Slots      reeve.AgentSlots `json:"slots"`
	SleepUntil *time.Time       `json:"sleep_until,omitempty"`
	NextWakeAt *time.Time       `json:"next_wake_at,omitempty"`
	Message    string           `json:"message,omitempty"`
}

type sleepArgs struct {
	SleepUntil *string `json:"sleep_until,omitempty" maxLength:"40" doc:"RFC 3339 with a UTC offset, such as 2026-03-01T07:00:00+01:00. Empty to end the sleep. Default: unchanged"`
	NextWakeAt *string `json:"next_wake_at,omitempty" maxLength:"40" doc:"RFC 3339 with a UTC offset. Empty to cancel the planned wake. Default: unchanged"`
	reeve.UndoGuard
}

// Tools returns agent_state_get, agent_state_update and agent_sleep.
func (p *Pack) Tools() []reeve.Tool {
	tool := func(id, name, what string, effect reeve.Effect) reeve.Tool {
		return reeve.Tool{ID: id, Name: name, Description: what, Category: "general", Pack: "agent_state",
			Effect: effect, Risk: reeve.LowRisk, TimeoutMS: 10_000, Undoable: effect == reeve.Local}
	}
	return []reeve.Tool{
		reeve.MustTool(tool("agent_state_get", "Get Agent State",
			"Read your own state: the primary goal, the active task, open loops and preferences that you keep "+
				"between runs, until when you sleep and when you wake next.", reeve.Read), p.get),
		reeve.MustTool(tool("agent_state_update", "Update Agent State",
			"Change your own state, which you see again in later runs. Use it when your goal or current task "+
				"changes, to note something to return to as an open loop, and to remove it when it is done. Fields "+
				"that you leave out stay unchanged. Returns the new state.", reeve.Local), p.update),
		reeve.MustTool(tool("agent_sleep", "Sleep",
			"Plan when you run next. Until sleep_until, changes and timers start no runs of yours; they "+
				"wake you afterwards. At next_wake_at you run once. People can always wake you. "+
				"Times must be in the future and within 366 days. Returns the new plan.", reeve.Local), p.sleep),
	}
}

func (p *Pack) get(ctx context.Context, _ noArgs) (state, error) {
	inv := reeve.InvocationFrom(ctx)
	var out state
	return out, p.DB.View(ctx, func(s *store.Snap) error {
		is, err := s.Agents().AgentState(ctx, inv.Agent)
		out = newState(is, "")
		return err
	})
}

func newState(s reeve.AgentState, message string) state {
	return state{Slots: s.Slots, SleepUntil: s.SleepUntil, NextWakeAt: s.NextWakeAt, Message: message}
}

// current returns the call's transaction, the calling agent and its state.
func current(ctx context.Context, inv *reeve.Invocation) (tx *store.Tx, a reeve.Agent, is reeve.AgentState, err error) {
	if tx, err = store.TxFrom(ctx); err != nil {
		return tx, a, is, err
	}
	if a, err = tx.Agents().GetAgent(ctx, inv.Workspace, inv.Agent); err != nil {
		return tx, a, is, err
	}
	is, err = tx.Agents().LockState(ctx, a)
	return tx, a, is, err
}

// emit reports a change of the agent's state.
func emit(inv *reeve.Invocation) {
	inv.Emit(reeve.SemanticKey, reeve.KeyAgentState)
	inv.Emit(reeve.EntityID, inv.Agent)
}

func (p *Pack) sleep(ctx context.Context, in sleepArgs) (state, error) {
	inv := reeve.InvocationFrom(ctx)
	tx, a, was, err := current(ctx, inv)
	if err != nil {
		return state{}, err
	}
	if err := in.Check(was.WakePlan); err != nil {
		return state{}, err
	}
	plan := was.WakePlan
	for _, f := range []struct {
		path string
		from *string
		to   **time.Time
	}{{"/sleep_until", in.SleepUntil, &plan.SleepUntil}, {"/next_wake_at", in.NextWakeAt, &plan.NextWakeAt}} {
		if f.from == nil {
			continue
		}
		if *f.to, err = parseTime(f.path, *f.from); err != nil {
			return state{}, err
		}
		if t := *f.to; in.Expect != "" && t != nil && !t.After(tx.Now()) { // an undo cannot restore a past time
			*f.to = nil
		}
	}
	is, changed, err := tx.Agents().PutWakePlan(ctx, a, plan, reeve.Timer{UserID: inv.User, Origin: inv.Thread,
		OnBehalfOf: inv.OnBehalfOf(inv.HasLimitedTools())})
	if err != nil {
		return state{}, err
	}
	if !changed {
		return newState(is, "Nothing was changed."), nil
	}
	emit(inv)
	before, after := formatPlan(was.WakePlan), is.WakePlan
	before.UndoGuard = reeve.NewUndoGuard(after)
	inv.UndoWith("agent_sleep", before)
	return newState(is, "The plan was changed."), nil
}

// parseTime parses a time of a wake plan. It returns nil for an empty text.
func parseTime(path, text string) (*time.Time, error) {
	if text == "" {
		return nil, nil
	}
	t, err := reeve.ParseInstant(text)
	if err != nil {
		return nil, reeve.InvalidField(path, "is not a time with a UTC offset",
			"RFC 3339, such as 2026-03-01T07:00:00+01:00")
	}
	t = reeve.FromMillis(reeve.Millis(t))
	return &t, nil
}

// formatPlan returns the arguments that set a plan.
func formatPlan(p reeve.WakePlan) sleepArgs {
	text := func(t *time.Time) *string {
		s := ""
		if t != nil {
			s = t.UTC().Format(time.RFC3339Nano)
		}
		return &s
	}
	return sleepArgs{SleepUntil: text(p.SleepUntil), NextWakeAt: text(p.NextWakeAt)}
}
