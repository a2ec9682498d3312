package reeve

import "time"

// Hold is the state of a server that starts no work and accepts no changes until a person resumes it. A server that was
// restored from a backup starts held, because its database lacks everything that happened after the backup, and the
// server would do it again.
type Hold struct {
	HeldAt time.Time  `json:"held_at"`
	Reason string     `json:"reason"`
	AsOf   *time.Time `json:"as_of,omitempty" doc:"Last heartbeat in the database; later events are missing"`
}

// Err returns the error for requests that a held server refuses.
func (h Hold) Err() error {
	return Errorf(Stopped, "the server is held: %s; nothing was done", h.Reason).
		Hintf("list the waiting work with reeve held, then continue with reeve resume")
}

// HeldKind is a kind of work that a held server would continue.
type HeldKind string

// The kinds of held work.
const (
	HeldRun          HeldKind = "run"
	HeldWake         HeldKind = "wake"
	HeldSchedule     HeldKind = "schedule" // any timer; most have a goal
	HeldOperation    HeldKind = "operation"
	HeldApproval     HeldKind = "approval"
	HeldAutomation   HeldKind = "automation"
	HeldScriptJob    HeldKind = "script_job"
	HeldNotification HeldKind = "notification"
)

// HeldWork is one piece of work that a held server would continue.
type HeldWork struct {
	Kind        HeldKind   `json:"kind" enum:"run,wake,schedule,operation,approval,automation,script_job,notification"`
	ID          string     `json:"id" doc:"Id; of a wake the run key, of an automation the agent id"`
	WorkspaceID string     `json:"workspace_id"`
	Agent       string     `json:"agent,omitempty" doc:"Name of the agent"`
	Description string     `json:"description" doc:"State and subject"`
	OnResume    string     `json:"on_resume" doc:"What happens to it on resume"`
	At          *time.Time `json:"at,omitempty" doc:"When it started or is due"`
	Overdue     bool       `json:"overdue,omitempty" doc:"It is due and would continue at once"`
}

// IsSkippable reports whether a resume can skip the work.
func (w HeldWork) IsSkippable() bool {
	return w.Kind == HeldRun || w.Kind == HeldWake || w.Kind == HeldSchedule && w.Overdue
}

// IsUncertainAfterRestore reports whether the operation may have happened after the backup that the database was
// restored from, and the tool cannot look it up. Local effects are in the database itself, so they have not happened.
func (o Operation) IsUncertainAfterRestore() bool {
	switch {
	case o.Effect == Local || o.Effect == Read || o.IsAwaited():
		return false
	case o.State == Prepared:
		return true
	}
	return o.State == Dispatched && o.Effect != Verifiable
}
