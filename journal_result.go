package reeve

// This file has the response bodies of the journal.

// TaskView is a task with its checklists and links.
type TaskView struct {
	Task
	Checklists []Checklist `json:"checklists"`
	Links      []Link      `json:"links" doc:"Links to and from the task"`
}

// TaskCandidate is a task that a reference in text may mean.
type TaskCandidate struct {
	TaskID     string     `json:"task_id"`
	Title      string     `json:"title"`
	CategoryID string     `json:"category_id"`
	Status     TaskStatus `json:"status"`
	DueDate    string     `json:"due_date,omitempty"`
	Score      int        `json:"score" doc:"From 0 to 1000; 1000 is certain"`
	Why        string     `json:"why"`
}

// TaskCandidates lists the tasks that a reference may mean, the most likely first.
type TaskCandidates struct {
	Candidates []TaskCandidate `json:"candidates"`
	Ambiguous  bool            `json:"ambiguous" doc:"False if the first is certain; otherwise ask which task is meant"`
}

// TasksChanged is the result of a change to several tasks.
type TasksChanged struct {
	Task  Task   `json:"task" doc:"The source task after the change"`
	Other *Task  `json:"other_task,omitempty" doc:"The new task, or the task that received the items"`
	Moved int    `json:"moved_items"`
	Links []Link `json:"links,omitempty"`
}

// TimeEntryList is a page of a user's time entries, newest first.
type TimeEntryList struct {
	// Next comes first, so that a truncated result still has the cursor.
	Next        string      `json:"next_cursor,omitempty"`
	TimeEntries []TimeEntry `json:"time_entries"`
}

// ScoreSummary summarizes the scores of one name.
type ScoreSummary struct {
	Name  string  `json:"name"`
	Count int     `json:"count"`
	Mean  float64 `json:"mean"`
	Min   int64   `json:"min"`
	Max   int64   `json:"max"`
}

// RatingSummary summarizes a user's ratings.
type RatingSummary struct {
	Count     int            `json:"count"`
	Scores    []ScoreSummary `json:"scores" doc:"Summaries by score name"`
	Truncated bool           `json:"truncated,omitempty" doc:"True if there were too many to count; use a shorter period"`
}
