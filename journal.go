package reeve

import "time"

// Prefixes of the ids of the journal.
const (
	PrefixNode          = "node"
	PrefixCategory      = "cat"
	PrefixLabel         = "label"
	PrefixTask          = "task"
	PrefixTaskLabel     = "tl"
	PrefixChecklist     = "list"
	PrefixChecklistItem = "item"
	PrefixTimeEntry     = "time"
	PrefixDayPlan       = "plan"
	PrefixPlanBlock     = "block"
	PrefixPlanPin       = "pin"
	PrefixRating        = "rate"
	PrefixLink          = "link"
)

// The semantic keys of the journal: what a change of it notifies about.
const (
	KeyCategory  = "CATEGORY"
	KeyLabel     = "LABEL"
	KeyTask      = "TASK"
	KeyChecklist = "CHECKLIST"
	KeyTimeEntry = "TIME_ENTRY"
	KeyDayPlan   = "DAY_PLAN"
	KeyRating    = "RATING"
)

// KeyAgentState is the semantic key of a change of an agent's slots.
const KeyAgentState = "AGENT_STATE"

// Record is what everything in the journal has: an id, times, and the stamp of the last change. What was deleted is
// kept, so that a node that has not heard of it yet can be told.
type Record struct {
	ID          string     `json:"id"`
	WorkspaceID string     `json:"workspace_id"`
	CreatedAt   time.Time  `json:"created_at"`
	UpdatedAt   time.Time  `json:"updated_at"`
	DeletedAt   *time.Time `json:"-"`
	Stamp       Stamp      `json:"-"`
}

// Category is a part of life or work. Everything in the journal belongs to one, and an agent sees only those it was
// given.
type Category struct {
	Record
	Name string `json:"name" doc:"Unique in the workspace"`
}

// Label is a word to mark tasks with.
type Label struct {
	Record
	Name       string `json:"name" doc:"Unique in the workspace"`
	CategoryID string `json:"category_id,omitempty" doc:"Set when only tasks of that category can have it"`
}

// TaskStatus is where a task stands.
type TaskStatus string

// The statuses of a task. The last two close it; any status may follow any other, as people change their minds.
const (
	TaskOpen       TaskStatus = "open"
	TaskGroomed    TaskStatus = "groomed"     // thought through, ready to be begun
	TaskInProgress TaskStatus = "in_progress" // somebody works on it
	TaskBlocked    TaskStatus = "blocked"     // something else must happen first
	TaskOnHold     TaskStatus = "on_hold"     // put aside
	TaskDone       TaskStatus = "done"
	TaskRejected   TaskStatus = "rejected" // it will not be done
)

// TaskStatuses lists the statuses of a task.
func TaskStatuses() []TaskStatus {
	return []TaskStatus{TaskOpen, TaskGroomed, TaskInProgress, TaskBlocked, TaskOnHold, TaskDone, TaskRejected}
}

// Closed tells whether nothing is left to do.
func (s TaskStatus) Closed() bool { return s == TaskDone || s == TaskRejected }

// Priority is how much a task matters.
type Priority string

// The priorities.
const (
	Urgent         Priority = "urgent"
	HighPriority   Priority = "high"
	MediumPriority Priority = "medium"
	LowPriority    Priority = "low"
)

// Priorities lists the priorities, the highest first.
func Priorities() []Priority {
	return []Priority{Urgent, HighPriority, MediumPriority, LowPriority}
}

// Task is something to do.
type Task struct {
	Record
	CategoryID      string     `json:"category_id"`
	Title           string     `json:"title"`
	Description     string     `json:"description,omitempty"`
	Status          TaskStatus `json:"status"`
	Priority        Priority   `json:"priority"`
	EstimateMinutes int64      `json:"estimate_minutes,omitempty" doc:"0 or absent means not estimated"`
	DueDate         string     `json:"due_date,omitempty" doc:"A day, YYYY-MM-DD"`
	Language        string     `json:"language,omitempty" doc:"A language tag such as en or pt-BR"`
	LabelIDs        []string   `json:"label_ids,omitempty"`
	ClosedAt        *time.Time `json:"closed_at,omitempty"`
	CreatedBy       string     `json:"created_by,omitempty" doc:"The user or agent who made it"`
}

