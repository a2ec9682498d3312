package api

import "reeve"

// Problem is the body of an error response (RFC 9457).
type Problem struct {
	Type      string        `json:"type" doc:"about:blank"`
	Title     string        `json:"title"`
	Status    int           `json:"status"`
	Detail    string        `json:"detail" doc:"What is wrong"`
	Code      reeve.Code    `json:"code" doc:"Error code"`
	Hint      string        `json:"hint,omitempty" doc:"What to do"`
	Errors    []reeve.Field `json:"errors,omitempty" doc:"Invalid inputs"`
	RequestID string        `json:"request_id"`
	CallID    string        `json:"call_id,omitempty" doc:"Id of the refused call"`
}

// IntegerRange describes the integers that the API's own fields accept: those that a double holds exactly.
const IntegerRange = "from -9007199254740991 to 9007199254740991"
