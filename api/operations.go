package api

import "reeve"

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
