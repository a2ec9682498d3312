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

// StateVersion is the schema version of slots and of an agent's config. Leaving it out means this one.
const StateVersion = 1

// AgentState is what an agent remembers of itself between runs, the same on every node.
type AgentState struct {
	AgentID   string                `json:"agent_id"`
	Revision  int64                 `json:"revision" doc:"Counts the changes of slots; a change names the one it was made from"`
	Slots     AgentSlots            `json:"slots"`
	Stamps    map[string]SlotWriter `json:"slot_stamps" doc:"Who wrote each slot last, by path; a slot that was taken away keeps its mark"`
	Head      string                `json:"head_message_id,omitempty" doc:"The last message of its newest run"`
	Summary   string                `json:"summary_message_id,omitempty"`
	Processed map[string]int64      `json:"processed" doc:"The changes it has seen: the last number of each node"`
	Stamp     Stamp                 `json:"stamp"`
	UpdatedAt time.Time             `json:"updated_at"`
}

// AgentSlots are what an agent is after and how it is to go about it. What is not known here goes into Extension, by
// namespace.
type AgentSlots struct {
	SchemaVersion int                        `json:"schema_version,omitempty" minimum:"1" doc:"1; that is also what leaving it out means"`
	PrimaryGoal   string                     `json:"primary_goal,omitempty" maxLength:"8000"`
	ActiveTaskID  string                     `json:"active_task_id,omitempty" maxLength:"64" doc:"The task it is at"`
	OpenLoopIDs   []string                   `json:"open_loop_ids,omitempty" maxItems:"1000" doc:"What it means to come back to, each id once"`
	Preferences   map[string]string          `json:"preferences,omitempty" doc:"By key, such as tone"`
	Extension     map[string]json.RawMessage `json:"extension,omitempty" doc:"By namespace, such as org.example.gym: an object that is kept as it is"`
}

// SlotWriter is who wrote one slot, and their number by then.
type SlotWriter struct {
	Node    string `json:"node"`
	Counter int64  `json:"counter"`
}

// namespacePattern is what owns a part of an extension.
var namespacePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]*(\.[a-z0-9][a-z0-9_-]*)*$`)

// checkVersion refuses a schema version that this build does not know.
func checkVersion(path string, v int) error {
	if v != 0 && v != StateVersion {
		return InvalidField(path+"/schema_version", "is not known to this build", strconv.Itoa(StateVersion))
	}
	return nil
}

// checkExtension refuses parts of an extension that have no namespace or are not objects.
func checkExtension(path string, e map[string]json.RawMessage) error {
	for _, name := range slices.Sorted(maps.Keys(e)) {
		at := path + "/extension/" + canonjson.EscapePointer(name)
		if !namespacePattern.MatchString(name) || len(name) > MaxKey {
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

// Bounds of slots and extensions.
const (
	MaxKey   = 128       // bytes of a preference's key or a namespace
	MaxSlots = 256 << 10 // bytes of all slots together
)

// Validate checks slots, and names what is wrong by its path below /slots.
func (s AgentSlots) Validate() error {
	if err := checkVersion("/slots", s.SchemaVersion); err != nil {
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
		if k == "" || len(k) > MaxKey {
			return InvalidField(at, "is not a key", "1 to "+strconv.Itoa(MaxKey)+" bytes")
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

// Paths gives each slot's value as text, by its path: what two nodes wrote is compared and merged slot by slot.
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

// RunStatus is what an agent is doing on this node.
type RunStatus string

// What an agent may be doing.
const (
	StatusIdle    RunStatus = "idle"
	StatusQueued  RunStatus = "queued"  // a wake waits for it
	StatusRunning RunStatus = "running" // a run is under way
	StatusParked  RunStatus = "parked"  // its run waits for a person
)

// AgentRuntime is how an agent is on this node, and is never shared.
type AgentRuntime struct {
	AgentID   string     `json:"agent_id"`
	Status    RunStatus  `json:"run_status"`
	ActiveRun string     `json:"active_run,omitempty" doc:"The run it is at; those of its schedules are beside it"`
	Runs      int        `json:"open_runs" doc:"Runs that have not ended, those of its schedules too"`
	Queued    int        `json:"queued_wakes"`
	Failures  int        `json:"failure_streak"`
	LastRunAt *time.Time `json:"last_run_at,omitempty" doc:"When its last run ended"`
}

// Stamp is who wrote a shared row, and what they had seen.
type Stamp struct {
	Node    string           `json:"node"`
	Counter int64            `json:"counter"`
	Clock   map[string]int64 `json:"clock"`
}
