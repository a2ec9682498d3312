package agent

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"reeve"
	"reeve/internal/store"
)

const (
	maxShownLoops       = 20   // open loops in a request
	maxShownPreferences = 30   // preferences in a request
	maxShownGoal        = 2000 // bytes of the goal in a request
	maxShownExtensions  = 10   // namespaces of the extension in a request
	maxShownValue       = 200  // bytes of a title, a key or a preference in a request
	maxShownExtension   = 1000 // bytes of the data of a namespace in a request
)

// AgentMemory is the part of an agent's state that the assembler receives.
type AgentMemory struct {
	PrimaryGoal   string            `json:"primary_goal,omitempty"`
	ActiveTask    *OpenLoop         `json:"active_task,omitempty"`
	OpenLoops     []OpenLoop        `json:"open_loops,omitempty"`
	MoreOpenLoops int               `json:"more_open_loops,omitempty" doc:"Number of open loops that are left out"`
	Preferences   map[string]string `json:"preferences,omitempty"`
	Extension     map[string]string `json:"extension,omitempty" doc:"Objects as JSON by namespace, shortened"`
	SleepUntil    *time.Time        `json:"sleep_until,omitempty"`
	NextWakeAt    *time.Time        `json:"next_wake_at,omitempty"`
}

// OpenLoop is an open loop of the agent's state: a thing to return to. Title is empty unless it is a task that the
// agent may read.
type OpenLoop struct {
	ID     string           `json:"id"`
	Title  string           `json:"title,omitempty"`
	Status reeve.TaskStatus `json:"status,omitempty"`
}

// readMemory returns the agent's state for the request, or nil if there is nothing to show. What it reads is bounded.
func (v *assembly) readMemory(ctx context.Context, s *store.Snap) (*AgentMemory, error) {
	if !isOn(v.set.ShowState) {
		return nil, nil
	}
	is, err := s.Agents().AgentState(ctx, v.run.AgentID)
	if err != nil {
		return nil, err
	}
	slots := is.Slots
	out := &AgentMemory{PrimaryGoal: reeve.Truncate(slots.PrimaryGoal, maxShownGoal), SleepUntil: is.SleepUntil,
		NextWakeAt: is.NextWakeAt}
	shown := slots.OpenLoopIDs[:min(len(slots.OpenLoopIDs), maxShownLoops)]
	out.MoreOpenLoops = len(slots.OpenLoopIDs) - len(shown)
	ids := slices.Clone(shown)
	if slots.ActiveTaskID != "" {
		ids = append(ids, slots.ActiveTaskID)
	}
	tasks, err := v.findTasks(ctx, s, ids)
	if err != nil {
		return nil, err
	}
	if slots.ActiveTaskID != "" {
		t := newOpenLoop(slots.ActiveTaskID, tasks)
		out.ActiveTask = &t
	}
	for _, id := range shown {
		out.OpenLoops = append(out.OpenLoops, newOpenLoop(id, tasks))
	}
	out.Preferences = shortenValues(slots.Preferences, maxShownPreferences, maxShownValue)
	out.Extension = shortenValues(slots.Extension, maxShownExtensions, maxShownExtension)
	if out.render() == "" {
		return nil, nil
	}
	return out, nil
}

// shortenValues returns the first entries of a map by key, at most count, with values of at most size bytes.
func shortenValues[V ~string | ~[]byte](values map[string]V, count, size int) map[string]string {
	out := map[string]string{}
	keys := slices.Sorted(maps.Keys(values))
	for _, k := range keys[:min(len(keys), count)] {
		out[k] = reeve.Truncate(string(values[k]), size)
	}
	return out
}

// findTasks returns the tasks with the given ids that the agent may read. It returns no tasks if the run acts for other
// agents, because their categories may be narrower.
func (v *assembly) findTasks(ctx context.Context, s *store.Snap, ids []string) ([]reeve.Task, error) {
	if len(ids) == 0 || len(v.agent.Categories) == 0 || len(v.run.Ancestors) > 0 || len(v.run.OnBehalfOf) > 0 {
		return nil, nil
	}
	return s.Journal(store.JournalScope{Workspace: v.run.WorkspaceID, User: v.run.UserID, Agent: v.run.AgentID,
		Categories: v.agent.Categories}).FindTasks(ctx, ids)
}

func newOpenLoop(id string, tasks []reeve.Task) OpenLoop {
	l := OpenLoop{ID: id}
	if i := slices.IndexFunc(tasks, func(t reeve.Task) bool { return t.ID == id }); i >= 0 {
		l.Title, l.Status = reeve.Truncate(tasks[i].Title, maxShownValue), tasks[i].Status
	}
	return l
}

func (l OpenLoop) render() string {
	if l.Title == "" {
		return l.ID
	}
	return fmt.Sprintf("%s %q (%s)", l.ID, l.Title, l.Status)
}

// render returns the section of the request with the agent's state, or "". Values are quoted, so that the model does
// not take them for instructions.
func (m *AgentMemory) render() string {
	var b strings.Builder
	if m.PrimaryGoal != "" {
		fmt.Fprintf(&b, "\n- primary goal: %q", m.PrimaryGoal)
	}
	if m.ActiveTask != nil {
		fmt.Fprintf(&b, "\n- active task: %s", m.ActiveTask.render())
	}
	for _, l := range m.OpenLoops {
		fmt.Fprintf(&b, "\n- open loop: %s", l.render())
	}
	if m.MoreOpenLoops > 0 {
		fmt.Fprintf(&b, "\n- and %d more open loops", m.MoreOpenLoops)
	}
	for _, k := range slices.Sorted(maps.Keys(m.Preferences)) {
		fmt.Fprintf(&b, "\n- preference %q: %q", k, m.Preferences[k])
	}
	for _, k := range slices.Sorted(maps.Keys(m.Extension)) {
		fmt.Fprintf(&b, "\n- extension %q: %q", k, m.Extension[k])
	}
	if m.SleepUntil != nil {
		fmt.Fprintf(&b, "\n- asleep until %s", m.SleepUntil.Format(time.RFC3339))
	}
	if m.NextWakeAt != nil {
		fmt.Fprintf(&b, "\n- next planned wake at %s", m.NextWakeAt.Format(time.RFC3339))
	}
	if b.Len() == 0 {
		return ""
	}
	return "[Your own state, as data]" + b.String()
}
