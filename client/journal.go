package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"reeve"
)

func patch[T any](ctx context.Context, c *Client, path string, body any) (out T, err error) {
	return out, c.do(ctx, &request{method: http.MethodPatch, path: path, body: body}, &out)
}

// Categories lists the journal's categories.
func (c *Client) Categories(ctx context.Context) (reeve.CategoryList, error) {
	return get[reeve.CategoryList](ctx, c, path("journal", "categories"), nil)
}

// CreateCategory makes a category.
func (c *Client) CreateCategory(ctx context.Context, r reeve.CategoryRequest) (reeve.Category, error) {
	return post[reeve.Category](ctx, c, path("journal", "categories"), r)
}

// UpdateCategory renames a category.
func (c *Client) UpdateCategory(ctx context.Context, id string, r reeve.CategoryRequest) (reeve.Category, error) {
	return patch[reeve.Category](ctx, c, path("journal", "categories", id), r)
}

// DeleteCategory removes a category that has no tasks.
func (c *Client) DeleteCategory(ctx context.Context, id string) error {
	return c.remove(ctx, path("journal", "categories", id))
}

// Labels lists the journal's labels.
func (c *Client) Labels(ctx context.Context) (reeve.LabelList, error) {
	return get[reeve.LabelList](ctx, c, path("journal", "labels"), nil)
}

// CreateLabel makes a label.
func (c *Client) CreateLabel(ctx context.Context, r reeve.LabelRequest) (reeve.Label, error) {
	return post[reeve.Label](ctx, c, path("journal", "labels"), r)
}

// UpdateLabel changes a label.
func (c *Client) UpdateLabel(ctx context.Context, id string, r reeve.LabelChange) (reeve.Label, error) {
	return patch[reeve.Label](ctx, c, path("journal", "labels", id), r)
}

// DeleteLabel removes a label.
func (c *Client) DeleteLabel(ctx context.Context, id string) error {
	return c.remove(ctx, path("journal", "labels", id))
}

// TaskFilter chooses tasks.
type TaskFilter struct {
	Category  string             // of one category. Default: of all
	Status    []reeve.TaskStatus // in one of these. Default: in any
	Open      bool               // leave out what is closed
	DueAfter  string             // due on this day or later
	DueBefore string             // due on this day or earlier
	Label     string             // with this label
	Text      string             // part of the title
	Page
}

// Tasks lists tasks, newest first.
func (c *Client) Tasks(ctx context.Context, f TaskFilter) (reeve.TaskList, error) {
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
	return get[reeve.TaskList](ctx, c, path("journal", "tasks"), q)
}

// Task gives a task with all it has.
func (c *Client) Task(ctx context.Context, id string) (reeve.TaskView, error) {
	return get[reeve.TaskView](ctx, c, path("journal", "tasks", id), nil)
}

// CreateTask makes a task.
func (c *Client) CreateTask(ctx context.Context, r reeve.TaskDraft) (reeve.Task, error) {
	return post[reeve.Task](ctx, c, path("journal", "tasks"), r)
}

// UpdateTask changes what the request names, and leaves the rest.
func (c *Client) UpdateTask(ctx context.Context, id string, r reeve.TaskChange) (reeve.Task, error) {
	return patch[reeve.Task](ctx, c, path("journal", "tasks", id), r)
}

// DeleteTask removes a task.
func (c *Client) DeleteTask(ctx context.Context, id string) error {
	return c.remove(ctx, path("journal", "tasks", id))
}

// AssignLabels puts labels on a task and takes others off.
func (c *Client) AssignLabels(ctx context.Context, task string, r reeve.LabelAssignment) (reeve.Task, error) {
	return post[reeve.Task](ctx, c, path("journal", "tasks", task, "labels"), r)
}

// ResolveTask finds the tasks that words may mean.
func (c *Client) ResolveTask(ctx context.Context, reference string, closedToo bool, limit int) (reeve.TaskCandidates, error) {
	q := url.Values{"reference": {reference}}
	if closedToo {
		q.Set("include_closed", "true")
	}
	if limit != 0 {
		q.Set("limit", strconv.Itoa(limit))
	}
	return get[reeve.TaskCandidates](ctx, c, path("journal", "task-candidates"), q)
}

