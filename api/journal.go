package api

import "reeve"

// CategoryList lists a workspace's categories.
type CategoryList struct {
	Categories []reeve.Category `json:"categories"`
}

// LabelList lists a workspace's labels.
type LabelList struct {
	Labels []reeve.Label `json:"labels"`
}

// TaskList is a page of tasks, newest first.
type TaskList struct {
	Tasks []reeve.Task `json:"tasks"`
	Next  string       `json:"next_cursor,omitempty"`
}

// ChecklistList lists a task's checklists.
type ChecklistList struct {
	Checklists []reeve.Checklist `json:"checklists"`
}

// RatingList is a page of a user's ratings, newest first.
type RatingList struct {
	Ratings []reeve.Rating `json:"ratings"`
	Next    string         `json:"next_cursor,omitempty"`
}

// LinkList lists the links of one object.
type LinkList struct {
	Links []reeve.Link `json:"links"`
}
