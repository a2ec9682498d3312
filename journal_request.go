package reeve

import (
	"encoding/json"
	"reflect"
	"strconv"
)

// This file has the requests of the journal. They are both arguments of tools and bodies of the REST API, so that users
// and agents change the journal by the same rules.

// CategoryRequest creates or renames a category.
type CategoryRequest struct {
	Name string `json:"name" minLength:"1" maxLength:"100" doc:"Unique in the workspace"`
}

// LabelRequest creates a label.
type LabelRequest struct {
	Name       string `json:"name" minLength:"1" maxLength:"100" doc:"Unique in the workspace"`
	CategoryID string `json:"category_id,omitempty" maxLength:"64" pattern:"^[a-z]+_[0-9a-z]+$" doc:"Default: any category"`
}

// LabelChange renames a label.
type LabelChange struct {
	Name *string `json:"name,omitempty" minLength:"1" maxLength:"100"`
}

// TaskDraft creates a task.
type TaskDraft struct {
	CategoryID      string     `json:"category_id" maxLength:"64" pattern:"^[a-z]+_[0-9a-z]+$" doc:"Category id"`
	Title           string     `json:"title" minLength:"1" maxLength:"500"`
	Description     string     `json:"description,omitempty" maxLength:"102400"`
	Status          TaskStatus `json:"status,omitempty" enum:"open,groomed,in_progress,blocked,on_hold,done,rejected" doc:"Default: open"`
	Priority        Priority   `json:"priority,omitempty" enum:"urgent,high,medium,low" doc:"Default: medium"`
	EstimateMinutes int64      `json:"estimate_minutes,omitempty" minimum:"0" maximum:"600000"`
	DueDate         string     `json:"due_date,omitempty" maxLength:"10" doc:"Date, YYYY-MM-DD"`
	Language        string     `json:"language,omitempty" maxLength:"35" doc:"Language tag such as en or pt-BR"`
	LabelIDs        []string   `json:"label_ids,omitempty" maxItems:"100"`
}

// TaskChange changes a task. Absent fields stay unchanged. An empty text or a zero estimate removes the value.
type TaskChange struct {
	Title           *string         `json:"title,omitempty" minLength:"1" maxLength:"500"`
	Description     *string         `json:"description,omitempty" maxLength:"102400"`
	Status          *TaskStatus     `json:"status,omitempty" enum:"open,groomed,in_progress,blocked,on_hold,done,rejected"`
	Priority        *Priority       `json:"priority,omitempty" enum:"urgent,high,medium,low"`
	EstimateMinutes *int64          `json:"estimate_minutes,omitempty" minimum:"0" maximum:"600000" doc:"0 removes it"`
	DueDate         *string         `json:"due_date,omitempty" maxLength:"10" doc:"Date, YYYY-MM-DD; empty removes it"`
	Language        *string         `json:"language,omitempty" maxLength:"35" doc:"Language tag; empty removes it"`
	CategoryID      *string         `json:"category_id,omitempty" maxLength:"64" pattern:"^[a-z]+_[0-9a-z]+$" doc:"New category"`
	LostValues      *TaskLostValues `json:"-"` // set by an undo only
}

// TaskLostValues has the values that a task lost as a side effect of a change: the labels of its former category and
// the time when it was closed. An undo restores them.
type TaskLostValues struct {
	LabelIDs []string `json:"label_ids,omitempty" maxItems:"1000"`
	ClosedAt string   `json:"closed_at,omitempty" maxLength:"40"`
}

// LabelAssignment adds labels to a task and removes others.
type LabelAssignment struct {
	Add    []string `json:"add_label_ids,omitempty" maxItems:"100"`
	Remove []string `json:"remove_label_ids,omitempty" maxItems:"100"`
}

// FollowUp creates a task that continues another one.
type FollowUp struct {
	SourceTaskID string     `json:"source_task_id" maxLength:"64" pattern:"^[a-z]+_[0-9a-z]+$"`
	Title        string     `json:"new_task_title" minLength:"1" maxLength:"500"`
	CarryOver    *bool      `json:"carry_over_open_checklist_items,omitempty" default:"true" doc:"Move open items to the new task"`
	CloseAs      TaskStatus `json:"close_source_task_as,omitempty" enum:"done,rejected" doc:"Status to close the source task with. Default: keep it open"`
	Preserve     *bool      `json:"preserve_category_and_labels,omitempty" default:"true" doc:"If false, use category_id and no labels"`
	CategoryID   string     `json:"category_id,omitempty" maxLength:"64" pattern:"^[a-z]+_[0-9a-z]+$" doc:"Category, if not preserved"`
}

