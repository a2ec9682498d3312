package api

// The types of events in the stream of changes.
const (
	EventConnected = "connected" // the first event of a new stream
	EventChange    = "change"    // its data is a ChangeEvent
	EventReset     = "reset"     // the client may have missed changes and must read everything again
)

// ChangeEvent says that something has changed. It contains no data; the client reads what it shows again.
type ChangeEvent struct {
	Topic string `json:"topic" doc:"What has changed, such as approvals, runs or inbox"`
	ID    string `json:"id,omitempty" doc:"Id of the entry. Absent: any entry of the topic"`
	Run   string `json:"run,omitempty" doc:"Id of the run that the entry belongs to"`
}
