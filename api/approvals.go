package api

import (
	"encoding/json"
	"time"

	"reeve"
)

// ApprovalList is a page of approvals.
type ApprovalList struct {
	Approvals []reeve.Approval `json:"approvals"`
	Next      string           `json:"next_cursor,omitempty"`
}

// DecisionRequest decides an approval.
type DecisionRequest struct {
	Decision string `json:"decision" enum:"approve,deny"`
	Comment  string `json:"comment,omitempty" maxLength:"2000"`
	Shown    string `json:"shown_hash,omitempty" maxLength:"64" doc:"Hash of the card that the person saw. The decision is refused with STALE if the approval shows something else"`
}

// ApprovalCard is what a person needs to decide on a parked call.
type ApprovalCard struct {
	Approval  reeve.Approval `json:"approval"`
	AgentName string         `json:"agent_name"`
	RunID     string         `json:"run_id,omitempty"`
	Effect    reeve.Effect   `json:"effect" enum:"read,local,keyed,verifiable,unsafe" doc:"What happens after a crash; unsafe calls may end with an unknown outcome"`
	Tier      reeve.Tier     `json:"tier"`
	Spent     reeve.Amount   `json:"spent,omitzero" doc:"What the call has cost so far"`
	Hidden    bool           `json:"hidden,omitempty" doc:"Arguments or preview contain [REDACTED] where the caller may not see a secret"`
	Shown     string         `json:"shown_hash" doc:"Hash of what is shown; send it with the decision"`
	Replaced  string         `json:"replaced_by,omitempty" doc:"Approval that took its place: the newest of the same operation, or that of the call with other arguments"`
	Proposed  *ProposedArgs  `json:"proposed,omitempty" doc:"Set if a person changed the arguments: what was proposed at first"`
	Stale     string         `json:"stale,omitempty" doc:"Why an approval would run nothing, such as a changed file; preview the call again"`
	CanEdit   bool           `json:"can_edit,omitempty" doc:"A person may change the arguments"`
	CanUndo   bool           `json:"can_undo" doc:"The tool records how to undo the call"`
}

// ProposedArgs are the arguments that an agent proposed and a person changed.
type ProposedArgs struct {
	ApprovalID string `json:"approval_id"`
	Args       string `json:"args" doc:"As canonical JSON"`
}

// EditRequest changes the arguments of a parked call, or previews it again.
type EditRequest struct {
	Args    json.RawMessage `json:"args,omitempty" doc:"All arguments of the new call; absent to keep them and preview the call again"`
	Comment string          `json:"comment,omitempty" maxLength:"2000" doc:"Why; the agent receives it"`
	Shown   string          `json:"shown_hash,omitempty" maxLength:"64" doc:"Hash of the card that the person saw"`
}

// RevealedCall is a parked call with the secrets that an approval hides.
type RevealedCall struct {
	Args    string `json:"args" doc:"Exact arguments, as canonical JSON"`
	Preview string `json:"preview,omitempty" doc:"What the call would change"`
}

// BatchDecisionRequest decides several approvals.
type BatchDecisionRequest struct {
	Decisions []BatchDecision `json:"decisions" minItems:"1" maxItems:"200"`
}

// BatchDecision decides one approval of a batch.
type BatchDecision struct {
	ID string `json:"id" minLength:"1" maxLength:"128" doc:"Approval"`
	DecisionRequest
}

// BatchDecisionList has one result for each decision, in order. Some may have failed.
type BatchDecisionList struct {
	Results []BatchDecisionResult `json:"results"`
}

// BatchDecisionResult is the result of one decision: the approval or a failure.
type BatchDecisionResult struct {
	ID       string          `json:"id"`
	Approval *reeve.Approval `json:"approval,omitempty"`
	Failure  *BatchFailure   `json:"failure,omitempty"`
}

// BatchFailure says why one decision of a batch was refused.
type BatchFailure struct {
	Code    reeve.Code `json:"code"`
	Message string     `json:"message"`
	Hint    string     `json:"hint,omitempty"`
}

// Inbox lists everything that waits for a person.
type Inbox struct {
	Approvals []reeve.Approval    `json:"approvals" doc:"Approvals to approve or deny"`
	Unknown   []reeve.Operation   `json:"unknown" doc:"Operations to resolve with happened, retry or skip"`
	Proposals []reeve.Proposal    `json:"proposals" doc:"Proposals to accept or reject"`
	Items     []reeve.WaitingItem `json:"items" doc:"Items of automations to skip or reprocess"`
	Questions []reeve.ScriptJob   `json:"questions" doc:"Questions of script jobs to answer"`
	Schedules []reeve.Timer       `json:"schedules" doc:"Schedules that were disabled because they failed"`
	Budgets   []reeve.Budget      `json:"budgets" doc:"Exhausted budgets of agents and of the workspace"`
	Entries   []InboxEntry        `json:"entries" doc:"All of these in one form, the oldest first"`
	Count     InboxCount          `json:"count"`
	More      bool                `json:"more,omitempty" doc:"At least one list is incomplete"`

	Hold *reeve.Hold `json:"hold,omitempty" doc:"Set while the server is held and waits for a resume"`
}

// InboxEntry is one entry of the inbox.
type InboxEntry struct {
	Kind      string     `json:"kind" enum:"approval,unknown,proposal,item,question,schedule,budget"`
	ID        string     `json:"id" doc:"Id of the approval, operation, proposal, item, script job or schedule, or subject of the budget"`
	Title     string     `json:"title" doc:"Tool, title, question or name"`
	AgentID   string     `json:"agent_id,omitempty"`
	AgentName string     `json:"agent_name,omitempty"`
	SetID     string     `json:"set_id,omitempty" doc:"Proposals only: the change set"`
	Since     *time.Time `json:"since,omitempty" doc:"Absent for budgets"`
}

// InboxCount is the number of entries of the inbox by kind, up to 200 each.
type InboxCount struct {
	Approvals int  `json:"approvals"`
	Unknown   int  `json:"unknown"`
	Proposals int  `json:"proposals"`
	Items     int  `json:"items"`
	Questions int  `json:"questions"`
	Schedules int  `json:"schedules"`
	Budgets   int  `json:"budgets"`
	Total     int  `json:"total"`
	More      bool `json:"more,omitempty" doc:"There is more than counted"`
}

// Waiting returns the number of entries in the inbox.
func (i Inbox) Waiting() int {
	return len(i.Approvals) + len(i.Unknown) + len(i.Proposals) + len(i.Items) + len(i.Questions) + len(i.Schedules) +
		len(i.Budgets)
}