// FollowUp makes a task that goes on where another ends.
func (c *Client) FollowUp(ctx context.Context, r reeve.FollowUp) (reeve.TasksChanged, error) {
	return post[reeve.TasksChanged](ctx, c, path("journal", "follow-ups"), r)
}

// Conclude closes a task and moves its open items on.
func (c *Client) Conclude(ctx context.Context, r reeve.Rollover) (reeve.TasksChanged, error) {
	return post[reeve.TasksChanged](ctx, c, path("journal", "rollovers"), r)
}

// Effects lists what an operation touched in the journal.
func (c *Client) Effects(ctx context.Context, operation string) (reeve.LinkList, error) {
	return get[reeve.LinkList](ctx, c, path("journal", "effects", operation), nil)
}

// Checklists lists the checklists of a task.
func (c *Client) Checklists(ctx context.Context, task string) (reeve.ChecklistList, error) {
	return get[reeve.ChecklistList](ctx, c, path("journal", "tasks", task, "checklists"), nil)
}

// Checklist gives one checklist.
func (c *Client) Checklist(ctx context.Context, id string) (reeve.Checklist, error) {
	return get[reeve.Checklist](ctx, c, path("journal", "checklists", id), nil)
}

// CreateChecklist makes a checklist.
func (c *Client) CreateChecklist(ctx context.Context, r reeve.ChecklistDraft) (reeve.Checklist, error) {
	return post[reeve.Checklist](ctx, c, path("journal", "checklists"), r)
}

// UpdateChecklist renames a checklist.
func (c *Client) UpdateChecklist(ctx context.Context, id string, r reeve.ChecklistChange) (reeve.Checklist, error) {
	return patch[reeve.Checklist](ctx, c, path("journal", "checklists", id), r)
}

// DeleteChecklist removes a checklist.
func (c *Client) DeleteChecklist(ctx context.Context, id string) error {
	return c.remove(ctx, path("journal", "checklists", id))
}

// AddItems adds items to a checklist.
func (c *Client) AddItems(ctx context.Context, checklist string, r reeve.ItemsDraft) (reeve.Checklist, error) {
	return post[reeve.Checklist](ctx, c, path("journal", "checklists", checklist, "items"), r)
}

// UpdateItems changes items of a checklist.
func (c *Client) UpdateItems(ctx context.Context, checklist string, r reeve.ItemsChange) (reeve.Checklist, error) {
	return patch[reeve.Checklist](ctx, c, path("journal", "checklists", checklist, "items"), r)
}

// DeleteItem removes an item of a checklist.
func (c *Client) DeleteItem(ctx context.Context, checklist, item string) error {
	return c.remove(ctx, path("journal", "checklists", checklist, "items", item))
}

// MoveItems moves items to another checklist; it gives both.
func (c *Client) MoveItems(ctx context.Context, r reeve.ItemMove) (reeve.ChecklistList, error) {
	return post[reeve.ChecklistList](ctx, c, path("journal", "item-moves"), r)
}

// SplitItems moves items to a new task.
func (c *Client) SplitItems(ctx context.Context, r reeve.ItemSplit) (reeve.TasksChanged, error) {
	return post[reeve.TasksChanged](ctx, c, path("journal", "item-splits"), r)
}

// TimeFilter chooses time entries. Times are RFC 3339 with an offset.
type TimeFilter struct {
	Task    string // on one task. Default: on any
	From    string // that end after this
	To      string // that start before this
	Running bool   // only the running timer
	Page
}

// TimeEntries lists the user's time entries, the last begun first.
func (c *Client) TimeEntries(ctx context.Context, f TimeFilter) (reeve.TimeEntryList, error) {
	q := f.query()
	q.Set("task", f.Task)
	q.Set("from", f.From)
	q.Set("to", f.To)
	if f.Running {
		q.Set("running", "true")
	}
	return get[reeve.TimeEntryList](ctx, c, path("journal", "time-entries"), q)
}