// Rollover closes a task and moves its open items to another task.
type Rollover struct {
	TaskID       string     `json:"task_id" maxLength:"64" pattern:"^[a-z]+_[0-9a-z]+$"`
	CloseAs      TaskStatus `json:"close_as,omitempty" enum:"done,rejected" doc:"Default: done"`
	TargetTaskID string     `json:"target_task_id,omitempty" maxLength:"64" pattern:"^[a-z]+_[0-9a-z]+$" doc:"Default: a new task"`
	Title        string     `json:"new_task_title,omitempty" maxLength:"500" doc:"Title of the new task. Default: the old title"`
}

// ChecklistDraft creates a checklist.
type ChecklistDraft struct {
	TaskID string   `json:"task_id" maxLength:"64" pattern:"^[a-z]+_[0-9a-z]+$"`
	Title  string   `json:"title" minLength:"1" maxLength:"500"`
	Items  []string `json:"items,omitempty" maxItems:"1000" doc:"Titles of the items, in order"`
}

// ChecklistChange renames a checklist.
type ChecklistChange struct {
	Title *string `json:"title,omitempty" minLength:"1" maxLength:"500"`
}

// ChecklistItemDraft is an item to add to a checklist.
type ChecklistItemDraft struct {
	Title   string `json:"title" minLength:"1" maxLength:"500"`
	Checked bool   `json:"checked,omitempty"`
}

// ChecklistItemChange changes an item. Absent fields stay unchanged.
type ChecklistItemChange struct {
	ID      string  `json:"id" maxLength:"64" pattern:"^[a-z]+_[0-9a-z]+$"`
	Title   *string `json:"title,omitempty" minLength:"1" maxLength:"500"`
	Checked *bool   `json:"checked,omitempty"`
}

// ChecklistItemsDraft adds items to a checklist.
type ChecklistItemsDraft struct {
	Items []ChecklistItemDraft `json:"items" minItems:"1" maxItems:"1000"`
}

// ChecklistItemsChange changes items of a checklist.
type ChecklistItemsChange struct {
	Items []ChecklistItemChange `json:"items" minItems:"1" maxItems:"1000"`
}

// ChecklistItemMove moves items to the end of another checklist and keeps their order.
type ChecklistItemMove struct {
	ItemIDs       []string `json:"item_ids" minItems:"1" maxItems:"1000"`
	FromID        string   `json:"from_checklist_id" maxLength:"64" pattern:"^[a-z]+_[0-9a-z]+$"`
	ToID          string   `json:"to_checklist_id" maxLength:"64" pattern:"^[a-z]+_[0-9a-z]+$"`
	PreserveState *bool    `json:"preserve_checked_state,omitempty" default:"true" doc:"If false, uncheck all moved items"`
}

// ChecklistItemSplit moves items to a new task.
type ChecklistItemSplit struct {
	ItemIDs       []string `json:"item_ids" minItems:"1" maxItems:"1000"`
	FromID        string   `json:"from_checklist_id" maxLength:"64" pattern:"^[a-z]+_[0-9a-z]+$"`
	Title         string   `json:"new_task_title" minLength:"1" maxLength:"500"`
	CategoryID    string   `json:"category_id,omitempty" maxLength:"64" pattern:"^[a-z]+_[0-9a-z]+$" doc:"Default: the source task's"`
	PreserveState *bool    `json:"preserve_checked_state,omitempty" default:"true" doc:"If false, uncheck all moved items"`
}

// TimeDraft records time spent on a task.
type TimeDraft struct {
	TaskID    string `json:"task_id" maxLength:"64" pattern:"^[a-z]+_[0-9a-z]+$"`
	StartedAt string `json:"started_at" minLength:"1" maxLength:"40" doc:"RFC 3339, such as 2026-02-17T16:00:00-05:00"`
	EndedAt   string `json:"ended_at" minLength:"1" maxLength:"40" doc:"RFC 3339, after started_at and not in the future"`
	Note      string `json:"description,omitempty" maxLength:"102400"`
	SourceID  string `json:"source_entry_id,omitempty" maxLength:"128" doc:"Id of the source, such as a dictated note"`
}

