package reeve

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"time"

	"reeve/internal/canonjson"
)

// StateVersion is the schema version of slots and of agent configs. It is also the default.
const StateVersion = 1

// AgentState is the state that an agent has between runs. It is the same on every node.
type AgentState struct {
	AgentID   string                `json:"agent_id"`
	Revision  int64                 `json:"revision" doc:"Number of changes to the slots so far"`
	Slots     AgentSlots            `json:"slots"`
	Stamps    map[string]SlotWriter `json:"slot_stamps" doc:"Last writer of each slot, by path; includes deleted slots"`
	Head      string                `json:"head_message_id,omitempty" doc:"Last message of the newest run"`
	Summary   string                `json:"summary_message_id,omitempty"`
	Processed map[string]int64      `json:"processed" doc:"For each node, the number of the last change that the agent has seen"`
	Stamp     Stamp                 `json:"stamp"`
	UpdatedAt time.Time             `json:"updated_at"`
	WakePlan
}

// AgentSlots has an agent's goals and preferences. Other programs store their own data in Extension, by namespace.
type AgentSlots struct {
	SchemaVersion int                        `json:"schema_version,omitempty" minimum:"1" doc:"Default: 1"`
	PrimaryGoal   string                     `json:"primary_goal,omitempty" maxLength:"8000" doc:"What the agent works towards"`
	ActiveTaskID  string                     `json:"active_task_id,omitempty" maxLength:"64" doc:"Id of the current task"`
	OpenLoopIDs   []string                   `json:"open_loop_ids,omitempty" maxItems:"1000" doc:"Ids of things to return to, each once"`
	Preferences   map[string]string          `json:"preferences,omitempty" doc:"Preferences by key, such as tone"`
	Extension     map[string]json.RawMessage `json:"extension,omitempty" doc:"Objects by namespace, such as org.example.gym"`
}

// SlotWriter is the node that wrote a slot, and its counter at that time.
type SlotWriter struct {
	Node    string `json:"node"`
	Counter int64  `json:"counter"`
}

// namespacePattern matches namespaces of extensions, such as org.example.gym.
var namespacePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]*(\.[a-z0-9][a-z0-9_-]*)*$`)

// checkVersion returns an error if this build does not support schema version v.
func checkVersion(path string, v int) error {
	if v != 0 && v != StateVersion {
		return InvalidField(path+"/schema_version", "is not supported by this build", strconv.Itoa(StateVersion))
	}
	return nil
}

// checkExtension returns an error if a key of e is not a namespace or a value is not an object.
func checkExtension(path string, e map[string]json.RawMessage) error {
	for _, name := range slices.Sorted(maps.Keys(e)) {
		at := path + "/extension/" + canonjson.EscapePointer(name)
		if !namespacePattern.MatchString(name) || len(name) > MaxSlotKey {
			return InvalidField(at, "is not a namespace", "lower-case words joined by dots, such as org.example.gym")
		}
		if v, err := canonjson.Parse(e[name]); err != nil {
			return InvalidField(at, err.Error(), "an object")
		} else if _, ok := v.(map[string]any); !ok {
			return InvalidField(at, "is not an object", "an object")
		}
	}
	return nil
}

// The limits of slots and extensions.
const (
	MaxSlotKey = 128       // bytes of a preference's key or a namespace
	MaxSlots   = 256 << 10 // bytes of all slots together
)

// Validate checks the slots. Errors have a path below /slots.
func (s AgentSlots) Validate() error {
	if err := checkVersion("/slots", s.SchemaVersion); err != nil {
		return err
	}
	if err := CheckText("/slots/primary_goal", s.PrimaryGoal); err != nil {
		return err
	}
	if s.ActiveTaskID != "" && !IsID(s.ActiveTaskID) {
		return InvalidField("/slots/active_task_id", "is not an id", "an id such as task_...")
	}
	for i, id := range s.OpenLoopIDs {
		at := "/slots/open_loop_ids/" + strconv.Itoa(i)
		if !IsID(id) {
			return InvalidField(at, "is not an id", "an id such as task_...")
		}
		if slices.Contains(s.OpenLoopIDs[:i], id) {
			return InvalidField(at, "is named twice", "each id once")
		}
	}
	for _, k := range slices.Sorted(maps.Keys(s.Preferences)) {
		at := "/slots/preferences/" + canonjson.EscapePointer(k)
		if k == "" || len(k) > MaxSlotKey {
			return InvalidField(at, "is not a key", "1 to "+strconv.Itoa(MaxSlotKey)+" bytes")
		}
		if err := CheckText(at, s.Preferences[k]); err != nil {
			return err
		}
	}
	if err := checkExtension("/slots", s.Extension); err != nil {
		return err
	}
	if b, err := json.Marshal(s); err != nil || len(b) > MaxSlots {
		return InvalidField("/slots", "are too large", "at most "+strconv.Itoa(MaxSlots>>10)+" KiB")
	}
	return nil
}

// Paths returns the value of each slot as text, by path. Nodes compare and merge slots by path.
func (s AgentSlots) Paths() map[string]string {
	out := map[string]string{}
	set := func(path, v string) {
		if v != "" {
			out[path] = v
		}
	}
	set("primary_goal", s.PrimaryGoal)
	set("active_task_id", s.ActiveTaskID)
	if len(s.OpenLoopIDs) > 0 {
		b, _ := json.Marshal(s.OpenLoopIDs) // strings always marshal
		set("open_loop_ids", string(b))
	}
	for k, v := range s.Preferences {
		out["preferences/"+k] = v
	}
	for k, v := range s.Extension {
		out["extension/"+k] = string(v)
	}
	return out
}

// RunStatus is the current activity of an agent on this node.
type RunStatus string

// The run statuses.
const (
	AgentIdle    RunStatus = "idle"
	AgentQueued  RunStatus = "queued"  // has queued wakes
	AgentRunning RunStatus = "running" // has an active run
	AgentParked  RunStatus = "parked"  // its run is parked
)

// AgentRuntime is the status of an agent on this node. It is not shared between nodes.
type AgentRuntime struct {
	AgentID       string     `json:"agent_id"`
	Status        RunStatus  `json:"run_status"`
	ActiveRun     string     `json:"active_run,omitempty" doc:"Active run, other than runs of schedules"`
	OpenRuns      int        `json:"open_runs" doc:"Runs that have not ended, including runs of schedules"`
	QueuedWakes   int        `json:"queued_wakes"`
	FailureStreak int        `json:"failure_streak"`
	LastRunAt     *time.Time `json:"last_run_at,omitempty" doc:"When the last run ended"`
	WakePlan
}

// Stamp is the last writer of a shared row and the version vector at that time.
type Stamp struct {
	Node    string           `json:"node"`
	Counter int64            `json:"counter"`
	Clock   map[string]int64 `json:"clock"`
}
