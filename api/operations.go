package api

import "reeve"

// OperationList is a page of operations.
type OperationList struct {
	Operations []reeve.Operation `json:"operations"`
	Next       string            `json:"next_cursor,omitempty"`
}

// ResultRequest is the outcome of an operation, as it comes from outside: one of the two.
type ResultRequest struct {
	Content any    `json:"content,omitempty" doc:"What the agent is told"`
	Error   string `json:"error,omitempty" maxLength:"8000" doc:"Why it failed, instead of content"`
}