// TimeChange changes a time entry. Absent fields stay unchanged.
type TimeChange struct {
	StartedAt *string `json:"started_at,omitempty" minLength:"1" maxLength:"40" doc:"RFC 3339 with a UTC offset"`
	EndedAt   *string `json:"ended_at,omitempty" minLength:"1" maxLength:"40" doc:"RFC 3339 with a UTC offset"`
	Note      *string `json:"description,omitempty" maxLength:"102400"`
}

// TimerStart starts a timer.
type TimerStart struct {
	TaskID string `json:"task_id" maxLength:"64" pattern:"^[a-z]+_[0-9a-z]+$"`
	Note   string `json:"description,omitempty" maxLength:"102400"`
}

// TimerStop stops the running timer.
type TimerStop struct {
	TimeEntryID string `json:"time_entry_id,omitempty" maxLength:"64" pattern:"^[a-z]+_[0-9a-z]+$" doc:"Default: the running one"`
	Note        string `json:"description,omitempty" maxLength:"102400" doc:"New note"`
}

// BlockDraft is a block to add to a day plan or to replace in it.
type BlockDraft struct {
	ID         string `json:"id,omitempty" maxLength:"64" pattern:"^[a-z]+_[0-9a-z]+$" doc:"Block to replace. Default: a new one"`
	CategoryID string `json:"category_id" maxLength:"64" pattern:"^[a-z]+_[0-9a-z]+$"`
	TaskID     string `json:"task_id,omitempty" maxLength:"64" pattern:"^[a-z]+_[0-9a-z]+$" doc:"Task of the category"`
	StartsAt   string `json:"start_time" minLength:"1" maxLength:"40" doc:"RFC 3339 with a UTC offset, on the plan's day"`
	EndsAt     string `json:"end_time" minLength:"1" maxLength:"40" doc:"RFC 3339, at most 24 hours after start_time"`
	Note       string `json:"note,omitempty" maxLength:"102400"`
}

// PlanChange adds, replaces and removes blocks of a day plan.
type PlanChange struct {
	Upserts []BlockDraft `json:"upserts,omitempty" maxItems:"1000"`
	Deletes []string     `json:"deletes,omitempty" maxItems:"1000" doc:"Ids of blocks to remove"`
}

// PlanReplacement replaces the blocks of a day plan.
type PlanReplacement struct {
	Blocks []BlockDraft `json:"blocks" maxItems:"1000" doc:"All blocks; existing blocks without an entry are removed"`
	From   string       `json:"from,omitempty" maxLength:"40" doc:"Keep blocks that start before this time; RFC 3339"`
}

// PinChange pins tasks to a day plan and unpins others.
type PinChange struct {
	Pin   []string `json:"task_ids,omitempty" maxItems:"1000" doc:"Tasks to add at the end, in this order"`
	Unpin []string `json:"unpin_task_ids,omitempty" maxItems:"1000"`
	At    []int64  `json:"-"` // positions of the pinned tasks; set by an undo only
}

// RatingDraft rates a target. It replaces the user's earlier rating of the same target.
type RatingDraft struct {
	Target   RatingTarget `json:"target_kind" enum:"task,time_entry,plan_block"`
	TargetID string       `json:"target_id" maxLength:"64" pattern:"^[a-z]+_[0-9a-z]+$"`
	Scores   Scores       `json:"scores" doc:"1 to 20 scores from 0 to 100 by name, such as focus"`
	Note     string       `json:"note,omitempty" maxLength:"102400"`
}

// Scores are the scores of a rating by name.
type Scores map[string]int64

// UnmarshalJSON accepts numbers of any size. It clamps a number that is out of range to one that is still out of range,
// so that [Rating.Validate] can reject it and name the score.
func (s *Scores) UnmarshalJSON(b []byte) error {
	var numbers map[string]float64
	if err := json.Unmarshal(b, &numbers); err != nil {
		return err
	}
	*s = Scores{}
	for name, v := range numbers {
		switch n := int64(max(-1, min(v, MaxScore+1))); {
		case v < 0:
			(*s)[name] = -1
		case v <= MaxScore && float64(n) != v:
			return &json.UnmarshalTypeError{Value: "number " + strconv.FormatFloat(v, 'g', -1, 64),
				Type: reflect.TypeFor[int64]()}
		default:
			(*s)[name] = n
		}
	}
	return nil
}
