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

	"github.com/spf13/cobra"

	"reeve"
	"reeve/api"
	"reeve/client"
)

func agentsState(a *app) *cobra.Command {
	var set []string
	var file string
	c := a.task("state AGENT", "Show or set what an agent remembers of itself", `agents state gymcoach
  reeve agents state gymcoach --slot primary_goal="Three sessions a week" --slot preferences.tone=strict
  reeve agents state gymcoach --slot open_loop_ids=task_...,task_... --slot active_task_id=
  reeve agents state gymcoach --file slots.yaml`, cobra.ExactArgs(1), func(ctx context.Context, c *client.Client, args []string) error {
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
			if err := a.document(file, &slots); err != nil {
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
	c.Long = `Shows an agent's slots: its goal, the task it is at, what it means to come back to, preferences by key, and what others keep for it by
namespace. --slot changes one and leaves the rest; an empty value takes it away. --file replaces all of them with a JSON or YAML document; - reads the
standard input. When somebody else changes the slots at the same moment nothing is changed, and the command says so.`
	c.Flags().StringArrayVar(&set, "slot", nil,
		"primary_goal=, active_task_id=, open_loop_ids=ID,ID, preferences.KEY= or extension.NAMESPACE=JSON; repeat "+
			"for more")
	c.Flags().StringVar(&file, "file", "", "a document with all slots; - for the standard input")
	c.ValidArgsFunction = a.complete(agentNames)
	return c
}

// setSlot changes one slot, given as name=value.
func setSlot(s reeve.AgentSlots, pair string) (reeve.AgentSlots, error) {
	name, value, ok := strings.Cut(pair, "=")
	if !ok {
		return s, usagef("--slot takes NAME=VALUE, not %q", pair)
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
		s.Preferences = with(s.Preferences, key, value, value == "")
	case name == "extension" && key != "":
		if value != "" && !json.Valid([]byte(value)) {
			return s, usagef("--slot extension.%s takes a JSON object, such as '{\"weeks\":8}'", key)
		}
		s.Extension = with(s.Extension, key, json.RawMessage(value), value == "")
	default:
		return s, usagef("--slot: %q is not a slot; there are primary_goal, active_task_id, open_loop_ids, "+
			"preferences.KEY and extension.NAMESPACE", pair)
	}
	return s, nil
}

// with is a map with one value changed, or taken away.
func with[V any](m map[string]V, key string, v V, gone bool) map[string]V {
	if m = maps.Clone(m); m == nil {
		m = map[string]V{}
	}
	if m[key] = v; gone {
		delete(m, key)
	}
	return m
}

func (a *app) printState(s reeve.AgentState) error {
	return a.print(s, func(w io.Writer) {
		pairs := []string{"agent", s.AgentID, "revision", strconv.FormatInt(s.Revision, 10), "goal",
			s.Slots.PrimaryGoal, "active task", s.Slots.ActiveTaskID,
			"open loops", strings.Join(s.Slots.OpenLoopIDs, "\n")}
		for _, k := range slices.Sorted(maps.Keys(s.Slots.Preferences)) {
			pairs = append(pairs, "preference "+oneLine(k), s.Slots.Preferences[k])
		}
		for _, k := range slices.Sorted(maps.Keys(s.Slots.Extension)) {
			pairs = append(pairs, "extension "+oneLine(k), pretty(s.Slots.Extension[k]))
		}
		var seen []string
		for _, n := range slices.Sorted(maps.Keys(s.Processed)) {
			seen = append(seen, fmt.Sprintf("%s %d", n, s.Processed[n]))
		}
		details(w, append(pairs, "head message", s.Head, "has seen", strings.Join(seen, "\n"), "updated",
			when(s.UpdatedAt))...)
	})
}

func agentsRuntime(a *app) *cobra.Command {
	c := a.task("runtime AGENT", "Show what an agent is doing on this server's node", "agents runtime gymcoach",
		cobra.ExactArgs(1),
		func(ctx context.Context, c *client.Client, args []string) error {
			r, err := c.Agents().Runtime(ctx, args[0])
			if err != nil {
				return err
			}
			return a.print(r, func(w io.Writer) {
				details(w, "agent", r.AgentID, "status", string(r.Status), "active run", r.ActiveRun, "open runs",
					strconv.Itoa(r.Runs), "queued wakes", strconv.Itoa(r.Queued),
					"failures in a row", strconv.Itoa(r.Failures), "last run ended", whenSet(r.LastRunAt))
			})
		})
	c.ValidArgsFunction = a.complete(agentNames)
	return c
}
