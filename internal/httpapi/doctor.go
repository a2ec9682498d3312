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
	timetable  *wake.Timetable
	checkParts func(context.Context) []reeve.PartHealth // checks the parts of the server; may be nil
	reach      subscriptionReach
}

// doctor checks the server's parts, then the tools, agents and schedules of the workspace. It reports a check that
// fails and runs the others.
func (h *doctorHandlers) doctor(ctx context.Context, who reeve.Principal, _ *Scoped) (*body[api.DoctorReport], error) {
	out := &body[api.DoctorReport]{}
	if h.checkParts != nil {
		out.Body.Checks = h.checkParts(ctx)
	}
	for _, c := range []struct {
		name  string
		check func(context.Context, reeve.Principal) (reeve.PartHealth, error)
	}{{"tools", h.checkTools}, {"agents", h.checkAgents}, {"schedules", h.checkSchedules}, {"wakes", h.checkWakes}} {
		part, err := c.check(ctx, who)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if row, ok := store.AsCorruptRow(err); ok {
			part = newPartHealth(c.name, []string{row.Error()}, "", "repair the row first; the rows check shows how")
		} else if err != nil {
			part = newPartHealth(c.name, []string{"the check failed: " + reeve.AsError(err).Message}, "",
				"see the rows check and the server's log")
		}
		out.Body.Checks = append(out.Body.Checks, part)
	}
	return out, nil
}

func (h *doctorHandlers) checkTools(ctx context.Context, who reeve.Principal) (reeve.PartHealth, error) {
	tools, err := h.gate.Catalogue.Tools(ctx, who.Workspace, "")
	return newPartHealth("tools", describeBrokenTools(tools), "every tool in the catalogue can be called",
		"provide what the tool is missing, run a build that has its handler, or delete it or define it again; "+
			"all other tools work"), err
}

func (h *doctorHandlers) checkAgents(ctx context.Context, who reeve.Principal) (part reeve.PartHealth, err error) {
	return part, h.db.View(ctx, func(snap *store.Snap) error {
		var problems, hints []string
		settings, err := snap.Agents().ListSettings(ctx, who.Workspace)
		for _, v := range settings {
			if why := h.gate.Catalogue.WhyNotCallable(v.Tool, v.Config); why != "" {
				problems = append(problems, v.Agent+": tool "+v.Tool.ID+": "+why)
				hints = append(hints, fmt.Sprintf("run reeve agents detach %s %s, then reeve agents attach %s %s "+
					"--config with settings that fit the schema shown by reeve tools show %s", v.Agent, v.Tool.ID,
					v.Agent, v.Tool.ID, v.Tool.ID))
			}
		}
		part = newPartHealth("agents", problems, "every agent's settings fit its tools", strings.Join(hints, "; "))
		return err
	})
}

// maxDisabledSchedules is the most disabled schedules that the doctor names.
const maxDisabledSchedules = 10

// maxWakesChecked is the most subscriptions, and the most schedules, that the doctor checks.
const maxWakesChecked = 1000

func (h *doctorHandlers) checkSchedules(ctx context.Context, who reeve.Principal) (part reeve.PartHealth, err error) {
	return part, h.db.View(ctx, func(snap *store.Snap) error {
		list, total, err := snap.Queue().
			ListTimers(ctx, who.Workspace, store.TimerFilter{VisibleTo: visibleUser(who), State: reeve.TimerDisabled,
				Limit: maxDisabledSchedules})
		var problems []string
		for _, t := range list {
			problems = append(problems, fmt.Sprintf("%s (%s): %s", t.ID, t.Name, h.timetable.WhyDisabled(t)))
		}
		if more := total - len(list); more > 0 {
			problems = append(problems, fmt.Sprintf("and %d more", more))
		}
		part = newPartHealth("schedules", problems, "no schedule is disabled",
			"see what failed with reeve schedules runs ID, then run reeve schedules resume ID or delete the schedule; "+
				"all other schedules run")
		return err
	})
}

// checkWakes names subscriptions and active schedules that cannot wake their agents.
func (h *doctorHandlers) checkWakes(ctx context.Context, who reeve.Principal) (part reeve.PartHealth, err error) {
	return part, h.db.View(ctx, func(snap *store.Snap) error {
		var problems []string
		more := 0
		report := func(id, agent, why string) {
			if why == "" {
				return
			}
			if len(problems) == maxDisabledSchedules {
				more++
				return
			}
			problems = append(problems, fmt.Sprintf("%s of %s cannot fire: %s", id, agent, why))
		}
		timers, _, err := snap.Queue().ListTimers(ctx, who.Workspace, store.TimerFilter{VisibleTo: visibleUser(who),
			State: reeve.TimerActive, Limit: maxWakesChecked})
		if err != nil {
			return err
		}
		subscriptions, err := snap.Queue().ListWorkspaceSubscriptions(ctx, who.Workspace, maxWakesChecked)
		if err != nil {
			return err
		}
		agents := map[string]reeve.Agent{}
		find := func(id string) (reeve.Agent, error) {
			a, known := agents[id]
			if known {
				return a, nil
			}
			a, _, err := snap.Agents().FindAgent(ctx, who.Workspace, id)
			agents[id] = a
			return a, err
		}
		for _, t := range timers {
			a, err := find(t.AgentID)
			if err != nil {
				return err
			}
			report(t.ID, a.Name, a.WhyNotWoken(reeve.ReasonTimer))
		}
		for _, s := range subscriptions {
			a, err := find(s.AgentID)
			if err != nil {
				return err
			}
			why, err := h.reach.whyNot(ctx, snap, s, a)
			if err != nil {
				return err
			}
			report(s.ID, a.Name, why)
		}
		if more > 0 {
			problems = append(problems, fmt.Sprintf("and %d more", more))
		}
		part = newPartHealth("wakes", problems, "every subscription and active schedule can wake its agent",
			"change the agent's lifecycle, mode or categories with reeve agents update, or delete the subscription "+
				"or schedule")
		return nil
	})
}

// newPartHealth returns the health of a part with the given problems. Without problems the part is OK, with good as its
// detail.
func newPartHealth(name string, problems []string, good, hint string) reeve.PartHealth {
	if len(problems) == 0 {
		return reeve.PartHealth{Name: name, OK: true, Detail: good}
	}
	return reeve.PartHealth{Name: name, Detail: strings.Join(problems, "; "), Hint: hint}
}

// describeBrokenTools returns one text for each tool that cannot be called, with the reason.
func describeBrokenTools(tools []reeve.Tool) (texts []string) {
	for _, t := range tools {
		if t.Broken != "" {
			texts = append(texts, t.ID+": "+t.Broken)
		}
	}
	return texts
}
