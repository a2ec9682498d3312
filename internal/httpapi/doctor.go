package httpapi

import (
	"context"
	"fmt"
	"strings"

	"reeve"
	"reeve/internal/gate"
	"reeve/internal/store"
	"reeve/internal/wake"
)

// doctorHandlers checks the server and a workspace.
type doctorHandlers struct {
	db         *store.DB
	gate       *gate.Gate
	planner    *wake.Planner
	checkParts func(context.Context) []reeve.PartHealth // checks the parts of the server; may be nil
}

// doctor has the server check its parts, then looks at what is broken in the workspace.
func (h *doctorHandlers) doctor(ctx context.Context, who reeve.Principal, _ *Scoped) (*body[reeve.CheckUp], error) {
	out := &body[reeve.CheckUp]{}
	if h.checkParts != nil {
		out.Body.Checks = h.checkParts(ctx)
	}
	for _, check := range []func(context.Context, reeve.Principal) (reeve.PartHealth, error){h.checkWorkspace, h.checkTools, h.checkAgents, h.checkProfiles, h.checkBudgets, h.checkSchedules} {
		part, err := check(ctx, who)
		if err != nil {
			return nil, err
		}
		out.Body.Checks = append(out.Body.Checks, part)
	}
	return out, nil
}

func (h *doctorHandlers) checkWorkspace(ctx context.Context, who reeve.Principal) (part reeve.PartHealth, err error) {
	return part, h.db.View(ctx, func(snap *store.Snap) error {
		w, err := snap.GetWorkspace(ctx, who.Workspace)
		var said []string
		if w.Broken != "" {
			said = []string{w.ID + ": " + w.Broken + ", and it counts as stopped"}
		}
		part = ailing("workspace", said, "its row can be read", "reeve resume mends it, and lets its agents act again; reeve stop mends it, and keeps them stopped")
		return err
	})
}

func (h *doctorHandlers) checkTools(ctx context.Context, who reeve.Principal) (reeve.PartHealth, error) {
	tools, err := h.gate.Catalogue.Tools(ctx, who.Workspace, "")
	return ailing("tools", brokenTools(tools), "every tool in the catalogue can be called",
		"remove the tool, or make it again, or run a build that has its handler, or give it what it says is missing; all others work"), err
}

func (h *doctorHandlers) checkAgents(ctx context.Context, who reeve.Principal) (part reeve.PartHealth, err error) {
	return part, h.db.View(ctx, func(snap *store.Snap) error {
		said, err := snap.BrokenAgents(ctx, who.Workspace)
		if err != nil {
			return err
		}
		var hints []string
		if len(said) > 0 {
			hints = append(hints, "set what is damaged again (reeve agents update, reeve agents state, reeve resume), or delete the agent; all others work")
		}
		settings, err := snap.ListSettings(ctx, who.Workspace)
		for _, v := range settings {
			if why := h.gate.Catalogue.Unfit(v.Tool, v.Config); why != "" {
				said = append(said, v.Agent+": the tool "+v.Tool.ID+": "+why)
				hints = append(hints, fmt.Sprintf("reeve agents detach %s %s, then reeve agents attach %s %s --config with the "+
					"settings that reeve tools get %s shows", v.Agent, v.Tool.ID, v.Agent, v.Tool.ID, v.Tool.ID))
			}
		}
		part = ailing("agents", said, "every agent and its state can be read", strings.Join(hints, "; "))
		return err
	})
}

func (h *doctorHandlers) checkProfiles(ctx context.Context, who reeve.Principal) (part reeve.PartHealth, err error) {
	return part, h.db.View(ctx, func(snap *store.Snap) error {
		list, err := snap.ListProfiles(ctx, who.Workspace)
		said := broken(list, func(p reeve.Profile) (string, string) { return p.Kind, p.Broken })
		part = ailing("profiles", said, "every profile can be read", "set it again with reeve profiles set; until then, it grants its agents nothing")
		return err
	})
}

func (h *doctorHandlers) checkBudgets(ctx context.Context, who reeve.Principal) (part reeve.PartHealth, err error) {
	return part, h.db.View(ctx, func(snap *store.Snap) error {
		list, err := snap.ListBudgets(ctx, who.Workspace)
		said := broken(list, func(b reeve.Budget) (string, string) { return b.Subject, b.Broken })
		part = ailing("budgets", said, "every budget can be read", "set it again with reeve budgets set; until then, calls that draw on it are refused, and no others")
		return err
	})
}

// disabledShown is how many disabled schedules the doctor names.
const disabledShown = 10

func (h *doctorHandlers) checkSchedules(ctx context.Context, who reeve.Principal) (part reeve.PartHealth, err error) {
	return part, h.db.View(ctx, func(snap *store.Snap) error {
		list, total, err := snap.ListTimers(ctx, who.Workspace, store.TimerFilter{For: eyes(who), State: reeve.TimerDisabled, Limit: disabledShown})
		var said []string
		for _, t := range list {
			said = append(said, fmt.Sprintf("%s (%s): %s", t.ID, t.Name, h.planner.Why(t)))
		}
		if more := total - len(list); more > 0 {
			said = append(said, fmt.Sprintf("and %d more", more))
		}
		part = ailing("schedules", said, "none is disabled", "see reeve schedules runs ID for what went wrong, then reeve schedules resume ID, or delete it; all others go on")
		return err
	})
}

// ailing is a part in which what is said is wrong; nothing said means that it is well.
func ailing(name string, said []string, good, hint string) reeve.PartHealth {
	if len(said) == 0 {
		return reeve.PartHealth{Name: name, OK: true, Detail: good}
	}
	return reeve.PartHealth{Name: name, Detail: strings.Join(said, "; "), Hint: hint}
}

// broken names what is broken of a list, and why.
func broken[T any](list []T, of func(T) (name, why string)) (said []string) {
	for _, v := range list {
		if name, why := of(v); why != "" {
			said = append(said, name+": "+why)
		}
	}
	return said
}

func brokenTools(tools []reeve.Tool) []string {
	return broken(tools, func(t reeve.Tool) (string, string) { return t.ID, t.Broken })
}
