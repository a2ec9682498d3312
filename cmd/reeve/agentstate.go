package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reeve"
	"reeve/api"
	"reeve/client"
)

func agentsState(a *app) *cobra.Command {
	var set []string
	var file string
	c := a.serverCommand("state AGENT", "Show or set an agent's state slots",
		`agents state gymcoach
  reeve agents state gymcoach --slot primary_goal="Three sessions a week" --slot preferences.tone=strict
  reeve agents state gymcoach --slot open_loop_ids=task_...,task_... --slot active_task_id=
  reeve agents state gymcoach --file slots.yaml`,
		cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			s, err := c.Agents().State(ctx, args[0])
			if err != nil {
				return err
			}
			if file == "" && len(set) == 0 {
				return a.printState(s)
			}
			slots := s.Slots
			if file != "" {
				slots = reeve.AgentSlots{}
				if err := a.readDocument(file, &slots); err != nil {
					return err
				}
			}
			for _, pair := range set {
				if slots, err = setSlot(slots, pair); err != nil {
					return err
				}
			}
			if s, err = c.Agents().PutState(ctx, args[0], api.AgentStateRequest{Revision: s.Revision,
				Slots: slots}); err != nil {
				return err
			}
			return a.printState(s)
		})
	c.Long = `Shows an agent's state slots: its primary goal, its active task, its open loops, preferences by key,
and extensions by namespace. --slot changes one slot, --file replaces all slots with a JSON or YAML
document. If another client changes the slots at the same time, the command fails and changes nothing.

Slots: primary_goal=TEXT, active_task_id=ID, open_loop_ids=ID,ID, preferences.KEY=TEXT,
extension.NAMESPACE=JSON`
	c.Flags().StringArrayVar(&set, "slot", nil,
		"NAME=VALUE, a slot to change; an empty value removes it; can be repeated")
	c.Flags().StringVar(&file, "file", "", "JSON or YAML file with all slots; - for standard input")
	c.ValidArgsFunction = a.complete(agentNames)
	return c
}

// setSlot returns s with one slot changed; pair is name=value.
func setSlot(s reeve.AgentSlots, pair string) (reeve.AgentSlots, error) {
	name, value, ok := strings.Cut(pair, "=")
	if !ok {
		return s, usagef("--slot must be NAME=VALUE, not %q", pair)
	}
	name, key, _ := strings.Cut(name, ".")
	switch {
	case name == "primary_goal" && key == "":
		s.PrimaryGoal = value
	case name == "active_task_id" && key == "":
		s.ActiveTaskID = value
	case name == "open_loop_ids" && key == "":
		s.OpenLoopIDs = strings.FieldsFunc(value, func(r rune) bool { return r == ',' })
	case name == "preferences" && key != "":
		s.Preferences = setOrDelete(s.Preferences, key, value, value == "")
	case name == "extension" && key != "":
		if value != "" && !json.Valid([]byte(value)) {
			return s, usagef("--slot extension.%s must be a JSON object, such as '{\"weeks\":8}'", key)
		}
		s.Extension = setOrDelete(s.Extension, key, json.RawMessage(value), value == "")
	default:
		return s, usagef("--slot: %q is not a slot; use primary_goal, active_task_id, open_loop_ids, "+
			"preferences.KEY or extension.NAMESPACE", pair)
	}
	return s, nil
}

// setOrDelete returns a copy of m with one value set, or deleted.
func setOrDelete[V any](m map[string]V, key string, v V, remove bool) map[string]V {
	if m = maps.Clone(m); m == nil {
		m = map[string]V{}
	}
	if m[key] = v; remove {
		delete(m, key)
	}
	return m
}