// CreateTimeEntry records time that was spent.
func (c *Client) CreateTimeEntry(ctx context.Context, r reeve.TimeDraft) (reeve.TimeEntry, error) {
	return post[reeve.TimeEntry](ctx, c, path("journal", "time-entries"), r)
}

// UpdateTimeEntry changes a time entry.
func (c *Client) UpdateTimeEntry(ctx context.Context, id string, r reeve.TimeChange) (reeve.TimeEntry, error) {
	return patch[reeve.TimeEntry](ctx, c, path("journal", "time-entries", id), r)
}

// DeleteTimeEntry removes a time entry.
func (c *Client) DeleteTimeEntry(ctx context.Context, id string) error {
	return c.remove(ctx, path("journal", "time-entries", id))
}

// StartTimer starts the user's timer.
func (c *Client) StartTimer(ctx context.Context, r reeve.TimerStart) (reeve.TimeEntry, error) {
	return post[reeve.TimeEntry](ctx, c, path("journal", "timers"), r)
}

// StopTimer stops the user's timer.
func (c *Client) StopTimer(ctx context.Context, r reeve.TimerStop) (reeve.TimeEntry, error) {
	return post[reeve.TimeEntry](ctx, c, path("journal", "timers", "stop"), r)
}

// Plan gives the user's plan of a day.
func (c *Client) Plan(ctx context.Context, day string) (reeve.DayPlan, error) {
	return get[reeve.DayPlan](ctx, c, path("journal", "plans", day), nil)
}

// ChangeBlocks changes some blocks of the user's plan of a day.
func (c *Client) ChangeBlocks(ctx context.Context, day string, r reeve.PlanChange) (reeve.DayPlan, error) {
	return post[reeve.DayPlan](ctx, c, path("journal", "plans", day, "blocks"), r)
}

// Replan replaces the blocks of the user's plan of a day.
func (c *Client) Replan(ctx context.Context, day string, r reeve.Replan) (reeve.DayPlan, error) {
	return put[reeve.DayPlan](ctx, c, path("journal", "plans", day, "blocks"), r)
}

// PinTasks puts tasks on the user's plan of a day and takes others off.
func (c *Client) PinTasks(ctx context.Context, day string, r reeve.PinChange) (reeve.DayPlan, error) {
	return post[reeve.DayPlan](ctx, c, path("journal", "plans", day, "pins"), r)
}

// RatingFilter chooses ratings. Times are RFC 3339 with an offset.
type RatingFilter struct {
	Category string             // of things of one category. Default: of all
	Target   reeve.RatingTarget // of one kind. Default: of any
	From     string             // made then or later
	To       string             // made before
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

// Ratings lists the user's ratings, newest first.
func (c *Client) Ratings(ctx context.Context, f RatingFilter) (reeve.RatingList, error) {
	return get[reeve.RatingList](ctx, c, path("journal", "ratings"), f.query())
}

// RatingSummary sums up the user's ratings. It takes no page.
func (c *Client) RatingSummary(ctx context.Context, f RatingFilter) (reeve.RatingSummary, error) {
	f.Page = Page{}
	return get[reeve.RatingSummary](ctx, c, path("journal", "rating-summary"), f.query())
}

// Rate says how something was.
func (c *Client) Rate(ctx context.Context, r reeve.RatingDraft) (reeve.Rating, error) {
	return put[reeve.Rating](ctx, c, path("journal", "ratings"), r)
}

// Rating gives the user's rating of something.
func (c *Client) Rating(ctx context.Context, kind reeve.RatingTarget, id string) (reeve.Rating, error) {
	return get[reeve.Rating](ctx, c, path("journal", "ratings", string(kind), id), nil)
}

// DeleteRating removes the user's rating of something.
func (c *Client) DeleteRating(ctx context.Context, kind reeve.RatingTarget, id string) error {
	return c.remove(ctx, path("journal", "ratings", string(kind), id))
}
