package store

import (
	"context"

	"reeve"
)

const selectBranch = `SELECT b.id, b.workspace_id, b.project_id, p.name, b.kind, b.subject, b.name, b.base, b.head,
	b.state, b.merged, b.merged_head, b.merged_by, b.merged_at, b.created_at, b.updated_at
	FROM branches b JOIN projects p ON p.id = b.project_id `

func scanBranch(r scanner) (b reeve.Branch, err error) {
	defer wrapCorrupt("branches", &b.ID, &err)
	var merged, created, updated int64
	err = r.Scan(&b.ID, &b.WorkspaceID, &b.ProjectID, &b.Project, &b.Kind, &b.Subject, &b.Name, &b.Base, &b.Head,
		&b.State, &b.Merged, &b.MergedHead, &b.MergedBy, &merged, &created, &updated)
	b.MergedAt, b.CreatedAt, b.UpdatedAt = timeOrNil(merged), reeve.FromMillis(created), reeve.FromMillis(updated)
	return b, err
}

// GetOrInsertBranch returns the branch of a subject in a project. It inserts the branch if it does not exist.
func (t AgentsTx) GetOrInsertBranch(ctx context.Context, b reeve.Branch) (reeve.Branch, error) {
	t.tx.Announce(b.WorkspaceID, TopicBranches, "", "")
	if err := t.tx.exec(ctx, `INSERT INTO branches (id, workspace_id, project_id, kind, subject, name, base, head,
		state, merged, merged_by, merged_at, created_at, updated_at)
		VALUES ($1, $2, $3, $4, $5, $6, '', '', $7, '', '', 0, $8, $8) ON CONFLICT (project_id, kind, subject)
		DO NOTHING`,
		b.ID, b.WorkspaceID, b.ProjectID, string(b.Kind), b.Subject, b.Name, string(reeve.BranchCreating),
		reeve.Millis(t.now)); err != nil {
		return b, err
	}
	b, _, err := t.FindBranch(ctx, b.ProjectID, b.Kind, b.Subject)
	return b, err
}

// FindBranch returns the branch of a subject in a project. It returns false if there is none.
func (s Agents) FindBranch(ctx context.Context, project string, kind reeve.BranchKind,
	subject string) (reeve.Branch, bool, error) {
	return queryOne(ctx, s.Snap, scanBranch, selectBranch+`WHERE b.project_id = $1 AND b.kind = $2 AND b.subject = $3`,
		project, string(kind), subject)
}

// UpdateBranch updates the position and state of a branch.
func (t AgentsTx) UpdateBranch(ctx context.Context, b reeve.Branch) error {
	t.tx.Announce(b.WorkspaceID, TopicBranches, "", "")
	return t.tx.exec(ctx, `UPDATE branches SET base = $2, head = $3, state = $4, merged = $5, merged_by = $6,
		merged_at = $7, updated_at = $8, merged_head = $9 WHERE id = $1`,
		b.ID, b.Base, b.Head, string(b.State), b.Merged, b.MergedBy, millisOrZero(b.MergedAt), reeve.Millis(t.now),
		b.MergedHead)
}

// branchVisible is the condition that a user sees a branch: it belongs to a conversation in which the user takes part,
// or to no conversation.
const branchVisible = `($2 = '' OR b.kind <> 'conversation' OR EXISTS (SELECT 1 FROM participants u
	WHERE u.conversation_id = b.subject AND u.kind = 'user' AND u.id = $2))`

// GetBranch returns a branch that a user sees, by its id or the id of its subject. If a conversation has branches in
// several projects, it returns the newest.
func (s Agents) GetBranch(ctx context.Context, workspace, user, id string) (reeve.Branch, error) {
	b, ok, err := queryOne(ctx, s.Snap, scanBranch, selectBranch+`WHERE b.workspace_id = $1
		AND `+branchVisible+` AND (b.id = $3 OR b.subject = $3)
		ORDER BY CASE WHEN b.id = $3 THEN 0 ELSE 1 END, b.id DESC LIMIT 1`, workspace, user, id)
	if err == nil && !ok {
		err = notFound("branch", id)
	}
	return b, err
}

// BranchFilter restricts a list of branches. Empty fields do not restrict it.
type BranchFilter struct {
	User    string // the user who must see the branch
	Project string // a project's id
	State   string
	Before  string // a branch's id
	Limit   int
}

// ListBranches returns a page of branches, newest first.
func (s Agents) ListBranches(ctx context.Context, workspace string, f BranchFilter) ([]reeve.Branch, error) {
	return queryAll(ctx, s.Snap, scanBranch, selectBranch+`WHERE b.workspace_id = $1 AND `+branchVisible+` AND ($3 = ''
		OR b.project_id = $3) AND ($4 = '' OR b.state = $4)
		AND ($5 = '' OR b.id < $5) ORDER BY b.id DESC LIMIT $6`, workspace, f.User, f.Project, f.State, f.Before,
		f.Limit)
}
