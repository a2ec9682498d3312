package api

import "reeve"

// StopRequest turns a kill switch on.
type StopRequest struct {
	Agent  string `json:"agent,omitempty" maxLength:"128" doc:"Agent to stop. Default: the whole workspace"`
	Reason string `json:"reason,omitempty" maxLength:"500"`
}

// ProfileList lists a workspace's capability profiles, including built-in ones.
type ProfileList struct {
	Profiles []reeve.Profile `json:"profiles"`
}

// ProfileRequest sets the capabilities of an agent kind.
type ProfileRequest struct {
	Capabilities []string `json:"capabilities" maxItems:"200"`
}

// BudgetList lists a workspace's budgets.
type BudgetList struct {
	Budgets []reeve.Budget `json:"budgets"`
}

// BudgetRequest sets the budget of a subject.
type BudgetRequest struct {
	Parent   string         `json:"parent,omitempty" maxLength:"200" doc:"Subject whose budget is charged too"`
	Limit    reeve.Amount   `json:"limit"`
	OnExceed reeve.OnExceed `json:"on_exceed,omitempty" enum:"end,park" default:"end"`
}

// HoldReport lists the work that a held server would continue.
type HoldReport struct {
	Held   bool                   `json:"held"`
	Hold   *reeve.Hold            `json:"hold,omitempty"`
	Counts map[reeve.HeldKind]int `json:"counts,omitempty" doc:"Number of entries by kind"`
	Work   []reeve.HeldWork       `json:"work" doc:"First entries of each kind"`
	More   bool                   `json:"more,omitempty" doc:"The list is incomplete"`
}

// ResumeRequest resumes a held server or turns a kill switch off.
type ResumeRequest struct {
	Agent   string   `json:"agent,omitempty" maxLength:"128" doc:"Default: the workspace or the held server"`
	Skip    []string `json:"skip,omitempty" maxItems:"1000" doc:"Held server: runs, wakes and overdue schedules to drop"`
	SkipAll bool     `json:"skip_all,omitempty" doc:"Held server: drop all runs, wakes and overdue firings"`
}
