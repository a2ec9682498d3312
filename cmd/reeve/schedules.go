package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reeve"
	"reeve/api"
	"reeve/client"
)

func schedulesCommand(a *app) *cobra.Command {
	c := groupCommand("schedules", "Wake agents on a schedule",
		`A schedule wakes an agent at given times in a time zone, and notifies you of the results. Cron
expressions have five fields. If firings were missed because no server was running, the agent is woken
once for all of them; change this with --misfire.`,
		schedulesList(a), schedulesGet(a), schedulesPreview(a), schedulesCreate(a), schedulesUpdate(a),
		schedulesStatus(a, "pause", "Pause a schedule", "paused"),
		schedulesStatus(a, "resume", "Resume a paused schedule", "active"), schedulesRun(a),
		schedulesDelete(a), schedulesRuns(a))
	c.Example = `  reeve schedules
  reeve schedules create clerk --cron '0 7 * * 1-5' --zone Europe/Berlin --goal "Summarise what is due today"
  reeve schedules pause sch_...
  reeve schedules runs sch_...`
	return c
}

func schedulesList(a *app) *cobra.Command {
	var f client.ScheduleFilter
	var status string
	c := a.serverCommand("list", "List schedules", "schedules list --agent clerk --status active", cobra.NoArgs,
		func(ctx context.Context, c *client.Client, _ []string) error {
			f.Status = reeve.TimerState(status)
			l, err := c.Schedules().List(ctx, f)
			if err != nil {
				return err
			}
			if shown := f.Offset + len(l.Schedules); len(l.Schedules) > 0 && shown < l.Total {
				defer a.notef("%d of %d schedules; next page: add --offset %d", shown, l.Total, shown)
			}
			return a.print(l, func(w io.Writer) {
				const columns = "ID STATUS CADENCE NEXT AGENT NAME"
				a.printTable(w, columns, rows(l.Schedules, func(t api.ListedSchedule) []string {
					next := ""
					switch {
					case t.State == reeve.TimerActive && !t.CanFire:
						next = "never: " + t.WhyNot
					case t.NextAt != nil:
						next = formatClock(t.NextAt.In(loadZone(t.Timer)))
					}
					return []string{t.ID, string(t.State), formatCadence(t.Timer), next, t.AgentID,
						truncate(t.Name, 40)}
				}))
			})
		})
	c.Flags().StringVar(&f.Agent, "agent", "", "only schedules of this agent")
	c.Flags().StringVar(&f.Name, "name", "", "only schedules whose name contains this text")
	c.Flags().StringVar(&status, "status", "", "only schedules with this status: active, paused, completed or disabled")
	c.Flags().IntVar(&f.Offset, "offset", 0, "number of schedules to skip at the start")
	c.Flags().IntVar(&f.Limit, "limit", 0, "maximum number of schedules")
	a.completeFlag(c, "agent", agentNames)
	completeFlagValues(c, "status", []reeve.TimerState{reeve.TimerActive, reeve.TimerPaused, reeve.TimerCompleted,
		reeve.TimerDisabled})
	return c
}

// formatCadence formats when a schedule fires, such as "cron 0 7 * * * UTC".
func formatCadence(t reeve.Timer) string {
	kind := t.Kind
	if kind == "interval" {
		kind = "every"
	}
	return kind + " " + t.Value + " " + cmp.Or(t.Zone, "UTC")
}

// loadZone returns the time zone of a schedule, or UTC if this machine does not know the zone.
func loadZone(t reeve.Timer) *time.Location {
	if loc, err := time.LoadLocation(t.Zone); err == nil {
		return loc
	}
	return time.UTC
}

