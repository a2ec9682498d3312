package api

import (
	"time"

	"reeve"
)

// Status is the status of a server.
type Status struct {
	Version   string          `json:"version"`
	Engine    string          `json:"engine" doc:"sqlite or postgres"`
	Workspace reeve.Workspace `json:"workspace"`
	Role      reeve.Role      `json:"role" doc:"Role of your token"`
	User      string          `json:"user"`
	Waiting   int             `json:"waiting" doc:"Number of entries in the inbox"`
	More      bool            `json:"more,omitempty" doc:"More entries wait than are counted"`
	Broken    []string        `json:"broken,omitempty" doc:"Tools that cannot be called"`
	StartedAt time.Time       `json:"started_at"`
	Hold      *reeve.Hold     `json:"hold,omitempty" doc:"Set while the server is held and waits for a resume"`
	Node      string          `json:"node" doc:"Id of this node in version vectors"`
}

// DoctorReport is the health of a server's parts.
type DoctorReport struct {
	Checks []reeve.PartHealth `json:"checks"`
}
