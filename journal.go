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

// The semantic keys that changes of the journal emit.
const (
	KeyCategory  = "CATEGORY"
	KeyLabel     = "LABEL"
	KeyTask      = "TASK"
	KeyChecklist = "CHECKLIST"
	KeyTimeEntry = "TIME_ENTRY"
	KeyDayPlan   = "DAY_PLAN"
	KeyRating    = "RATING"
)

// KeyAgentState is the semantic key that a change of an agent's slots emits.
const KeyAgentState = "AGENT_STATE"

// Record has the fields common to all rows of the journal. A deleted row stays, with DeletedAt set, so that other nodes
// can learn of the deletion.
type Record struct {
	ID          string     `json:"id"`
	WorkspaceID string     `json:"workspace_id"`
	CreatedAt   time.Time  `json:"created_at"`
	UpdatedAt   time.Time  `json:"updated_at"`
	DeletedAt   *time.Time `json:"-"`
	Stamp       Stamp      `json:"-"`
}

// Category is an area of life or work. Every entry of the journal belongs to one. An agent can access only the
// categories in its scope.
type Category struct {
	Record
	Name string `json:"name" doc:"Unique in the workspace"`
}

// Label is a label for tasks.
type Label struct {
	Record
	Name       string `json:"name" doc:"Unique in the workspace"`
	CategoryID string `json:"category_id,omitempty" doc:"If set, only tasks of this category can have the label"`
}

// TaskStatus is the status of a task.
type TaskStatus string

// The statuses of a task. Done and rejected close it. Any status may follow any other.
const (
	TaskOpen       TaskStatus = "open"
	TaskGroomed    TaskStatus = "groomed"     // refined and ready to start
	TaskInProgress TaskStatus = "in_progress" // being worked on
	TaskBlocked    TaskStatus = "blocked"     // waits for something else
	TaskOnHold     TaskStatus = "on_hold"     // postponed
	TaskDone       TaskStatus = "done"
	TaskRejected   TaskStatus = "rejected" // will not be done
)

// TaskStatuses lists the statuses of a task.
func TaskStatuses() []TaskStatus {
	return []TaskStatus{TaskOpen, TaskGroomed, TaskInProgress, TaskBlocked, TaskOnHold, TaskDone, TaskRejected}
}

// IsClosed reports whether the task is done or rejected.
func (s TaskStatus) IsClosed() bool { return s == TaskDone || s == TaskRejected }

// Priority is the priority of a task.
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

// Task is a task of the journal.
type Task struct {
	Record
	CategoryID      string     `json:"category_id"`
	Title           string     `json:"title"`
	Description     string     `json:"description,omitempty"`
	Status          TaskStatus `json:"status"`
	Priority        Priority   `json:"priority"`
	EstimateMinutes int64      `json:"estimate_minutes,omitempty" doc:"Absent means not estimated"`
	DueDate         string     `json:"due_date,omitempty" doc:"Date, YYYY-MM-DD"`
	Language        string     `json:"language,omitempty" doc:"Language tag such as en or pt-BR"`
	LabelIDs        []string   `json:"label_ids,omitempty"`
	ClosedAt        *time.Time `json:"closed_at,omitempty"`
	CreatedBy       string     `json:"created_by,omitempty" doc:"User or agent that created it"`
}

// Checklist is a checklist of a task.
type Checklist struct {
	Record
	TaskID   string          `json:"task_id"`
	Title    string          `json:"title"`
	Position int64           `json:"position"`
	Items    []ChecklistItem `json:"items"`
}

// ChecklistItem is one item of a checklist.
type ChecklistItem struct {
	Record
	ChecklistID string `json:"checklist_id"`
	Title       string `json:"title"`
	Checked     bool   `json:"checked"`
	Position    int64  `json:"position"`
}

// TimeEntry is time that a user spent on a task. An entry without an end is a running timer. A user has at most one.
type TimeEntry struct {
	Record
	TaskID    string     `json:"task_id"`
	UserID    string     `json:"user_id"`
	StartedAt time.Time  `json:"started_at" doc:"Start, with the UTC offset of the request"`
	EndedAt   *time.Time `json:"ended_at,omitempty" doc:"End; absent while the timer runs"`
	Note      string     `json:"note,omitempty"`
	SourceID  string     `json:"source_id,omitempty" doc:"Id of the source, such as a dictated note"`
}

// DayPlan is a user's plan for a day.
type DayPlan struct {
	Record
	UserID string      `json:"user_id"`
	Day    string      `json:"plan_date" doc:"YYYY-MM-DD"`
	Blocks []PlanBlock `json:"blocks" doc:"Blocks by start time"`
	Pinned []string    `json:"pinned_task_ids" doc:"Tasks of the day, in order"`
}

// PlanBlock is a planned span of a day. Blocks may overlap, because an agent cannot avoid blocks of categories that it
// cannot access.
type PlanBlock struct {
	Record
	PlanID     string    `json:"plan_id"`
	CategoryID string    `json:"category_id"`
	TaskID     string    `json:"task_id,omitempty"`
	StartsAt   time.Time `json:"starts_at"`
	EndsAt     time.Time `json:"ends_at"`
	Note       string    `json:"note,omitempty"`
}

// PlanPin is a task pinned to a day plan.
type PlanPin struct {
	Record
	PlanID   string `json:"plan_id"`
	TaskID   string `json:"task_id"`
	Position int64  `json:"position"`
}

// RatingTarget is the kind of object that a rating is about.
type RatingTarget string

// The rating targets.
const (
	RatedTask      RatingTarget = "task"
	RatedTimeEntry RatingTarget = "time_entry"
	RatedPlanBlock RatingTarget = "plan_block"
)

// RatingTargets lists the rating targets.
func RatingTargets() []RatingTarget {
	return []RatingTarget{RatedTask, RatedTimeEntry, RatedPlanBlock}
}

// Rating is a user's rating of one target. A user has at most one rating per target.
type Rating struct {
	Record
	UserID   string           `json:"user_id"`
	Target   RatingTarget     `json:"target_kind"`
	TargetID string           `json:"target_id"`
	Scores   map[string]int64 `json:"scores" doc:"Scores from 0 to 100 by name, such as focus or energy"`
	Note     string           `json:"note,omitempty"`
}

// Relation is the relation between two linked objects.
type Relation string

// The relations. Links between tasks come in pairs, one in each direction.
const (
	FollowedBy     Relation = "followed_by"      // from a task to its follow-up
	Follows        Relation = "follows"          // the reverse
	RolledOverTo   Relation = "rolled_over_to"   // from a closed task to the task that received its open items
	RolledOverFrom Relation = "rolled_over_from" // the reverse
	SplitInto      Relation = "split_into"       // from a task to a new task made from some of its items
	SplitFrom      Relation = "split_from"       // the reverse
	ToolEffect     Relation = "tool_effect"      // from an operation to an object that it changed
)

// Link is a directed link between two objects.
type Link struct {
	Record
	FromID   string   `json:"from_id"`
	ToID     string   `json:"to_id"`
	Relation Relation `json:"relation"`
}
