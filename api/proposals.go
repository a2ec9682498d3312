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

// CommentRequest answers a proposal.
type CommentRequest struct {
	Comment string `json:"comment,omitempty" maxLength:"2000" doc:"Why; kept with the answer"`
}

// SetDecisionRequest answers many items of a change set at once.
type SetDecisionRequest struct {
	Items   []string `json:"items,omitzero" required:"false" maxItems:"500" doc:"Ids of the set's items; all that are pending if left out; an empty list is none"`
	Comment string   `json:"comment,omitempty" maxLength:"2000" doc:"Why; kept with each answer"`
}
