package reeve

// What the journal answers.

// TaskView is a task with all it has.
type TaskView struct {
	Task
	Checklists []Checklist `json:"checklists"`
	Links      []Link      `json:"links" doc:"To and from it"`
}

// TaskCandidate is a task that a reference may mean.
type TaskCandidate struct {
	TaskID     string     `json:"task_id"`
	Title      string     `json:"title"`
	CategoryID string     `json:"category_id"`
	Status     TaskStatus `json:"status"`
	DueDate    string     `json:"due_date,omitempty"`
	Score      int        `json:"score" doc:"0 to 1000; 1000 is certain"`
	Why        string     `json:"why"`
}

// TaskCandidates is what a reference may mean, the likeliest first. Nothing was chosen: a write takes an id.
type TaskCandidates struct {
	Candidates []TaskCandidate `json:"candidates"`
	Ambiguous  bool            `json:"ambiguous" doc:"True unless the first is certain; ask which one is meant"`
}

// TasksChanged is what a change to several tasks came to.
type TasksChanged struct {
	Task  Task   `json:"task" doc:"The task it began with, as it is now"`
	Other *Task  `json:"other_task,omitempty" doc:"The new task, or the one that got the items"`
	Moved int    `json:"moved_items"`
	Links []Link `json:"links,omitempty"`
}

// TimeEntryList is a page of a user's time entries, newest first.
type TimeEntryList struct {
	// before the entries: what is cut off a long answer is not how to go on
	Next        string      `json:"next_cursor,omitempty"`
	TimeEntries []TimeEntry `json:"time_entries"`
}

// ScoreSummary is what the scores of one name come to.
type ScoreSummary struct {
	Name  string  `json:"name"`
	Count int     `json:"count"`
	Mean  float64 `json:"mean"`
	Min   int64   `json:"min"`
	Max   int64   `json:"max"`
}

// RatingSummary sums up a user's ratings.
type RatingSummary struct {
	Count  int            `json:"count"`
	Scores []ScoreSummary `json:"scores" doc:"By name"`
	Cut    bool           `json:"cut,omitempty" doc:"True when there were more than were counted: narrow the span"`
}
