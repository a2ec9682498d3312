package api

import "reeve"

// SessionFileList is a page of the files of a session.
type SessionFileList struct {
	Files []reeve.SessionFile `json:"files"`
	Next  string              `json:"next_cursor,omitempty"`
}

// SessionFileContent is a file of a session with what is in it.
type SessionFileContent struct {
	reeve.SessionFile
	Content string `json:"content" doc:"Without secrets"`
}

// VersionRequest names a version.
type VersionRequest struct {
	Version string `json:"version" minLength:"3" maxLength:"20" doc:"Such as 1.0"`
}

// ItemRequest names an item.
type ItemRequest struct {
	Item   string `json:"item" minLength:"1" maxLength:"1024"`
	Reason string `json:"reason,omitempty" maxLength:"1000"`
}

// AutomationList is a page of automations.
type AutomationList struct {
	Automations []reeve.Automation `json:"automations"`
	Next        string             `json:"next_cursor,omitempty"`
}

// ScriptVersionList is an automation's versions, newest first.
type ScriptVersionList struct {
	Versions []reeve.ScriptVersion `json:"versions"`
	Active   string                `json:"active,omitempty"`
}

// RunFrameType says what a frame of a run means.
type RunFrameType string

// The types.
const (
	RunProgress RunFrameType = "progress" // it has come further, or stands somewhere else
	RunComplete RunFrameType = "complete" // it has ended; the last frame, with the log
)

// RunFrame is what somebody who follows a run is told: where it stands now.
type RunFrame struct {
	Type RunFrameType `json:"type"`
	reeve.AutomationRun
}

// AutomationRunList is a page of an automation's runs, newest first.
type AutomationRunList struct {
	Runs []reeve.AutomationRun `json:"runs"`
	Next string                `json:"next_cursor,omitempty"`
}

// ItemHistory is an item and all attempts at it.
type ItemHistory struct {
	reeve.Item
	Attempts []reeve.ItemAttempt `json:"attempts" doc:"Oldest first"`
}

// Plan is a page of what a dry run would have done, in order.
type Plan struct {
	RunID   string              `json:"run_id"`
	AgentID string              `json:"agent_id"`
	Calls   []reeve.PlannedCall `json:"calls"`
	Next    string              `json:"next_cursor,omitempty"`
}

// ScriptJobList is an automation's script jobs, newest first.
type ScriptJobList struct {
	ScriptJobs []reeve.ScriptJob `json:"script_jobs"`
}

// AnswerRequest answers a script job's question.
type AnswerRequest struct {
	Answer string `json:"answer" minLength:"1" maxLength:"8000"`
}
