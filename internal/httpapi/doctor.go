package httpapi

import (
	"context"
	"fmt"
	"strings"

	"reeve"
	"reeve/api"
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

// doctor has the server check its parts, then looks at what is wrong in the workspace. A check that meets a row that
// cannot be read says so, and the others go on.
func (h *doctorHandlers) doctor(ctx context.Context, who reeve.Principal, _ *Scoped) (*body[api.DoctorReport], error) {
	out := &body[api.DoctorReport]{}
	if h.checkParts != nil {
		out.Body.Checks = h.checkParts(ctx)
	}
	for _, c := range []struct {
		name  string
		check func(context.Context, reeve.Principal) (reeve.PartHealth, error)
	}{{"tools", h.checkTools}, {"agents", h.checkAgents}, {"schedules", h.checkSchedules}} {
		part, err := c.check(ctx, who)
		if row, ok := store.AsCorruptRow(err); ok {
			part, err = newPartHealth(c.name, []string{row.Error()}, "",
				"see the check of rows; until then nobody can tell more"), nil
		}
		if err != nil {
			return nil, err
		}
		out.Body.Checks = append(out.Body.Checks, part)
	}
	return out, nil
}

func (h *doctorHandlers) checkTools(ctx context.Context, who reeve.Principal) (reeve.PartHealth, error) {
	tools, err := h.gate.Catalogue.Tools(ctx, who.Workspace, "")
	return newPartHealth("tools", describeBrokenTools(tools), "every tool in the catalogue can be called",
		"remove the tool, or make it again, or run a build that has its handler, or give it what it says is missing; "+
			"all others work"), err
}

func (h *doctorHandlers) checkAgents(ctx context.Context, who reeve.Principal) (part reeve.PartHealth, err error) {
	return part, h.db.View(ctx, func(snap *store.Snap) error {
		var said, hints []string
		settings, err := snap.Agents().ListSettings(ctx, who.Workspace)
		for _, v := range settings {
			if why := h.gate.Catalogue.WhyNotCallable(v.Tool, v.Config); why != "" {
				said = append(said, v.Agent+": the tool "+v.Tool.ID+": "+why)
				hints = append(hints, fmt.Sprintf("reeve agents detach %s %s, then reeve agents attach %s %s "+
					"--config with the "+
					"settings that reeve tools get %s shows", v.Agent, v.Tool.ID, v.Agent, v.Tool.ID, v.Tool.ID))
			}
		}
		part = newPartHealth("agents", said, "every agent's settings fit its tools", strings.Join(hints, "; "))
		return err
	})
}

// maxDisabledSchedules is how many disabled schedules the doctor names.
const maxDisabledSchedules = 10

func (h *doctorHandlers) checkSchedules(ctx context.Context, who reeve.Principal) (part reeve.PartHealth, err error) {
	return part, h.db.View(ctx, func(snap *store.Snap) error {
		list, total, err := snap.Queue().
			ListTimers(ctx, who.Workspace, store.TimerFilter{For: visibleUser(who), State: reeve.TimerDisabled,
				Limit: maxDisabledSchedules})
		var said []string
		for _, t := range list {
			said = append(said, fmt.Sprintf("%s (%s): %s", t.ID, t.Name, h.planner.WhyDisabled(t)))
		}
		if more := total - len(list); more > 0 {
			said = append(said, fmt.Sprintf("and %d more", more))
		}
		part = newPartHealth("schedules", said, "none is disabled",
			"see reeve schedules runs ID for what went wrong, then reeve schedules resume ID, or delete it; all "+
				"others go on")
		return err
	})
}

// newPartHealth is a part in which what is said is wrong; nothing said means that it is well.
func newPartHealth(name string, said []string, good, hint string) reeve.PartHealth {
	if len(said) == 0 {
		return reeve.PartHealth{Name: name, OK: true, Detail: good}
	}
	return reeve.PartHealth{Name: name, Detail: strings.Join(said, "; "), Hint: hint}
}

// describeBrokenTools names the tools of a list that cannot be called, and why.
func describeBrokenTools(tools []reeve.Tool) (said []string) {
	for _, t := range tools {
		if t.Broken != "" {
			said = append(said, t.ID+": "+t.Broken)
		}
	}
	return said
}