func (a *app) printState(s reeve.AgentState) error {
	return a.print(s, func(w io.Writer) {
		pairs := []string{"agent", s.AgentID, "revision", strconv.FormatInt(s.Revision, 10),
			"goal", s.Slots.PrimaryGoal, "active task", s.Slots.ActiveTaskID,
			"open loops", strings.Join(s.Slots.OpenLoopIDs, "\n")}
		for _, k := range slices.Sorted(maps.Keys(s.Slots.Preferences)) {
			pairs = append(pairs, "preference "+oneLine(k), s.Slots.Preferences[k])
		}
		for _, k := range slices.Sorted(maps.Keys(s.Slots.Extension)) {
			pairs = append(pairs, "extension "+oneLine(k), indentJSON(s.Slots.Extension[k]))
		}
		var processed []string
		for _, n := range slices.Sorted(maps.Keys(s.Processed)) {
			processed = append(processed, fmt.Sprintf("%s %d", n, s.Processed[n]))
		}
		printDetails(w, append(pairs, "head message", s.Head, "processed", strings.Join(processed, "\n"),
			"sleeps until", formatTimePtr(s.SleepUntil), "next wake", formatTimePtr(s.NextWakeAt),
			"updated", formatTime(s.UpdatedAt))...)
	})
}

func agentsSleep(a *app) *cobra.Command {
	var until, wakeAt string
	var end bool
	c := a.serverCommand("sleep AGENT", "Show or set until when an agent sleeps and when it wakes itself",
		`agents sleep gymcoach --until 2026-03-01T07:00:00+01:00
  reeve agents sleep gymcoach --until 8h --wake-at 8h
  reeve agents sleep gymcoach --end`,
		cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			s, err := c.Agents().State(ctx, args[0])
			if err != nil {
				return err
			}
			plan := s.WakePlan
			if end {
				plan = reeve.WakePlan{}
			}
			for _, f := range []struct {
				flag, value string
				to          **time.Time
			}{{"--until", until, &plan.SleepUntil}, {"--wake-at", wakeAt, &plan.NextWakeAt}} {
				if f.value != "" {
					if *f.to, err = parseFuture(f.flag, f.value); err != nil {
						return err
					}
				}
			}
			if plan != s.WakePlan {
				if s, err = c.Agents().PutWakePlan(ctx, args[0], plan); err != nil {
					return err
				}
			}
			return a.print(s.WakePlan, func(w io.Writer) {
				printDetails(w, "agent", s.AgentID, "sleeps until", formatTimePtr(s.SleepUntil),
					"next wake", formatTimePtr(s.NextWakeAt))
			})
		})
	c.Long = `Until the time of --until, changes and timers start no runs of the agent. They do so afterwards. At the time
of --wake-at the agent runs once. You can wake a sleeping agent at any time. A time is RFC 3339 with a UTC
offset, or a duration from now such as 90m.`
	c.Flags().StringVar(&until, "until", "", "time or duration until which the agent sleeps")
	c.Flags().StringVar(&wakeAt, "wake-at", "", "time or duration at which the agent runs once")
	c.Flags().BoolVar(&end, "end", false, "end the sleep and cancel the planned wake")
	c.ValidArgsFunction = a.complete(agentNames)
	return c
}

// parseFuture parses the value of a flag: an instant or a duration from now.
func parseFuture(flag, value string) (*time.Time, error) {
	if d, err := time.ParseDuration(value); err == nil {
		t := reeve.Now().Add(d)
		return &t, nil
	}
	t, err := reeve.ParseInstant(value)
	if err != nil {
		return nil, usagef("%s must be a time such as 2026-03-01T07:00:00+01:00 or a duration such as 8h, not %q", flag,
			value)
	}
	return &t, nil
}

func agentsRuntime(a *app) *cobra.Command {
	c := a.serverCommand("runtime AGENT", "Show an agent's status on this server", "agents runtime gymcoach",
		cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			r, err := c.Agents().Runtime(ctx, args[0])
			if err != nil {
				return err
			}
			return a.print(r, func(w io.Writer) {
				printDetails(w, "agent", r.AgentID, "status", string(r.Status), "active run", r.ActiveRun,
					"open runs", strconv.Itoa(r.OpenRuns), "queued wakes", strconv.Itoa(r.QueuedWakes),
					"failures in a row", strconv.Itoa(r.FailureStreak), "last run ended", formatTimePtr(r.LastRunAt),
					"sleeps until", formatTimePtr(r.SleepUntil), "next wake", formatTimePtr(r.NextWakeAt))
			})
		})
	c.ValidArgsFunction = a.complete(agentNames)
	return c
}
