package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"reeve"
	"reeve/api"
)

func patch[T any](ctx context.Context, c *conn, path string, body any) (out T, err error) {
	return out, c.do(ctx, &request{method: http.MethodPatch, path: path, body: body}, &out)
}

// List lists the journal's categories.
func (s CategoryService) List(ctx context.Context) (api.CategoryList, error) {
	return get[api.CategoryList](ctx, s.conn, path("journal", "categories"), nil)
}

// Create makes a category.
func (s CategoryService) Create(ctx context.Context, r reeve.CategoryRequest) (reeve.Category, error) {
	return post[reeve.Category](ctx, s.conn, path("journal", "categories"), r)
}

// Update renames a category.
func (s CategoryService) Update(ctx context.Context, id string, r reeve.CategoryRequest) (reeve.Category, error) {
	return patch[reeve.Category](ctx, s.conn, path("journal", "categories", id), r)
}

// Delete removes a category that has no tasks.
func (s CategoryService) Delete(ctx context.Context, id string) error {
	return s.conn.delete(ctx, path("journal", "categories", id))
}

// List lists the journal's labels.
func (s LabelService) List(ctx context.Context) (api.LabelList, error) {
	return get[api.LabelList](ctx, s.conn, path("journal", "labels"), nil)
}

// Create makes a label.
func (s LabelService) Create(ctx context.Context, r reeve.LabelRequest) (reeve.Label, error) {
	return post[reeve.Label](ctx, s.conn, path("journal", "labels"), r)
}

// Update changes a label.
func (s LabelService) Update(ctx context.Context, id string, r reeve.LabelChange) (reeve.Label, error) {
	return patch[reeve.Label](ctx, s.conn, path("journal", "labels", id), r)
}

// Delete removes a label.
func (s LabelService) Delete(ctx context.Context, id string) error {
	return s.conn.delete(ctx, path("journal", "labels", id))
}

// TaskFilter selects tasks.
type TaskFilter struct {
	Category  string             // of one category. Default: of all
	Status    []reeve.TaskStatus // in one of these. Default: in any
	Open      bool               // only open tasks
	DueAfter  string             // due on this day or later
	DueBefore string             // due on this day or earlier
	Label     string             // with this label
	Text      string             // part of the title
	Page
}

// List lists tasks, newest first.
func (s TaskService) List(ctx context.Context, f TaskFilter) (api.TaskList, error) {
	q := f.query()
	q.Set("category", f.Category)
	status := ""
	for i, s := range f.Status {
		if i > 0 {
			status += ","
		}
		status += string(s)
	}
	q.Set("status", status)
	q.Set("due_after", f.DueAfter)
	q.Set("due_before", f.DueBefore)
	q.Set("label", f.Label)
	q.Set("text", f.Text)
	if f.Open {
		q.Set("open", "true")
	}
	return get[api.TaskList](ctx, s.conn, path("journal", "tasks"), q)
}

// Get returns a task with its checklists and links.
func (s TaskService) Get(ctx context.Context, id string) (reeve.TaskView, error) {
	return get[reeve.TaskView](ctx, s.conn, path("journal", "tasks", id), nil)
}

// Create makes a task.
func (s TaskService) Create(ctx context.Context, r reeve.TaskDraft) (reeve.Task, error) {
	return post[reeve.Task](ctx, s.conn, path("journal", "tasks"), r)
}

// Update changes the fields that are set in the request.
func (s TaskService) Update(ctx context.Context, id string, r reeve.TaskChange) (reeve.Task, error) {
	return patch[reeve.Task](ctx, s.conn, path("journal", "tasks", id), r)
}

// Delete removes a task.
func (s TaskService) Delete(ctx context.Context, id string) error {
	return s.conn.delete(ctx, path("journal", "tasks", id))
}

// AssignLabels adds labels to a task and removes others.
func (s TaskService) AssignLabels(ctx context.Context, task string, r reeve.LabelAssignment) (reeve.Task, error) {
	return post[reeve.Task](ctx, s.conn, path("journal", "tasks", task, "labels"), r)
}

