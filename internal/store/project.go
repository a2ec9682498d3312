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

// InsertProject adds a project.
func (t AgentsTx) InsertProject(ctx context.Context, p reeve.Project) error {
	n, err := t.tx.affect(ctx, `INSERT INTO projects (`+projectColumns+
		`) VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (workspace_id, name) DO NOTHING`,
		p.ID, p.WorkspaceID, p.Name, p.Path, p.DefaultBranch, p.CreatedBy, reeve.Millis(t.now))
	if err == nil && n == 0 {
		err = reeve.Errorf(reeve.AlreadyExists, "a project named %q is there already", p.Name)
	}
	return err
}

// GetProject reads a project of a workspace, by id or by name.
func (s Agents) GetProject(ctx context.Context, workspace, id string) (reeve.Project, error) {
	p, ok, err := one(ctx, s.Snap, scanProject, `SELECT `+projectColumns+` FROM projects WHERE workspace_id = $1 AND (id = $2 OR name = $2)
		ORDER BY CASE WHEN id = $2 THEN 0 ELSE 1 END LIMIT 1`, workspace, id)
	if err == nil && !ok {
		err = notFound("project", id)
	}
	return p, err
}

// ListProjects reads the projects of a workspace, ordered by name.
func (s Agents) ListProjects(ctx context.Context, workspace string) ([]reeve.Project, error) {
	return all(ctx, s.Snap, scanProject, `SELECT `+projectColumns+
		` FROM projects WHERE workspace_id = $1 ORDER BY name`, workspace)
}

// DeleteProject removes a project on which nobody works. What became of its branches goes with it.
func (t AgentsTx) DeleteProject(ctx context.Context, p reeve.Project) error {
	name, busy, err := one(ctx, t.Snap, value[string],
		`SELECT name FROM branches WHERE project_id = $1 AND state <> $2 LIMIT 1`, p.ID, string(reeve.BranchDiscarded))
	if err != nil {
		return err
	}
	if busy {
		return reeve.Errorf(reeve.Conflict, "the project has branches, such as %s", name).
			Hintf("discard them first; what was merged stays merged")
	}
	if err := t.tx.exec(ctx, `DELETE FROM branches WHERE project_id = $1`, p.ID); err != nil {
		return err
	}
	return t.tx.exec(ctx, `DELETE FROM projects WHERE id = $1`, p.ID)
}
