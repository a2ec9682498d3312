package api

import "reeve"

// Problem is how the API reports an error (RFC 9457).
type Problem struct {
	Type      string        `json:"type" doc:"about:blank"`
	Title     string        `json:"title"`
	Status    int           `json:"status"`
	Detail    string        `json:"detail" doc:"What was wrong"`
	Code      reeve.Code    `json:"code" doc:"What kind of error this is"`
	Hint      string        `json:"hint,omitempty" doc:"What to do about it"`
	Errors    []reeve.Field `json:"errors,omitempty" doc:"Which inputs were wrong"`
	RequestID string        `json:"request_id"`
	CallID    string        `json:"call_id,omitempty" doc:"The refused call"`
}

// IntegerRange describes the integers that the API's own fields accept: those that a double holds exactly.
const IntegerRange = "from -9007199254740991 to 9007199254740991"