// Resolve finds the tasks that a text may refer to.
func (s TaskService) Resolve(ctx context.Context, reference string, closedToo bool,
	limit int) (reeve.TaskCandidates, error) {
	q := url.Values{"reference": {reference}}
	if closedToo {
		q.Set("include_closed", "true")
	}
	if limit != 0 {
		q.Set("limit", strconv.Itoa(limit))
	}
	return get[reeve.TaskCandidates](ctx, s.conn, path("journal", "task-candidates"), q)
}

// FollowUp creates a task that continues another one.
func (s TaskService) FollowUp(ctx context.Context, r reeve.FollowUp) (reeve.TasksChanged, error) {
	return post[reeve.TasksChanged](ctx, s.conn, path("journal", "follow-ups"), r)
}

// Conclude closes a task and moves its open checklist items to another task.
func (s TaskService) Conclude(ctx context.Context, r reeve.Rollover) (reeve.TasksChanged, error) {
	return post[reeve.TasksChanged](ctx, s.conn, path("journal", "rollovers"), r)
}

// Effects lists the journal entries that an operation changed.
func (s TaskService) Effects(ctx context.Context, operation string) (api.LinkList, error) {
	return get[api.LinkList](ctx, s.conn, path("journal", "effects", operation), nil)
}

// List lists the checklists of a task.
func (s ChecklistService) List(ctx context.Context, task string) (api.ChecklistList, error) {
	return get[api.ChecklistList](ctx, s.conn, path("journal", "tasks", task, "checklists"), nil)
}

// Get returns one checklist.
func (s ChecklistService) Get(ctx context.Context, id string) (reeve.Checklist, error) {
	return get[reeve.Checklist](ctx, s.conn, path("journal", "checklists", id), nil)
}

// Create makes a checklist.
func (s ChecklistService) Create(ctx context.Context, r reeve.ChecklistDraft) (reeve.Checklist, error) {
	return post[reeve.Checklist](ctx, s.conn, path("journal", "checklists"), r)
}

// Update renames a checklist.
func (s ChecklistService) Update(ctx context.Context, id string, r reeve.ChecklistChange) (reeve.Checklist, error) {
	return patch[reeve.Checklist](ctx, s.conn, path("journal", "checklists", id), r)
}

// Delete removes a checklist.
func (s ChecklistService) Delete(ctx context.Context, id string) error {
	return s.conn.delete(ctx, path("journal", "checklists", id))
}

// AddItems adds items to a checklist.
func (s ChecklistService) AddItems(ctx context.Context, checklist string,
	r reeve.ChecklistItemsDraft) (reeve.Checklist, error) {
	return post[reeve.Checklist](ctx, s.conn, path("journal", "checklists", checklist, "items"), r)
}

// UpdateItems changes items of a checklist.
func (s ChecklistService) UpdateItems(ctx context.Context, checklist string,
	r reeve.ChecklistItemsChange) (reeve.Checklist, error) {
	return patch[reeve.Checklist](ctx, s.conn, path("journal", "checklists", checklist, "items"), r)
}

// DeleteItem removes an item of a checklist.
func (s ChecklistService) DeleteItem(ctx context.Context, checklist, item string) error {
	return s.conn.delete(ctx, path("journal", "checklists", checklist, "items", item))
}

// MoveItems moves items to another checklist and returns both checklists.
func (s ChecklistService) MoveItems(ctx context.Context, r reeve.ChecklistItemMove) (api.ChecklistList, error) {
	return post[api.ChecklistList](ctx, s.conn, path("journal", "item-moves"), r)
}

// SplitItems moves items to a new task.
func (s ChecklistService) SplitItems(ctx context.Context, r reeve.ChecklistItemSplit) (reeve.TasksChanged, error) {
	return post[reeve.TasksChanged](ctx, s.conn, path("journal", "item-splits"), r)
}

// TimeFilter selects time entries. Times are RFC 3339 with an offset.
type TimeFilter struct {
	Task    string // on one task. Default: on any
	From    string // only entries that end after this time
	To      string // only entries that start before this time
	Running bool   // only the running timer
	Page
}

// List lists the user's time entries, latest start first.
func (s TimeEntryService) List(ctx context.Context, f TimeFilter) (reeve.TimeEntryList, error) {
	q := f.query()
	q.Set("task", f.Task)
	q.Set("from", f.From)
	q.Set("to", f.To)
	if f.Running {
		q.Set("running", "true")
	}
	return get[reeve.TimeEntryList](ctx, s.conn, path("journal", "time-entries"), q)
}

