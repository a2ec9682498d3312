package api

import "reeve"

// ApprovalList is a page of approvals.
type ApprovalList struct {
	Approvals []reeve.Approval `json:"approvals"`
	Next      string           `json:"next_cursor,omitempty"`
}

// DecisionRequest decides an approval.
type DecisionRequest struct {
	Decision string `json:"decision" enum:"approve,deny"`
	Comment  string `json:"comment,omitempty" maxLength:"2000"`
}

// Inbox lists everything that waits for a person.
type Inbox struct {
	Approvals []reeve.Approval    `json:"approvals" doc:"Approvals to approve or deny"`
	Unknown   []reeve.Operation   `json:"unknown" doc:"Operations to resolve with happened, retry or skip"`
	Proposals []reeve.Proposal    `json:"proposals" doc:"Proposals to accept or reject"`
	Items     []reeve.WaitingItem `json:"items" doc:"Items of automations to skip or reprocess"`
	Questions []reeve.ScriptJob   `json:"questions" doc:"Questions of script jobs to answer"`
	More      bool                `json:"more,omitempty" doc:"At least one list is incomplete"`

	Hold *reeve.Hold `json:"hold,omitempty" doc:"Set while the server is held and waits for a resume"`
}

// Waiting returns the number of entries in the inbox.
func (i Inbox) Waiting() int {
	return len(i.Approvals) + len(i.Unknown) + len(i.Proposals) + len(i.Items) + len(i.Questions)
}
