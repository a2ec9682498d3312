package reeve

import "encoding/json"

// AskedRequest is a request to a model that a run made, with what it left out.
type AskedRequest struct {
	Number  int             `json:"number" doc:"Number of the model's answer, from 1"`
	Request json.RawMessage `json:"request" doc:"The request: model, system, messages and tools. The bytes of media are left out"`
	LeftOut []Omission      `json:"left_out" doc:"What the model was not shown, and why"`
}

// Omission is something that a model was not shown, or was shown shortened.
type Omission struct {
	What string `json:"what" enum:"turn,turns,run,runs,notes,state,summary" doc:"What was left out or shortened"`
	ID   string `json:"id,omitempty" doc:"The turn, run or note; of several turns or runs the newest, of notes the first"`
	Why  string `json:"why"`
}