// Create adds a time entry.
func (s TimeEntryService) Create(ctx context.Context, r reeve.TimeDraft) (reeve.TimeEntry, error) {
	return post[reeve.TimeEntry](ctx, s.conn, path("journal", "time-entries"), r)
}

// Update changes a time entry.
func (s TimeEntryService) Update(ctx context.Context, id string, r reeve.TimeChange) (reeve.TimeEntry, error) {
	return patch[reeve.TimeEntry](ctx, s.conn, path("journal", "time-entries", id), r)
}

// Delete removes a time entry.
func (s TimeEntryService) Delete(ctx context.Context, id string) error {
	return s.conn.delete(ctx, path("journal", "time-entries", id))
}

// StartTimer starts the user's timer.
func (s TimeEntryService) StartTimer(ctx context.Context, r reeve.TimerStart) (reeve.TimeEntry, error) {
	return post[reeve.TimeEntry](ctx, s.conn, path("journal", "timers"), r)
}

// StopTimer stops the user's timer.
func (s TimeEntryService) StopTimer(ctx context.Context, r reeve.TimerStop) (reeve.TimeEntry, error) {
	return post[reeve.TimeEntry](ctx, s.conn, path("journal", "timers", "stop"), r)
}

// Get returns the user's plan for a day.
func (s DayPlanService) Get(ctx context.Context, day string) (reeve.DayPlan, error) {
	return get[reeve.DayPlan](ctx, s.conn, path("journal", "plans", day), nil)
}

// ChangeBlocks changes some blocks of the user's day plan.
func (s DayPlanService) ChangeBlocks(ctx context.Context, day string, r reeve.PlanChange) (reeve.DayPlan, error) {
	return post[reeve.DayPlan](ctx, s.conn, path("journal", "plans", day, "blocks"), r)
}

// Replan replaces all blocks of the user's day plan.
func (s DayPlanService) Replan(ctx context.Context, day string, r reeve.PlanReplacement) (reeve.DayPlan, error) {
	return put[reeve.DayPlan](ctx, s.conn, path("journal", "plans", day, "blocks"), r)
}

// PinTasks adds tasks to the user's day plan and removes others.
func (s DayPlanService) PinTasks(ctx context.Context, day string, r reeve.PinChange) (reeve.DayPlan, error) {
	return post[reeve.DayPlan](ctx, s.conn, path("journal", "plans", day, "pins"), r)
}

// RatingFilter selects ratings. Times are RFC 3339 with an offset.
type RatingFilter struct {
	Category string             // of targets in one category. Default: in all
	Target   reeve.RatingTarget // of one kind. Default: of any
	From     string             // created at or after this time
	To       string             // created before this time
	Page
}

func (f RatingFilter) query() url.Values {
	q := f.Page.query()
	q.Set("category", f.Category)
	q.Set("target_kind", string(f.Target))
	q.Set("from", f.From)
	q.Set("to", f.To)
	return q
}

// List lists the user's ratings, newest first.
func (s RatingService) List(ctx context.Context, f RatingFilter) (api.RatingList, error) {
	return get[api.RatingList](ctx, s.conn, path("journal", "ratings"), f.query())
}

// Summarize returns totals of the user's ratings. It ignores Page.
func (s RatingService) Summarize(ctx context.Context, f RatingFilter) (reeve.RatingSummary, error) {
	f.Page = Page{}
	return get[reeve.RatingSummary](ctx, s.conn, path("journal", "rating-summary"), f.query())
}

// Rate rates a target.
func (s RatingService) Rate(ctx context.Context, r reeve.RatingDraft) (reeve.Rating, error) {
	return put[reeve.Rating](ctx, s.conn, path("journal", "ratings"), r)
}

// Get returns the user's rating of a target.
func (s RatingService) Get(ctx context.Context, kind reeve.RatingTarget, id string) (reeve.Rating, error) {
	return get[reeve.Rating](ctx, s.conn, path("journal", "ratings", string(kind), id), nil)
}

// Delete deletes the user's rating of a target.
func (s RatingService) Delete(ctx context.Context, kind reeve.RatingTarget, id string) error {
	return s.conn.delete(ctx, path("journal", "ratings", string(kind), id))
}
