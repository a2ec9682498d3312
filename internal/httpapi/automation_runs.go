package httpapi

import (
	"context"
	"strconv"
	"time"

	"reeve"
	"reeve/api"
	"reeve/internal/store"
)

// automationRunHandlers serves the runs of automations and the plans of dry runs.
type automationRunHandlers struct {
	db          *store.DB
	automations Automations
	auth        *authenticator
	permits     streamPermitIssuer
	streams     *Streams
	errors      errorWriter
	heartbeat   time.Duration
}

func newAutomationRunHandlers(s *services) *automationRunHandlers {
	return &automationRunHandlers{db: s.DB, automations: s.Automations, auth: s.auth, permits: s.permits,
		streams: s.Streams, errors: s.errors,
		heartbeat: s.Heartbeat}
}

func (h *automationRunHandlers) list(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	Page
}) (*body[api.AutomationRunList], error) {
	if err := checkCursor(in.Cursor); err != nil {
		return nil, err
	}
	out := &body[api.AutomationRunList]{}
	return out, h.db.View(ctx, func(snap *store.Snap) error {
		m, err := snap.Automations().GetAutomation(ctx, who.Workspace, in.ID)
		if err != nil {
			return err
		}
		runs, err := snap.Runs().
			ListRuns(ctx, who.Workspace, store.RunFilter{Agent: m.AgentID, VisibleTo: visibleUser(who),
				Before: in.Cursor,
				Limit:  in.Limit})
		out.Body.Runs = make([]reeve.AutomationRun, len(runs))
		for i := 0; i < len(runs) && err == nil; i++ {
			out.Body.Runs[i].Run = &runs[i]
			out.Body.Runs[i].Script, _, err = snap.Automations().FindScriptRunOf(ctx, who.Workspace, runs[i].ID)
		}
		if n := len(runs); n == in.Limit {
			out.Body.Next = runs[n-1].ID
		}
		return err
	})
}

func (h *automationRunHandlers) start(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	Body reeve.AutomationRunRequest
}) (*body[reeve.AutomationRun], error) {
	run, err := h.automations.Start(ctx, who.Workspace, in.ID, who.User, in.Body)
	return &body[reeve.AutomationRun]{run}, err
}

func (h *automationRunHandlers) getPlan(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	Page
}) (*body[api.Plan], error) {
	after, err := parsePositionCursor(in.Cursor, 31)
	if err != nil {
		return nil, err
	}
	out := &body[api.Plan]{}
	err = h.db.View(ctx, func(snap *store.Snap) error {
		run, err := getVisiblePlan(ctx, snap, who, in.ID)
		if err != nil {
			return err
		}
		out.Body.RunID, out.Body.AgentID = run.RunID, run.AgentID
		out.Body.Calls, err = snap.Automations().ListPlannedCalls(ctx, who.Workspace, in.ID, int(after), in.Limit)
		return err
	})
	if n := len(out.Body.Calls); n == in.Limit {
		out.Body.Next = positionCursor + strconv.Itoa(out.Body.Calls[n-1].Ordinal)
	}
	return out, err
}

// getVisiblePlan returns the script run of a dry run. It fails with NOT_FOUND if the run is not a dry run or the caller
// may not see it.
func getVisiblePlan(ctx context.Context, snap *store.Snap, who reeve.Principal, id string) (reeve.ScriptRun, error) {
	run, ok, err := snap.Automations().FindScriptRunOf(ctx, who.Workspace, id)
	if err != nil {
		return run, err
	}
	if !ok || run.Type != reeve.DryRun {
		return run, newNotFound("plan", id)
	}
	if _, err = getVisibleRun(ctx, snap, who, id); reeve.CodeOf(err) == reeve.NotFound {
		err = newNotFound("plan", id)
	}
	return run, err
}

func (h *automationRunHandlers) applyPlan(ctx context.Context, who reeve.Principal,
	in *IDPath) (*body[reeve.AutomationRun], error) {
	if err := h.db.View(ctx, func(snap *store.Snap) error {
		_, err := getVisiblePlan(ctx, snap, who, in.ID)
		return err
	}); err != nil {
		return nil, err
	}
	run, err := h.automations.Apply(ctx, who.Workspace, in.ID, who.User)
	return &body[reeve.AutomationRun]{run}, err
}
