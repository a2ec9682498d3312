package reeve

import (
	"encoding/json"
	"reflect"
	"strconv"
)

// What is asked of the journal: the arguments of tools and the bodies of the REST API alike, so that people and agents
// change it by the same rules.

// CategoryRequest makes or changes a category.
type CategoryRequest struct {
	Name string `json:"name" minLength:"1" maxLength:"100" doc:"Unique in the workspace"`
}

// LabelRequest makes a label.
type LabelRequest struct {
	Name       string `json:"name" minLength:"1" maxLength:"100" doc:"Unique in the workspace"`
	CategoryID string `json:"category_id,omitempty" maxLength:"64" pattern:"^[a-z]+_[0-9a-z]+$" doc:"Only tasks of this category can have it; of any, if left out"`
}

// LabelChange changes a label.
type LabelChange struct {
	Name *string `json:"name,omitempty" minLength:"1" maxLength:"100"`
}

// TaskDraft makes a task.
type TaskDraft struct {
	CategoryID      string     `json:"category_id" maxLength:"64" pattern:"^[a-z]+_[0-9a-z]+$" doc:"The category it belongs to"`
	Title           string     `json:"title" minLength:"1" maxLength:"500"`
	Description     string     `json:"description,omitempty" maxLength:"102400"`
	Status          TaskStatus `json:"status,omitempty" enum:"open,groomed,in_progress,blocked,on_hold,done,rejected" doc:"open if left out"`
	Priority        Priority   `json:"priority,omitempty" enum:"urgent,high,medium,low" doc:"medium if left out"`
	EstimateMinutes int64      `json:"estimate_minutes,omitempty" minimum:"0" maximum:"600000"`
	DueDate         string     `json:"due_date,omitempty" maxLength:"10" doc:"A day, YYYY-MM-DD"`
	Language        string     `json:"language,omitempty" maxLength:"35" doc:"A language tag such as en or pt-BR"`
	LabelIDs        []string   `json:"label_ids,omitempty" maxItems:"100"`
}

// TaskChange changes a task. What is left out stays; an empty text or a zero estimate takes the value away.
type TaskChange struct {
	Title           *string        `json:"title,omitempty" minLength:"1" maxLength:"500"`
	Description     *string        `json:"description,omitempty" maxLength:"102400"`
	Status          *TaskStatus    `json:"status,omitempty" enum:"open,groomed,in_progress,blocked,on_hold,done,rejected"`
	Priority        *Priority      `json:"priority,omitempty" enum:"urgent,high,medium,low"`
	EstimateMinutes *int64         `json:"estimate_minutes,omitempty" minimum:"0" maximum:"600000" doc:"0 takes it away"`
	DueDate         *string        `json:"due_date,omitempty" maxLength:"10" doc:"A day, YYYY-MM-DD; empty takes it away"`
	Language        *string        `json:"language,omitempty" maxLength:"35" doc:"A language tag; empty takes it away"`
	CategoryID      *string        `json:"category_id,omitempty" maxLength:"64" pattern:"^[a-z]+_[0-9a-z]+$" doc:"Moves it, with all it has, to another category"`
	Rest            *TaskRemainder `json:"-"` // only an undo has it
}

// TaskRemainder is what a task had that is no field to be changed, and went with a change of one: labels of the
// category that it left, and when it was closed.
type TaskRemainder struct {
	LabelIDs []string `json:"label_ids,omitempty" maxItems:"1000"`
	ClosedAt string   `json:"closed_at,omitempty" maxLength:"40"`
}

// LabelAssignment puts labels on a task and takes others off.
type LabelAssignment struct {
	Add    []string `json:"add_label_ids,omitempty" maxItems:"100"`
	Remove []string `json:"remove_label_ids,omitempty" maxItems:"100"`
}

