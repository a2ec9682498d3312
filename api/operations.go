package api

import "reeve"

// UndoPlanList lists what an undo of a run does, in its order: the latest change first.
type UndoPlanList struct {
	Steps []reeve.UndoPlan `json:"steps"`
}

// LookUpResult is what a tool found out about an operation of unknown outcome.
type LookUpResult struct {
	Outcome reeve.Outcome `json:"outcome" enum:"applied,not_applied,cannot_tell"`
	Found   string        `json:"found,omitempty" doc:"What the tool found"`
}

// OperationList is a page of operations.
type OperationList struct {
	Operations []reeve.Operation `json:"operations"`
	Next       string            `json:"next_cursor,omitempty"`
}

// ResultRequest delivers the outcome of an operation from outside. Exactly one field is set.
type ResultRequest struct {
	Content any    `json:"content,omitempty" doc:"Result for the agent"`
	Error   string `json:"error,omitempty" maxLength:"8000" doc:"Error message, instead of content"`
}
