package store

import (
	"context"

	"reeve"
)

const selectBranch = `SELECT b.id, b.workspace_id, b.project_id, p.name, b.kind, b.subject, b.name, b.base, b.head, b.state, b.merged, b.merged_by, b.merged_at, b.created_at, b.updated_at
	FROM branches b JOIN projects p ON p.id = b.project_id `

func scanBranch(r scanner) (b reeve.Branch, err error) {
	defer wrapCorrupt("branches", &b.ID, &err)
	var merged, created, updated int64
	err = r.Scan(&b.ID, &b.WorkspaceID, &b.ProjectID, &b.Project, &b.Kind, &b.Subject, &b.Name, &b.Base, &b.Head,
		&b.State, &b.Merged, &b.MergedBy, &merged, &created, &updated)
	b.MergedAt, b.CreatedAt, b.UpdatedAt = optional(merged), reeve.FromMillis(created), reeve.FromMillis(updated)
	return b, err
}

// OpenBranch gives the branch of a subject in a project, written if there is none.
func (t AgentsTx) OpenBranch(ctx context.Context, b reeve.Branch) (reeve.Branch, error) {
	if err := t.tx.exec(ctx, `INSERT INTO branches (id, workspace_id, project_id, kind, subject, name, base, head, state, merged, merged_by, merged_at, created_at, updated_at)
		VALUES ($1, $2, $3, $4, $5, $6, '', '', $7, '', '', 0, $8, $8) ON CONFLICT (project_id, kind, subject) DO NOTHING`,
		b.ID, b.WorkspaceID, b.ProjectID, string(b.Kind), b.Subject, b.Name, string(reeve.BranchMaking),
		reeve.Millis(t.now)); err != nil {
		return b, err
	}
	b, _, err := t.FindBranch(ctx, b.ProjectID, b.Kind, b.Subject)
	return b, err
}

// FindBranch gives the branch of a subject in a project, if there is one.
func (s Agents) FindBranch(ctx context.Context, project string, kind reeve.BranchKind,
	subject string) (reeve.Branch, bool, error) {
	return one(ctx, s.Snap, scanBranch, selectBranch+`WHERE b.project_id = $1 AND b.kind = $2 AND b.subject = $3`,
		project, string(kind), subject)
}

// UpdateBranch writes where a branch stands.
func (t AgentsTx) UpdateBranch(ctx context.Context, b reeve.Branch) error {
	return t.tx.exec(ctx, `UPDATE branches SET base = $2, head = $3, state = $4, merged = $5, merged_by = $6, merged_at = $7, updated_at = $8 WHERE id = $1`,
		b.ID, b.Base, b.Head, string(b.State), b.Merged, b.MergedBy, orZero(b.MergedAt), reeve.Millis(t.now))
}

// seen is the condition under which a user sees a branch: one of a conversation in which they take part, or nobody's in
// particular.
const seen = `($2 = '' OR b.kind <> 'conversation' OR EXISTS (SELECT 1 FROM participants u WHERE u.conversation_id = b.subject AND u.kind = 'user' AND u.id = $2))`

// GetBranch reads a branch that a user sees, by its id or the id of whose it is. Of one conversation's in several
// projects it gives the newest.
func (s Agents) GetBranch(ctx context.Context, workspace, user, id string) (reeve.Branch, error) {
	b, ok, err := one(ctx, s.Snap, scanBranch, selectBranch+`WHERE b.workspace_id = $1 AND `+seen+` AND (b.id = $3 OR b.subject = $3)
		ORDER BY CASE WHEN b.id = $3 THEN 0 ELSE 1 END, b.id DESC LIMIT 1`, workspace, user, id)
	if err == nil && !ok {
		err = notFound("branch", id)
	}
	return b, err
}

// BranchFilter narrows a list of branches. Empty fields do not.
type BranchFilter struct {
	User    string // who must see it
	Project string // a project's id
	State   string
	Before  string // a branch's id
	Limit   int
}

// ListBranches reads a page of branches, newest first.
func (s Agents) ListBranches(ctx context.Context, workspace string, f BranchFilter) ([]reeve.Branch, error) {
	return all(ctx, s.Snap, scanBranch, selectBranch+`WHERE b.workspace_id = $1 AND `+seen+` AND ($3 = '' OR b.project_id = $3) AND ($4 = '' OR b.state = $4)
		AND ($5 = '' OR b.id < $5) ORDER BY b.id DESC LIMIT $6`, workspace, f.User, f.Project, f.State, f.Before, f.Limit)
}
