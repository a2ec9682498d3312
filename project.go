package reeve

import "time"

// Project is a repository on the server's disk that agents may work on. Each conversation has its own branch.
type Project struct {
	ID            string    `json:"id"`
	WorkspaceID   string    `json:"workspace_id"`
	Name          string    `json:"name" doc:"Unique in the workspace; used in settings of shell_exec"`
	Path          string    `json:"path,omitempty" doc:"Path of the repository; shown to owners only"`
	DefaultBranch string    `json:"default_branch" doc:"Branch that others start from and merge into"`
	CreatedBy     string    `json:"created_by,omitempty"`
	CreatedAt     time.Time `json:"created_at"`
}

// Branch is the git branch of one conversation, automation or agent in a project.
type Branch struct {
	ID          string      `json:"id"`
	WorkspaceID string      `json:"workspace_id"`
	ProjectID   string      `json:"project_id"`
	Project     string      `json:"project" doc:"Name of the project"`
	Kind        BranchKind  `json:"kind" doc:"Kind of the branch's owner"`
	Subject     string      `json:"subject" doc:"Id of the conversation or the agent"`
	Name        string      `json:"name" doc:"Name in git"`
	Base        string      `json:"base" doc:"Commit that it started from"`
	Head        string      `json:"head" doc:"Last commit of the branch that is in the project's repository"`
	State       BranchState `json:"state"`
	Merged      string      `json:"merged,omitempty" doc:"Commit of the last merge"`
	MergedHead  string      `json:"merged_head,omitempty" doc:"Head at the last merge; equal to head if nothing was added since"`
	MergedBy    string      `json:"merged_by,omitempty"`
	MergedAt    *time.Time  `json:"merged_at,omitempty"`
	CreatedAt   time.Time   `json:"created_at"`
	UpdatedAt   time.Time   `json:"updated_at"`
}

// BranchKind is the kind of a branch's owner.
type BranchKind string

// The kinds of branch.
const (
	ConversationBranch BranchKind = "conversation" // reeve/conv-<id>
	AutomationBranch   BranchKind = "automation"   // reeve/auto-<id>, of an automation and the agents it calls
	AgentBranch        BranchKind = "agent"        // reeve/agent-<id>, of an agent outside conversations
)

// BranchState is the state of a branch.
type BranchState string

// The states of a branch. If the server crashes while it creates or discards a branch, the next use completes it.
const (
	BranchCreating   BranchState = "creating"
	BranchReady      BranchState = "ready"
	BranchDiscarding BranchState = "discarding"
	BranchDiscarded  BranchState = "discarded" // the next command creates it again
)

// BranchStates lists the states of a branch.
func BranchStates() []BranchState {
	return []BranchState{BranchCreating, BranchReady, BranchDiscarding, BranchDiscarded}
}

// ProjectRequest creates a project.
type ProjectRequest struct {
	Name          string `json:"name" minLength:"1" maxLength:"64" pattern:"^[a-zA-Z0-9][a-zA-Z0-9_.-]*$"`
	Path          string `json:"path" minLength:"1" maxLength:"4096" doc:"Absolute path of the repository on the server"`
	DefaultBranch string `json:"default_branch,omitempty" maxLength:"200" doc:"Default: the branch that is checked out"`
}

// BranchDiff is the difference between a branch and the default branch.
type BranchDiff struct {
	Branch
	Into      string       `json:"into" doc:"Commit of the default branch"`
	Files     []FileChange `json:"files"`
	Patch     string       `json:"patch"`
	Truncated bool         `json:"truncated,omitempty" doc:"The patch is incomplete"`
}

// FileChange is one changed file of a diff.
type FileChange struct {
	Path    string `json:"path"`
	Added   int    `json:"added" doc:"Lines added; 0 for a binary file"`
	Removed int    `json:"removed"`
	Binary  bool   `json:"binary,omitempty"`
}

// BranchLog lists the commits of a branch that are not in the default branch, newest first.
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

// MergeResult is the result of a merge.
type MergeResult struct {
	Branch
	Into     string `json:"into" doc:"Branch that was merged into"`
	Commit   string `json:"commit,omitempty" doc:"Merge commit; empty if there was nothing to merge"`
	UpToDate bool   `json:"up_to_date,omitempty" doc:"The default branch already had all commits"`
}