// Checklist is a list of small things that belong to a task.
type Checklist struct {
	Record
	TaskID   string          `json:"task_id"`
	Title    string          `json:"title"`
	Position int64           `json:"position"`
	Items    []ChecklistItem `json:"items"`
}

// ChecklistItem is one thing on a checklist.
type ChecklistItem struct {
	Record
	ChecklistID string `json:"checklist_id"`
	Title       string `json:"title"`
	Checked     bool   `json:"checked"`
	Position    int64  `json:"position"`
}

// TimeEntry is time a user spent on a task. One without an end is a running timer, and a user has at most one.
type TimeEntry struct {
	Record
	TaskID    string     `json:"task_id"`
	UserID    string     `json:"user_id"`
	StartedAt time.Time  `json:"started_at" doc:"With the offset from UTC that it was given with"`
	EndedAt   *time.Time `json:"ended_at,omitempty" doc:"Absent while it runs"`
	Note      string     `json:"note,omitempty"`
	SourceID  string     `json:"source_id,omitempty" doc:"What it was taken from, such as a dictated note"`
}

// DayPlan is what a user means to do on a day.
type DayPlan struct {
	Record
	UserID string      `json:"user_id"`
	Day    string      `json:"plan_date" doc:"YYYY-MM-DD"`
	Blocks []PlanBlock `json:"blocks" doc:"In the order of their times"`
	Pinned []string    `json:"pinned_task_ids" doc:"The tasks of the day, in order"`
}

// PlanBlock is a span of a day that is meant for something. Blocks may overlap: an agent cannot make room for what it
// may not see.
type PlanBlock struct {
	Record
	PlanID     string    `json:"plan_id"`
	CategoryID string    `json:"category_id"`
	TaskID     string    `json:"task_id,omitempty"`
	StartsAt   time.Time `json:"starts_at"`
	EndsAt     time.Time `json:"ends_at"`
	Note       string    `json:"note,omitempty"`
}

// PlanPin puts a task on a day's plan.
type PlanPin struct {
	Record
	PlanID   string `json:"plan_id"`
	TaskID   string `json:"task_id"`
	Position int64  `json:"position"`
}

// RatingTarget says what kind of thing a rating is about.
type RatingTarget string

// What can be rated.
const (
	RatedTask      RatingTarget = "task"
	RatedTimeEntry RatingTarget = "time_entry"
	RatedPlanBlock RatingTarget = "plan_block"
)

// RatingTargets lists what can be rated.
func RatingTargets() []RatingTarget {
	return []RatingTarget{RatedTask, RatedTimeEntry, RatedPlanBlock}
}

// Rating is how a user found something. There is one of each user for each target.
type Rating struct {
	Record
	UserID   string           `json:"user_id"`
	Target   RatingTarget     `json:"target_kind"`
	TargetID string           `json:"target_id"`
	Scores   map[string]int64 `json:"scores" doc:"By name, such as focus or energy; 0 to 100"`
	Note     string           `json:"note,omitempty"`
}

// Relation says how one thing belongs to another.
type Relation string

// The relations. Those between tasks come in pairs, one each way.
const (
	FollowedBy     Relation = "followed_by"      // from a task to the one that goes on with it
	Follows        Relation = "follows"          // and back
	RolledOverTo   Relation = "rolled_over_to"   // from a concluded task to the one that got its open items
	RolledOverFrom Relation = "rolled_over_from" // and back
	SplitInto      Relation = "split_into"       // from a task to one made of some of its items
	SplitFrom      Relation = "split_from"       // and back
	ToolEffect     Relation = "tool_effect"      // from an operation to what it touched
)

// Link ties two things.
type Link struct {
	Record
	FromID   string   `json:"from_id"`
	ToID     string   `json:"to_id"`
	Relation Relation `json:"relation"`
}
