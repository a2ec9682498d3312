package api

import (
	"time"

	"reeve"
)

// Status is how a server is.
type Status struct {
	Version   string          `json:"version"`
	Engine    string          `json:"engine" doc:"sqlite or postgres"`
	Workspace reeve.Workspace `json:"workspace"`
	Role      reeve.Role      `json:"role" doc:"Of the token that asks"`
	User      string          `json:"user"`
	Waiting   int             `json:"waiting" doc:"How much waits for a person"`
	More      bool            `json:"more,omitempty" doc:"More than that waits: of each kind no more than the inbox shows is counted"`
	Broken    []string        `json:"broken,omitempty" doc:"Tools that cannot be called"`
	StartedAt time.Time       `json:"started_at"`
	Hold      *reeve.Hold     `json:"hold,omitempty" doc:"Set while the server is held: nothing goes on until a person resumes it"`
	Node      string          `json:"node" doc:"This node's id in the version vectors of what nodes share"`
}

// DoctorReport is the health of a server's parts.
type DoctorReport struct {
	Checks []reeve.PartHealth `json:"checks"`
}