// formatInstants formats times in the zone loc and in UTC, one per line.
func formatInstants(list []time.Time, loc *time.Location) string {
	var lines []string
	for _, t := range list {
		line := t.In(loc).Format("Mon 2006-01-02 15:04:05 -07:00")
		if loc != time.UTC {
			line += t.UTC().Format("  (2006-01-02 15:04:05 UTC)")
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func (a *app) printSchedule(s api.Schedule) error {
	return a.print(s, func(w io.Writer) {
		printDetails(w, "name", s.Name, "id", s.ID, "status", string(s.State), "reason", s.Why, "agent", s.AgentID,
			"cadence", formatCadence(s.Timer), "goal", s.Goal, "missed runs", string(s.Misfire),
			"notify", string(s.Notify), "user", s.UserID, "failures", formatCount(s.Failures),
			"missed", formatCount(s.Missed), "missed at", formatInstants(s.MissedAt, loadZone(s.Timer)),
			"last", formatTimePtr(s.LastAt), "next", formatInstants(s.Upcoming, loadZone(s.Timer)))
	})
}

func schedulesGet(a *app) *cobra.Command {
	c := a.serverCommand("show SCHEDULE", "Show a schedule and its next firings", "schedules show sch_...",
		cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			s, err := c.Schedules().Get(ctx, args[0])
			if err != nil {
				return err
			}
			return a.printSchedule(s)
		})
	c.ValidArgsFunction = a.complete(scheduleIDs)
	return c
}

func schedulesPreview(a *app) *cobra.Command {
	var f scheduleFlags
	var r reeve.ScheduleRequest
	c := a.serverCommand("preview --cron|--once|--every VALUE", "Show when a schedule would fire, without creating it",
		"schedules preview --cron '0 7 * * 1-5' --zone Europe/Berlin", cobra.NoArgs,
		func(ctx context.Context, c *client.Client, _ []string) error {
			p, err := c.Schedules().Preview(ctx, r)
			if err != nil {
				return err
			}
			return a.print(p, func(w io.Writer) {
				fmt.Fprintln(w, formatInstants(p.Upcoming, loadZone(reeve.Timer{Zone: p.Timezone})))
			})
		})
	c.PreRunE = func(cmd *cobra.Command, _ []string) (err error) {
		r, err = f.toRequest(cmd)
		return err
	}
	f.registerTimes(c)
	c.MarkFlagsOneRequired("cron", "once", "every")
	return c
}

// scheduleFlags are the flags that describe a schedule.
type scheduleFlags struct {
	cron, once, every string
	zone, goal, name  string
	misfire, notify   string
}

// registerTimes registers the flags that say when a schedule fires.
func (f *scheduleFlags) registerTimes(c *cobra.Command) {
	c.Flags().StringVar(&f.cron, "cron", "", "fire on a cron expression, such as '0 7 * * 1-5'")
	c.Flags().StringVar(&f.once, "once", "",
		"fire once at a time, such as 2026-03-01T07:00 in the zone or 2026-03-01T07:00:00Z")
	c.Flags().StringVar(&f.every, "every", "", "fire at an interval, such as 15m, 2h or 1d")
	c.Flags().StringVar(&f.zone, "zone", "", "time zone, such as Europe/Berlin (default UTC)")
	c.MarkFlagsMutuallyExclusive("cron", "once", "every")
}

func (f *scheduleFlags) register(c *cobra.Command) {
	f.registerTimes(c)
	c.Flags().StringVar(&f.goal, "goal", "", "instructions for each run")
	c.Flags().StringVar(&f.name, "name", "", "name shown to people")
	c.Flags().StringVar(&f.misfire, "misfire", "",
		"missed firings: catchup (run once for all), skip or all (run each one of the last 24 hours, at most 100) "+
			"(default catchup)")
	c.Flags().StringVar(&f.notify, "notify", "",
		"when to notify you of a run: always, conditional (if the run asks for it) or never (default always)")
	completeFlagValues(c, "misfire", []reeve.Misfire{reeve.CatchUpOnce, reeve.SkipMissed, reeve.RunAllMissed})
	completeFlagValues(c, "notify", []reeve.Notify{reeve.NotifyAlways, reeve.NotifyConditional, reeve.NotifyNever})
}

// toRequest returns a request with the flags that are set. It fails if a flag is set to an empty value, which the API
// would ignore.
func (f *scheduleFlags) toRequest(c *cobra.Command) (r reeve.ScheduleRequest, err error) {
	for flag, kind := range map[string]string{"cron": "cron", "once": "once", "every": "interval"} {
		if c.Flags().Changed(flag) {
			r.CadenceType, r.CadenceValue = kind, f.cron+f.once+f.every // the other two are empty
		}
	}
	r.Timezone, r.Goal, r.Name, r.Misfire, r.Notification = f.zone, f.goal, f.name, reeve.Misfire(f.misfire),
		reeve.Notify(f.notify)
	for _, flag := range []string{"agent", "cron", "once", "every", "zone", "goal", "name", "misfire", "notify"} {
		if f := c.Flags().Lookup(flag); f != nil && f.Changed && f.Value.String() == "" {
			return r, usagef("--%s must not be empty", flag)
		}
	}
	return r, nil
}

func schedulesCreate(a *app) *cobra.Command {
	var f scheduleFlags
	var r reeve.ScheduleRequest
	c := a.serverCommand("create AGENT --cron|--once|--every VALUE", "Create a schedule",
		`schedules create clerk --cron '0 7 * * 1-5' --zone Europe/Berlin --goal "Summarise what is due today"
  reeve schedules create clerk --every 2h --notify conditional --goal "Look for unpaid invoices"`,
		cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			r.Agent = args[0]
			s, err := c.Schedules().Create(ctx, r)
			if err != nil {
				return err
			}
			return a.printSchedule(s)
		})
	c.PreRunE = func(cmd *cobra.Command, _ []string) (err error) {
		r, err = f.toRequest(cmd)
		return err
	}
	f.register(c)
	c.MarkFlagsOneRequired("cron", "once", "every")
	c.ValidArgsFunction = a.complete(agentNames)
	return c
}

func schedulesUpdate(a *app) *cobra.Command {
	var f scheduleFlags
	var agent string
	var r reeve.ScheduleRequest
	c := a.serverCommand("update SCHEDULE", "Change a schedule",
		`schedules update sch_... --cron '0 8 * * *'
  reeve schedules update sch_... --notify never`,
		cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			s, err := c.Schedules().Update(ctx, args[0], r)
			if err != nil {
				return err
			}
			return a.printSchedule(s)
		})
	c.Long = "Changes the fields whose flags are set."
	c.PreRunE = func(cmd *cobra.Command, _ []string) (err error) {
		r, err = f.toRequest(cmd)
		if r.Agent = agent; err == nil && r == (reeve.ScheduleRequest{}) {
			err = usagef("nothing to change; set at least one flag")
		}
		return err
	}
	f.register(c)
	c.Flags().StringVar(&agent, "agent", "", "agent to wake")
	a.completeFlag(c, "agent", agentNames)
	c.ValidArgsFunction = a.complete(scheduleIDs)
	return c
}