// FollowUp makes a task that goes on where another ends.
type FollowUp struct {
	SourceTaskID string     `json:"source_task_id" maxLength:"64" pattern:"^[a-z]+_[0-9a-z]+$"`
	Title        string     `json:"new_task_title" minLength:"1" maxLength:"500"`
	CarryOver    *bool      `json:"carry_over_open_checklist_items,omitempty" default:"true" doc:"Move the open items to the new task; those that are done stay"`
	CloseAs      TaskStatus `json:"close_source_task_as,omitempty" enum:"done,rejected" doc:"Close the source task; it stays as it is if left out"`
	Preserve     *bool      `json:"preserve_category_and_labels,omitempty" default:"true" doc:"If false, category_id says where it goes and it has no labels"`
	CategoryID   string     `json:"category_id,omitempty" maxLength:"64" pattern:"^[a-z]+_[0-9a-z]+$" doc:"Only with preserve_category_and_labels false"`
}

// Rollover concludes a task and moves its open items on.
type Rollover struct {
	TaskID       string     `json:"task_id" maxLength:"64" pattern:"^[a-z]+_[0-9a-z]+$"`
	CloseAs      TaskStatus `json:"close_as,omitempty" enum:"done,rejected" doc:"done if left out"`
	TargetTaskID string     `json:"target_task_id,omitempty" maxLength:"64" pattern:"^[a-z]+_[0-9a-z]+$" doc:"The task that gets the open items; a new one if left out"`
	Title        string     `json:"new_task_title,omitempty" maxLength:"500" doc:"Of the new task; the old one's title if left out"`
}

// ChecklistDraft makes a checklist.
type ChecklistDraft struct {
	TaskID string   `json:"task_id" maxLength:"64" pattern:"^[a-z]+_[0-9a-z]+$"`
	Title  string   `json:"title" minLength:"1" maxLength:"500"`
	Items  []string `json:"items,omitempty" maxItems:"1000" doc:"The titles of its items, in order"`
}

// ChecklistChange changes a checklist.
type ChecklistChange struct {
	Title *string `json:"title,omitempty" minLength:"1" maxLength:"500"`
}

// ItemDraft is an item to be added.
type ItemDraft struct {
	Title   string `json:"title" minLength:"1" maxLength:"500"`
	Checked bool   `json:"checked,omitempty"`
}

// ItemChange changes an item. What is left out stays.
type ItemChange struct {
	ID      string  `json:"id" maxLength:"64" pattern:"^[a-z]+_[0-9a-z]+$"`
	Title   *string `json:"title,omitempty" minLength:"1" maxLength:"500"`
	Checked *bool   `json:"checked,omitempty"`
}

// ItemsDraft adds items to a checklist.
type ItemsDraft struct {
	Items []ItemDraft `json:"items" minItems:"1" maxItems:"1000"`
}

// ItemsChange changes items of a checklist.
type ItemsChange struct {
	Items []ItemChange `json:"items" minItems:"1" maxItems:"1000"`
}

// ItemMove moves items to the end of another checklist, in the order they had.
type ItemMove struct {
	ItemIDs       []string `json:"item_ids" minItems:"1" maxItems:"1000"`
	FromID        string   `json:"from_checklist_id" maxLength:"64" pattern:"^[a-z]+_[0-9a-z]+$"`
	ToID          string   `json:"to_checklist_id" maxLength:"64" pattern:"^[a-z]+_[0-9a-z]+$"`
	PreserveState *bool    `json:"preserve_checked_state,omitempty" default:"true" doc:"If false, every item is open afterwards"`
}

// ItemSplit moves items to a new task of their own.
type ItemSplit struct {
	ItemIDs       []string `json:"item_ids" minItems:"1" maxItems:"1000"`
	FromID        string   `json:"from_checklist_id" maxLength:"64" pattern:"^[a-z]+_[0-9a-z]+$"`
	Title         string   `json:"new_task_title" minLength:"1" maxLength:"500"`
	CategoryID    string   `json:"category_id,omitempty" maxLength:"64" pattern:"^[a-z]+_[0-9a-z]+$" doc:"Of the new task; the source task's if left out"`
	PreserveState *bool    `json:"preserve_checked_state,omitempty" default:"true" doc:"If false, every item is open afterwards"`
}

// TimeDraft records time that was spent.
type TimeDraft struct {
	TaskID    string `json:"task_id" maxLength:"64" pattern:"^[a-z]+_[0-9a-z]+$"`
	StartedAt string `json:"started_at" minLength:"1" maxLength:"40" doc:"RFC 3339 with an offset, such as 2026-02-17T16:00:00-05:00"`
	EndedAt   string `json:"ended_at" minLength:"1" maxLength:"40" doc:"RFC 3339 with an offset; after started_at, not in the future"`
	Note      string `json:"description,omitempty" maxLength:"102400"`
	SourceID  string `json:"source_entry_id,omitempty" maxLength:"128" doc:"What it was taken from, such as a dictated note"`
}

