package store

import (
	"context"

	"reeve"
)

const projectColumns = `id, workspace_id, name, path, default_branch, created_by, created_at`

func scanProject(r scanner) (p reeve.Project, err error) {
	defer wrapCorrupt("projects", &p.ID, &err)
	var created int64
	err = r.Scan(&p.ID, &p.WorkspaceID, &p.Name, &p.Path, &p.DefaultBranch, &p.CreatedBy, &created)
	p.CreatedAt = reeve.FromMillis(created)
	return p, err
}

// InsertProject inserts a project. It fails if the workspace has a project with the same name.
func (t AgentsTx) InsertProject(ctx context.Context, p reeve.Project) error {
	n, err := t.tx.execCount(ctx, `INSERT INTO projects (`+projectColumns+
		`) VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (workspace_id, name) DO NOTHING`,
		p.ID, p.WorkspaceID, p.Name, p.Path, p.DefaultBranch, p.CreatedBy, reeve.Millis(t.now))
	if err == nil && n == 0 {
		err = reeve.Errorf(reeve.AlreadyExists, "a project named %q already exists", p.Name)
	}
	return err
}

// GetProject returns a project of a workspace, by id or by name.
func (s Agents) GetProject(ctx context.Context, workspace, id string) (reeve.Project, error) {
	p, ok, err := queryOne(ctx, s.Snap, scanProject, `SELECT `+projectColumns+` FROM projects WHERE workspace_id = $1
		AND (id = $2 OR name = $2)
		ORDER BY CASE WHEN id = $2 THEN 0 ELSE 1 END LIMIT 1`, workspace, id)
	if err == nil && !ok {
		err = notFound("project", id)
	}
	return p, err
}

// ListProjects returns the projects of a workspace, ordered by name.
func (s Agents) ListProjects(ctx context.Context, workspace string) ([]reeve.Project, error) {
	return queryAll(ctx, s.Snap, scanProject, `SELECT `+projectColumns+
		` FROM projects WHERE workspace_id = $1 ORDER BY name`, workspace)
}

// DeleteProject deletes a project and the records of its discarded branches. It fails if the project has other
// branches.
func (t AgentsTx) DeleteProject(ctx context.Context, p reeve.Project) error {
	name, busy, err := queryOne(ctx, t.Snap, scanValue[string],
		`SELECT name FROM branches WHERE project_id = $1 AND state <> $2 LIMIT 1`, p.ID, string(reeve.BranchDiscarded))
	if err != nil {
		return err
	}
	if busy {
		return reeve.Errorf(reeve.Conflict, "the project has branches, such as %s", name).
			Hintf("discard the branches first; merged changes stay merged")
	}
	if err := t.tx.exec(ctx, `DELETE FROM branches WHERE project_id = $1`, p.ID); err != nil {
		return err
	}
	return t.tx.exec(ctx, `DELETE FROM projects WHERE id = $1`, p.ID)
}
