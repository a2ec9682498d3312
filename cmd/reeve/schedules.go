package main

import (
	"cmp"
	"context"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reeve"
	"reeve/api"
	"reeve/client"
)

func schedulesCommand(a *app) *cobra.Command {
	c := family("schedules", "Have agents work by the clock", `A schedule wakes an agent at its times, in its zone, and tells you what came of it. Cron expressions have five fields. A time that was
missed because no server ran is made up for once; --misfire says otherwise.`,
		schedulesList(a), schedulesGet(a), schedulesCreate(a), schedulesUpdate(a),
		schedulesStatus(a, "pause", "Let a schedule rest", "paused"),
		schedulesStatus(a, "resume", "Let a schedule fire again", "active"), schedulesDelete(a), schedulesRuns(a))
	c.Example = `  reeve schedules
  reeve schedules create clerk --cron '0 7 * * 1-5' --zone Europe/Berlin --goal "Summarise what is due today"
  reeve schedules pause sch_...
  reeve schedules runs sch_...`
	return c
}

func schedulesList(a *app) *cobra.Command {
	var f client.ScheduleFilter
	var status string
	c := a.task("list", "List schedules", "schedules list --agent clerk --status active", cobra.NoArgs,
		func(ctx context.Context, c *client.Client, _ []string) error {
			f.Status = reeve.TimerState(status)
			l, err := c.Schedules().List(ctx, f)
			if err != nil {
				return err
			}
			if shown := f.Offset + len(l.Schedules); len(l.Schedules) > 0 && shown < l.Total {
				defer a.note("%d of %d; more: add --offset %d", shown, l.Total, shown)
			}
			return a.print(l, func(w io.Writer) {
				a.table(w, "ID STATUS CADENCE NEXT AGENT NAME", rows(l.Schedules, func(t reeve.Timer) []string {
					next := ""
					if t.NextAt != nil {
						next = clock(t.NextAt.In(zone(t)))
					}
					return []string{t.ID, string(t.State), cadence(t), next, t.AgentID, cut(t.Name, 40)}
				}))
			})
		})
	c.Flags().StringVar(&f.Agent, "agent", "", "that wake one agent only")
	c.Flags().StringVar(&f.Name, "name", "", "with this in the name")
	c.Flags().StringVar(&status, "status", "", "in one status only: active, paused, completed or disabled")
	c.Flags().IntVar(&f.Offset, "offset", 0, "leave out this many at the start")
	c.Flags().IntVar(&f.Limit, "limit", 0, "how many at most")
	a.suggest(c, "agent", agentNames)
	fixed(c, "status", []reeve.TimerState{reeve.TimerActive, reeve.TimerPaused, reeve.TimerCompleted,
		reeve.TimerDisabled})
	return c
}

func cadence(t reeve.Timer) string {
	kind := t.Kind
	if kind == "interval" {
		kind = "every"
	}
	return kind + " " + t.Value + " " + cmp.Or(t.Zone, "UTC")
}

// zone is where a schedule's times are shown. Where this machine does not know it, that is UTC.
func zone(t reeve.Timer) *time.Location {
	if loc, err := time.LoadLocation(t.Zone); err == nil {
		return loc
	}
	return time.UTC
}

// instants writes times in the schedule's zone and, where that is another, in UTC.
func instants(list []time.Time, loc *time.Location) string {
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
		count := func(n int) string {
			if n == 0 {
				return ""
			}
			return strconv.Itoa(n)
		}
		details(w, "name", s.Name, "id", s.ID, "status", string(s.State), "because", s.Why, "agent", s.AgentID,
			"cadence", cadence(s.Timer), "goal", s.Goal,
			"missed runs", string(s.Misfire), "tells", string(s.Notify), "for", s.UserID, "failures", count(s.Failures),
			"missed", count(s.Missed),
			"missed at", instants(s.MissedAt, zone(s.Timer)), "last", whenSet(s.LastAt), "next",
			instants(s.Upcoming, zone(s.Timer)))
	})
}