// schedulesStatus returns a command that sets the status of a schedule.
func schedulesStatus(a *app, use, short, status string) *cobra.Command {
	c := a.serverCommand(use+" SCHEDULE", short, "schedules "+use+" sch_...", cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			s, err := c.Schedules().Update(ctx, args[0], reeve.ScheduleRequest{Status: status})
			if err != nil {
				return err
			}
			return a.printSchedule(s)
		})
	c.ValidArgsFunction = a.complete(scheduleIDs)
	return c
}

func schedulesRun(a *app) *cobra.Command {
	c := a.serverCommand("run SCHEDULE", "Fire a schedule now, besides its planned firings", "schedules run sch_...",
		cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			w, err := c.Schedules().Run(ctx, args[0])
			if err != nil {
				return err
			}
			return a.print(w, func(io.Writer) { a.notef("fired; see: reeve schedules runs %s", args[0]) })
		})
	c.ValidArgsFunction = a.complete(scheduleIDs)
	return c
}

func schedulesDelete(a *app) *cobra.Command {
	c := a.serverCommand("delete SCHEDULE", "Delete a schedule; its runs are kept", "schedules delete sch_...",
		cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			if err := c.Schedules().Delete(ctx, args[0]); err != nil {
				return err
			}
			return a.printDone("deleted schedule %s", args[0])
		})
	c.ValidArgsFunction = a.complete(scheduleIDs)
	return c
}

func schedulesRuns(a *app) *cobra.Command {
	var page client.Page
	c := a.serverCommand("runs SCHEDULE", "List a schedule's runs, newest first", "schedules runs sch_...",
		cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			l, err := c.Schedules().Runs(ctx, args[0], page)
			if err != nil {
				return err
			}
			return a.printRuns(l)
		})
	addPageFlags(c, &page)
	c.ValidArgsFunction = a.complete(scheduleIDs)
	return c
}

func scheduleIDs(ctx context.Context, c *client.Client, _ []string) ([]string, error) {
	list, err := c.Schedules().List(ctx, client.ScheduleFilter{Limit: 200})
	var ids []string
	for _, t := range list.Schedules {
		ids = append(ids, t.ID+"\t"+t.Name)
	}
	return ids, err
}
