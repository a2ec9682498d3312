package reeve

import "time"

// Hold is that a server does nothing by itself, and lets nobody change anything, until a person resumes it. A server
// that was restored from a backup starts held: what happened after the backup is not in its database, and would be done
// again.
type Hold struct {
	HeldAt time.Time  `json:"held_at"`
	Reason string     `json:"reason"`
	AsOf   *time.Time `json:"as_of,omitempty" doc:"The last sign of life of a server in this database: what happened later is not in it"`
}

// Err is what is refused while a server is held, and what to do.
func (h Hold) Err() error {
	return Errorf(Stopped, "the server is held: %s; nothing was done", h.Reason).
		Hintf("look at what would go on with reeve held, then let it go on with reeve resume")
}

// HeldKind is a kind of work that a held server would go on with.
type HeldKind string

// The kinds of held work.
const (
	HeldRun          HeldKind = "run"
	HeldWake         HeldKind = "wake"
	HeldSchedule     HeldKind = "schedule" // a timer with or without a goal
	HeldOperation    HeldKind = "operation"
	HeldApproval     HeldKind = "approval"
	HeldAutomation   HeldKind = "automation"
	HeldScriptJob    HeldKind = "script_job"
	HeldNotification HeldKind = "notification"
)

// HeldWork is one thing that a held server would go on with.
type HeldWork struct {
	Kind        HeldKind   `json:"kind" enum:"run,wake,schedule,operation,approval,automation,script_job,notification"`
	ID          string     `json:"id" doc:"Of a wake its run key, of an automation its agent"`
	WorkspaceID string     `json:"workspace_id"`
	Agent       string     `json:"agent,omitempty" doc:"The agent's name"`
	What        string     `json:"what" doc:"Its state, and what it is about"`
	Then        string     `json:"then" doc:"What becomes of it when the server is resumed"`
	At          *time.Time `json:"at,omitempty" doc:"When it began, or is due"`
	Overdue     bool       `json:"overdue,omitempty" doc:"Its time has come: it would go on at once"`
}

// Skippable tells whether a resume can leave it out.
func (w HeldWork) Skippable() bool {
	return w.Kind == HeldRun || w.Kind == HeldWake || w.Kind == HeldSchedule && w.Overdue
}

// IsUncertainAfterRestore tells whether nobody can say if an operation of a restored database has happened since the
// backup, and asking its tool would not tell either. Local effects are in the database itself, and so have not.
func (o Operation) IsUncertainAfterRestore() bool {
	switch {
	case o.Effect == Local || o.Effect == Read || o.IsAwaited():
		return false
	case o.State == Prepared:
		return true
	}
	return o.State == Dispatched && o.Effect != Verifiable
}
