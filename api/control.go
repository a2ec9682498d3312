package api

import "reeve"

// StopRequest turns the kill switch on.
type StopRequest struct {
	Agent  string `json:"agent,omitempty" maxLength:"128" doc:"One agent; everything in the workspace if left out"`
	Reason string `json:"reason,omitempty" maxLength:"500"`
}

// ProfileList is a workspace's capability profiles, built-in ones included.
type ProfileList struct {
	Profiles []reeve.Profile `json:"profiles"`
}

// ProfileRequest sets what agents of a kind may do.
type ProfileRequest struct {
	Capabilities []string `json:"capabilities" maxItems:"200"`
}

// BudgetList is a workspace's budgets.
type BudgetList struct {
	Budgets []reeve.Budget `json:"budgets"`
}

// BudgetRequest sets a subject's limits.
type BudgetRequest struct {
	Parent   string         `json:"parent,omitempty" maxLength:"200" doc:"Another subject this one draws on"`
	Limit    reeve.Amount   `json:"limit"`
	OnExceed reeve.OnExceed `json:"on_exceed,omitempty" enum:"end,park" default:"end"`
}

// HoldReport is what a held server would go on with.
type HoldReport struct {
	Held   bool                   `json:"held"`
	Hold   *reeve.Hold            `json:"hold,omitempty"`
	Counts map[reeve.HeldKind]int `json:"counts,omitempty" doc:"How much there is of each kind"`
	Work   []reeve.HeldWork       `json:"work" doc:"The first of each kind"`
	More   bool                   `json:"more,omitempty" doc:"There is more than is listed"`
}

// ResumeRequest lets a held server go on, or turns the kill switch off.
type ResumeRequest struct {
	Agent   string   `json:"agent,omitempty" maxLength:"128" doc:"One agent; everything in the workspace, or the held server, if left out"`
	Skip    []string `json:"skip,omitempty" maxItems:"1000" doc:"Of a held server: runs, wakes and overdue schedules that do not go on"`
	SkipAll bool     `json:"skip_all,omitempty" doc:"Of a held server: no run, wake or overdue firing goes on"`
}
