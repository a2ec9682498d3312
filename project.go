package reeve

import "time"

// Project is a repository on the server's disk that agents may work on, each conversation on a branch of its own.
type Project struct {
	ID            string    `json:"id"`
	WorkspaceID   string    `json:"workspace_id"`
	Name          string    `json:"name" doc:"Unique in the workspace; an agent's settings for shell_exec name it"`
	Path          string    `json:"path,omitempty" doc:"Where the repository is on the server's disk; shown to owners"`
	DefaultBranch string    `json:"default_branch" doc:"What branches begin at and are merged into"`
	CreatedBy     string    `json:"created_by,omitempty"`
	CreatedAt     time.Time `json:"created_at"`
}

// Branch is what one conversation, automation or agent works on in a project.
type Branch struct {
	ID          string      `json:"id"`
	WorkspaceID string      `json:"workspace_id"`
	ProjectID   string      `json:"project_id"`
	Project     string      `json:"project" doc:"The project's name"`
	Kind        BranchKind  `json:"kind" doc:"Whose it is"`
	Subject     string      `json:"subject" doc:"The conversation's id, or the agent's"`
	Name        string      `json:"name" doc:"What git calls it"`
	Base        string      `json:"base" doc:"The commit it was begun at"`
	Head        string      `json:"head" doc:"The last commit that was brought into the repository"`
	State       BranchState `json:"state"`
	Merged      string      `json:"merged,omitempty" doc:"The commit of its last merge"`
	MergedBy    string      `json:"merged_by,omitempty"`
	MergedAt    *time.Time  `json:"merged_at,omitempty"`
	CreatedAt   time.Time   `json:"created_at"`
	UpdatedAt   time.Time   `json:"updated_at"`
}

// BranchKind says whose a branch is.
type BranchKind string

// The kinds of branch.
const (
	ConversationBranch BranchKind = "conversation" // reeve/conv-<id>
	AutomationBranch   BranchKind = "automation"   // reeve/auto-<id>, of an automation and whoever it calls
	AgentBranch        BranchKind = "agent"        // reeve/agent-<id>, of an agent that works by itself
)

// BranchState is where a branch stands.
type BranchState string

// The states of a branch. One that is being made or discarded when the server dies is finished at the next need.
const (
	BranchMaking     BranchState = "making"
	BranchReady      BranchState = "ready"
	BranchDiscarding BranchState = "discarding"
	BranchDiscarded  BranchState = "discarded" // the next command begins it anew
)

// BranchStates lists the states of a branch.
func BranchStates() []BranchState {
	return []BranchState{BranchMaking, BranchReady, BranchDiscarding, BranchDiscarded}
}

// ProjectRequest makes a project.
type ProjectRequest struct {
	Name          string `json:"name" minLength:"1" maxLength:"64" pattern:"^[a-zA-Z0-9][a-zA-Z0-9_.-]*$"`
	Path          string `json:"path" minLength:"1" maxLength:"4096" doc:"The repository's folder on the server's disk: an absolute path"`
	DefaultBranch string `json:"default_branch,omitempty" maxLength:"200" doc:"Default: the branch that the repository has checked out"`
}

// BranchDiff is what a branch would change.
type BranchDiff struct {
	Branch
	Into      string       `json:"into" doc:"The default branch's commit"`
	Files     []FileChange `json:"files"`
	Patch     string       `json:"patch"`
	Truncated bool         `json:"truncated,omitempty" doc:"There is more than is shown"`
}

// FileChange is one file of a diff.
type FileChange struct {
	Path    string `json:"path"`
	Added   int    `json:"added" doc:"Lines; 0 for what is no text"`
	Removed int    `json:"removed"`
	Binary  bool   `json:"binary,omitempty"`
}

// BranchLog is the commits that a branch has and the default branch has not, newest first.
type BranchLog struct {
	Branch
	Commits []Commit `json:"commits"`
}

// Commit is one commit of a branch.
type Commit struct {
	ID      string    `json:"id"`
	Author  string    `json:"author"`
	At      time.Time `json:"at"`
	Message string    `json:"message"`
}

// MergeResult is what a merge came to.
type MergeResult struct {
	Branch
	Into     string `json:"into" doc:"The branch that was merged into"`
	Commit   string `json:"commit,omitempty" doc:"The merge; empty when there was nothing to merge"`
	UpToDate bool   `json:"up_to_date,omitempty" doc:"The default branch had all of it already"`
}