// TimeChange changes a time entry. What is left out stays.
type TimeChange struct {
	StartedAt *string `json:"started_at,omitempty" minLength:"1" maxLength:"40" doc:"RFC 3339 with an offset"`
	EndedAt   *string `json:"ended_at,omitempty" minLength:"1" maxLength:"40" doc:"RFC 3339 with an offset"`
	Note      *string `json:"description,omitempty" maxLength:"102400"`
}

// TimerStart starts a timer.
type TimerStart struct {
	TaskID string `json:"task_id" maxLength:"64" pattern:"^[a-z]+_[0-9a-z]+$"`
	Note   string `json:"description,omitempty" maxLength:"102400"`
}

// TimerStop stops the running timer.
type TimerStop struct {
	TimeEntryID string `json:"time_entry_id,omitempty" maxLength:"64" pattern:"^[a-z]+_[0-9a-z]+$" doc:"The running one if left out; there is at most one"`
	Note        string `json:"description,omitempty" maxLength:"102400" doc:"Replaces the note"`
}

// BlockDraft is a block to be put on a plan.
type BlockDraft struct {
	ID         string `json:"id,omitempty" maxLength:"64" pattern:"^[a-z]+_[0-9a-z]+$" doc:"Of a block to replace; a new one if left out"`
	CategoryID string `json:"category_id" maxLength:"64" pattern:"^[a-z]+_[0-9a-z]+$"`
	TaskID     string `json:"task_id,omitempty" maxLength:"64" pattern:"^[a-z]+_[0-9a-z]+$" doc:"A task of that category"`
	StartsAt   string `json:"start_time" minLength:"1" maxLength:"40" doc:"RFC 3339 with an offset, on the plan's day"`
	EndsAt     string `json:"end_time" minLength:"1" maxLength:"40" doc:"RFC 3339 with an offset; after start_time, within 24 hours"`
	Note       string `json:"note,omitempty" maxLength:"102400"`
}

// PlanChange adds, replaces and removes blocks of a plan.
type PlanChange struct {
	Upserts []BlockDraft `json:"upserts,omitempty" maxItems:"1000"`
	Deletes []string     `json:"deletes,omitempty" maxItems:"1000" doc:"Ids of blocks to remove"`
}

// Replan replaces the blocks of a day.
type Replan struct {
	Blocks []BlockDraft `json:"blocks" maxItems:"1000" doc:"The whole plan: one with an id replaces that block; those not named are removed"`
	From   string       `json:"from,omitempty" maxLength:"40" doc:"RFC 3339: leave blocks that begin before this as they are"`
}

// PinChange puts tasks on a day's plan and takes others off.
type PinChange struct {
	Pin   []string `json:"task_ids,omitempty" maxItems:"1000" doc:"Added at the end, in this order"`
	Unpin []string `json:"unpin_task_ids,omitempty" maxItems:"1000"`
	At    []int64  `json:"-"` // where those that are pinned go; only an undo has it
}

// RatingDraft says how something was. It replaces an earlier rating of the same target.
type RatingDraft struct {
	Target   RatingTarget `json:"target_kind" enum:"task,time_entry,plan_block"`
	TargetID string       `json:"target_id" maxLength:"64" pattern:"^[a-z]+_[0-9a-z]+$"`
	Scores   Scores       `json:"scores" doc:"By name, such as focus or energy; 0 to 100 each, 1 to 20 of them"`
	Note     string       `json:"note,omitempty" maxLength:"102400"`
}

// Scores are what somebody rates something with, by name.
type Scores map[string]int64

// UnmarshalJSON reads numbers of any size. One that is no score stays none, so that it is refused by its name, also
// where no whole number can hold it.
func (s *Scores) UnmarshalJSON(b []byte) error {
	var said map[string]float64
	if err := json.Unmarshal(b, &said); err != nil {
		return err
	}
	*s = Scores{}
	for name, v := range said {
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
