package api

import "reeve"

// ApprovalList is a page of approvals.
type ApprovalList struct {
	Approvals []reeve.Approval `json:"approvals"`
	Next      string           `json:"next_cursor,omitempty"`
}

// DecisionRequest answers an approval.
type DecisionRequest struct {
	Decision string `json:"decision" enum:"approve,deny"`
	Comment  string `json:"comment,omitempty" maxLength:"2000"`
}

// Inbox is everything that waits for a person.
type Inbox struct {
	Approvals []reeve.Approval    `json:"approvals" doc:"Answer each with approve or deny"`
	Unknown   []reeve.Operation   `json:"unknown" doc:"Answer each with happened, retry or skip"`
	Proposals []reeve.Proposal    `json:"proposals" doc:"Accept or reject each, or its whole change set"`
	Items     []reeve.WaitingItem `json:"items" doc:"Items of automations that need attention: skip or reprocess each"`
	Questions []reeve.ScriptJob   `json:"questions" doc:"Questions of the planner: answer each"`
	More      bool                `json:"more,omitempty" doc:"There are more of a kind than are shown"`

	Hold *reeve.Hold `json:"hold,omitempty" doc:"Set while the server is held: nothing goes on until a person resumes it"`
}

// Waiting is how much of an inbox waits for a person.
func (i Inbox) Waiting() int {
	return len(i.Approvals) + len(i.Unknown) + len(i.Proposals) + len(i.Items) + len(i.Questions)
}
