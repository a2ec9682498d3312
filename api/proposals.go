package api

import "reeve"

// ProposalList is a page of proposals.
type ProposalList struct {
	Proposals []reeve.Proposal `json:"proposals"`
	Next      string           `json:"next_cursor,omitempty"`
}

// ChangeSetList is a page of change sets.
type ChangeSetList struct {
	ChangeSets []reeve.ChangeSet `json:"change_sets"`
	Next       string            `json:"next_cursor,omitempty"`
}

// CommentRequest accepts, rejects or reopens a proposal, with a comment.
type CommentRequest struct {
	Comment string `json:"comment,omitempty" maxLength:"2000" doc:"Reason, stored with the decision"`
}

// SetDecisionRequest decides several items of a change set at once.
type SetDecisionRequest struct {
	Items   []string `json:"items,omitzero" required:"false" maxItems:"500" doc:"Item ids. Default: all pending items"`
	Comment string   `json:"comment,omitempty" maxLength:"2000" doc:"Reason, stored with each decision"`
}
