package store

import (
	"context"
	"slices"
	"time"

	"reeve"
)

// Credential is a bearer token as it is kept: by its hash.
type Credential struct {
	reeve.AccessToken
	Hash   string
	Server bool // kept in a server's data directory, and valid in every workspace; no API sets it
}

const credentialColumns = `id, name, user_name, role, hash, created_at, expires_at, revoked_at, server`

func scanCredential(r scanner) (c Credential, err error) {
	defer wrapCorrupt("access_tokens", &c.ID, &err)
	var created, expires, revoked, server int64
	if err := r.Scan(&c.ID, &c.Name, &c.User, &c.Role, &c.Hash, &created, &expires, &revoked, &server); err != nil {
		return c, err
	}
	c.CreatedAt, c.ExpiresAt, c.RevokedAt, c.Server = reeve.FromMillis(created), optional(expires), optional(revoked),
		server != 0
	return c, first(known("user_name", c.User != ""), known("role", slices.Contains(reeve.Roles(), c.Role)))
}

// InsertCredential adds a token and the workspaces it is valid in.
func (t AgentsTx) InsertCredential(ctx context.Context, c Credential) error {
	if err := t.tx.exec(ctx, `INSERT INTO access_tokens (`+credentialColumns+
		`) VALUES ($1, $2, $3, $4, $5, $6, $7, 0, $8)`,
		c.ID, c.Name, c.User, string(c.Role), c.Hash, reeve.Millis(c.CreatedAt), orZero(c.ExpiresAt),
		flag(c.Server)); err != nil {
		return err
	}
	for _, w := range c.Workspaces {
		if err := t.tx.execOr(ctx, func(f Fault) error {
			if f.Kind == FaultForeign {
				return notFound("workspace", w)
			}
			return nil
		}, `INSERT INTO access_token_workspaces (token_id, workspace_id) VALUES ($1, $2) ON CONFLICT (token_id, workspace_id) DO NOTHING`, c.ID, w); err != nil {
			return err
		}
	}
	return nil
}

// MarkServerCredential makes a token a server's own. Only the start of a server does this, for the token in its data
// directory.
func (t AgentsTx) MarkServerCredential(ctx context.Context, id string) error {
	return t.tx.exec(ctx, `UPDATE access_tokens SET server = 1 WHERE id = $1`, id)
}

// GetCredential reads a token by its id; false means that there is none, or that its row cannot be read and is skipped:
// nobody gets in by it.
func (s Agents) GetCredential(ctx context.Context, id string) (Credential, bool, error) {
	c, ok, err := one(ctx, s.Snap, skipCorrupt(s.Snap, scanCredential, nil), `SELECT `+credentialColumns+
		` FROM access_tokens WHERE id = $1`, id)
	if err != nil || !ok {
		return c, ok, err
	}
	c.Workspaces, err = s.credentialWorkspaces(ctx, c)
	return c, true, err
}

// credentialWorkspaces lists where a token is valid: a server token is in every workspace.
func (s Agents) credentialWorkspaces(ctx context.Context, c Credential) ([]string, error) {
	if c.Server {
		return s.WorkspaceIDs(ctx)
	}
	return all(ctx, s.Snap, value[string],
		`SELECT workspace_id FROM access_token_workspaces WHERE token_id = $1 ORDER BY workspace_id`, c.ID)
}

// ListCredentials reads the tokens that are valid in a workspace.
func (s Agents) ListCredentials(ctx context.Context, workspace string) ([]Credential, error) {
	list, err := all(ctx, s.Snap, scanCredential, `SELECT `+credentialColumns+` FROM access_tokens
		WHERE server = 1 OR id IN (SELECT token_id FROM access_token_workspaces WHERE workspace_id = $1) ORDER BY id`, workspace)
	for i := range list {
		if err == nil {
			list[i].Workspaces, err = s.credentialWorkspaces(ctx, list[i])
		}
	}
	return list, err
}

// HasUser tells whether somebody has, or had, a token of a workspace.
func (s Agents) HasUser(ctx context.Context, workspace, user string) (bool, error) {
	_, ok, err := one(ctx, s.Snap, value[string], `SELECT id FROM access_tokens WHERE user_name = $2
		AND (server = 1 OR id IN (SELECT token_id FROM access_token_workspaces WHERE workspace_id = $1)) LIMIT 1`, workspace, user)
	return ok, err
}

// RevokeCredential ends a token.
func (t AgentsTx) RevokeCredential(ctx context.Context, id string, at time.Time) error {
	return t.tx.exec(ctx, `UPDATE access_tokens SET revoked_at = $2 WHERE id = $1 AND revoked_at = 0`, id,
		reeve.Millis(at))
}