func schedulesGet(a *app) *cobra.Command {
	c := a.task("get SCHEDULE", "Show a schedule and its next firings", "schedules get sch_...", cobra.ExactArgs(1),
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

// scheduleFlags describe a schedule on the command line.
type scheduleFlags struct {
	cron, once, every string
	zone, goal, name  string
	misfire, notify   string
}

func (f *scheduleFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.cron, "cron", "", "fire by a cron expression, such as '0 7 * * 1-5'")
	c.Flags().StringVar(&f.once, "once", "", "fire once, such as 2026-03-01T07:00 in the zone, or 2026-03-01T07:00:00Z")
	c.Flags().StringVar(&f.every, "every", "", "fire every so often, such as 15m, 2h or 1d")
	c.Flags().StringVar(&f.zone, "zone", "", "the zone its times are read in, such as Europe/Berlin (default UTC)")
	c.Flags().StringVar(&f.goal, "goal", "", "complete instructions for each run")
	c.Flags().StringVar(&f.name, "name", "", "what people read")
	c.Flags().StringVar(&f.misfire, "misfire", "",
		"times that were missed: catchup runs once for all, skip none, all each of the last 24 hours, 100 at most "+
			"(default catchup)")
	c.Flags().StringVar(&f.notify, "notify", "",
		"when a run tells you: always, conditional (when it says so) or never (default always)")
	c.MarkFlagsMutuallyExclusive("cron", "once", "every")
	fixed(c, "misfire", []reeve.Misfire{reeve.CatchUpOnce, reeve.SkipMissed, reeve.RunAll})
	fixed(c, "notify", []reeve.Notify{reeve.NotifyAlways, reeve.NotifyConditional, reeve.NotifyNever})
}

// request holds what was given. The API takes an empty text for one that was left out, so none may be given.
func (f *scheduleFlags) request(c *cobra.Command) (r reeve.ScheduleRequest, err error) {
	for flag, kind := range map[string]string{"cron": "cron", "once": "once", "every": "interval"} {
		if c.Flags().Changed(flag) {
			r.CadenceType, r.CadenceValue = kind, f.cron+f.once+f.every // two of them are empty
		}
	}
	r.Timezone, r.Goal, r.Name, r.Misfire, r.Notification = f.zone, f.goal, f.name, reeve.Misfire(f.misfire),
		reeve.Notify(f.notify)
	for _, flag := range []string{"agent", "cron", "once", "every", "zone", "goal", "name", "misfire", "notify"} {
		if given := c.Flags().Lookup(flag); given != nil && given.Changed && given.Value.String() == "" {
			return r, usagef("--%s cannot be empty", flag)
		}
	}
	return r, nil
}

func schedulesCreate(a *app) *cobra.Command {
	var f scheduleFlags
	var r reeve.ScheduleRequest
	c := a.task("create AGENT --cron|--once|--every VALUE", "Make a schedule", `schedules create clerk --cron '0 7 * * 1-5' --zone Europe/Berlin --goal "Summarise what is due today"
  reeve schedules create clerk --every 2h --notify conditional --goal "Look for unpaid invoices"`, cobra.ExactArgs(1), func(ctx context.Context, c *client.Client, args []string) error {
		r.Agent = args[0]
		s, err := c.Schedules().Create(ctx, r)
		if err != nil {
			return err
		}
		return a.printSchedule(s)
	})
	c.PreRunE = func(cmd *cobra.Command, _ []string) (err error) {
		r, err = f.request(cmd)
		return err
	}
	f.add(c)
	c.MarkFlagsOneRequired("cron", "once", "every")
	c.ValidArgsFunction = a.complete(agentNames)
	return c
}

func schedulesUpdate(a *app) *cobra.Command {
	var f scheduleFlags
	var agent string
	var r reeve.ScheduleRequest
	c := a.task("update SCHEDULE", "Change a schedule", `schedules update sch_... --cron '0 8 * * *'
  reeve schedules update sch_... --notify never`, cobra.ExactArgs(1), func(ctx context.Context, c *client.Client, args []string) error {
		s, err := c.Schedules().Update(ctx, args[0], r)
		if err != nil {
			return err
		}
		return a.printSchedule(s)
	})
	c.Long = "Changes what the flags name and leaves the rest."
	c.PreRunE = func(cmd *cobra.Command, _ []string) (err error) {
		r, err = f.request(cmd)
		if r.Agent = agent; err == nil && r == (reeve.ScheduleRequest{}) {
			err = usagef("nothing to change was given")
		}
		return err
	}
	f.add(c)
	c.Flags().StringVar(&agent, "agent", "", "wake another agent")
	a.suggest(c, "agent", agentNames)
	c.ValidArgsFunction = a.complete(scheduleIDs)
	return c
}

// schedulesStatus is a command that pauses or resumes.
func schedulesStatus(a *app, use, short, status string) *cobra.Command {
	c := a.task(use+" SCHEDULE", short, "schedules "+use+" sch_...", cobra.ExactArgs(1),
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

func schedulesDelete(a *app) *cobra.Command {
	c := a.task("delete SCHEDULE", "Remove a schedule; its runs stay", "schedules delete sch_...", cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			if err := c.Schedules().Delete(ctx, args[0]); err != nil {
				return err
			}
			return a.done("deleted schedule %s", args[0])
		})
	c.ValidArgsFunction = a.complete(scheduleIDs)
	return c
}

func schedulesRuns(a *app) *cobra.Command {
	var page client.Page
	c := a.task("runs SCHEDULE", "List a schedule's runs, newest first", "schedules runs sch_...", cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			l, err := c.Schedules().Runs(ctx, args[0], page)
			if err != nil {
				return err
			}
			return a.printRuns(l)
		})
	paged(c, &page)
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
