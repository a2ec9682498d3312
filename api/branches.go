package api

import "reeve"

// ProjectList lists the projects of a workspace.
type ProjectList struct {
	Projects []reeve.Project `json:"projects"`
}

// BranchList is a page of branches.
type BranchList struct {
	Branches []reeve.Branch `json:"branches"`
	Next     string         `json:"next_cursor,omitempty"`
}

// MergeRequest merges a branch into its project's default branch.
type MergeRequest struct {
	Message string `json:"message,omitempty" maxLength:"8000" doc:"Commit message. Default: names the branch"`
}
