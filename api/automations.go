package api

import "reeve"

// SessionFileList is a page of a session's files.
type SessionFileList struct {
	Files []reeve.SessionFile `json:"files"`
	Next  string              `json:"next_cursor,omitempty"`
}

// SessionFileContent is a session file with its content.
type SessionFileContent struct {
	reeve.SessionFile
	Content string `json:"content" doc:"Content with secrets redacted"`
}

// VersionRequest selects a script version.
type VersionRequest struct {
	Version string `json:"version" minLength:"3" maxLength:"20" doc:"For example 1.0"`
}

// ItemRequest selects an item of an automation.
type ItemRequest struct {
	Item   string `json:"item" minLength:"1" maxLength:"1024"`
	Reason string `json:"reason,omitempty" maxLength:"1000"`
}

// AutomationList is a page of automations.
type AutomationList struct {
	Automations []reeve.Automation `json:"automations"`
	Next        string             `json:"next_cursor,omitempty"`
}

// ScriptVersionList lists an automation's script versions, newest first.
type ScriptVersionList struct {
	Versions []reeve.ScriptVersion `json:"versions"`
	Active   string                `json:"active,omitempty"`
}

// RunFrameType is the type of a run frame.
type RunFrameType string

// The types of run frames.
const (
	RunProgress RunFrameType = "progress" // the progress or the state changed
	RunComplete RunFrameType = "complete" // the run ended; last frame, with the log
)

// RunFrame is an event with the current state of a run, for clients that follow the run.
type RunFrame struct {
	Type RunFrameType `json:"type"`
	reeve.AutomationRun
}

// AutomationRunList is a page of an automation's runs, newest first.
type AutomationRunList struct {
	Runs []reeve.AutomationRun `json:"runs"`
	Next string                `json:"next_cursor,omitempty"`
}

// ItemHistory is an item with all its attempts.
type ItemHistory struct {
	reeve.Item
	Attempts []reeve.ItemAttempt `json:"attempts" doc:"Attempts, oldest first"`
}

// Plan is a page of the calls that a dry run planned, in order.
type Plan struct {
	RunID   string              `json:"run_id"`
	AgentID string              `json:"agent_id"`
	Calls   []reeve.PlannedCall `json:"calls"`
	Next    string              `json:"next_cursor,omitempty"`
}

// ScriptJobList lists an automation's script jobs, newest first.
type ScriptJobList struct {
	ScriptJobs []reeve.ScriptJob `json:"script_jobs"`
}

// AnswerRequest answers the question of a script job.
type AnswerRequest struct {
	Answer string `json:"answer" minLength:"1" maxLength:"8000"`
}
