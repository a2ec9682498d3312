package store

import (
	"cmp"
	"context"
	"slices"
	"time"

	"reeve"
)

// Credential is a stored access token. Only its hash is stored.
type Credential struct {
	reeve.AccessToken
	Hash   string
	Parent string // only for sessions and links: id of the token that created them; they end with it
	Server bool   // the token in the server's data directory, valid in every workspace; no API sets it
}

const credentialColumns = `id, name, user_name, role, hash, created_at, expires_at, revoked_at, server, kind,
	parent_id`

func scanCredential(r scanner) (c Credential, err error) {
	defer wrapCorrupt("access_tokens", &c.ID, &err)
	var created, expires, revoked, server int64
	if err := r.Scan(&c.ID, &c.Name, &c.User, &c.Role, &c.Hash, &created, &expires, &revoked, &server,
		&c.Kind, &c.Parent); err != nil {
		return c, err
	}
	c.CreatedAt, c.ExpiresAt, c.RevokedAt, c.Server = reeve.FromMillis(created), timeOrNil(expires), timeOrNil(revoked),
		server != 0
	isKind := c.Kind == reeve.BearerToken || c.Kind == reeve.ConsoleSession || c.Kind == reeve.ConsoleLink
	return c, firstError(checkKnown("user_name", c.User != ""), checkKnown("role", slices.Contains(reeve.Roles(),
		c.Role)), checkKnown("kind", isKind))
}

// InsertCredential inserts a token, session or link and the workspaces in which it is valid.
func (t AgentsTx) InsertCredential(ctx context.Context, c Credential) error {
	t.tx.Announce("", TopicTokens, "", "")
	if err := t.tx.exec(ctx, `INSERT INTO access_tokens (`+credentialColumns+
		`) VALUES ($1, $2, $3, $4, $5, $6, $7, 0, $8, $9, $10)`,
		c.ID, c.Name, c.User, string(c.Role), c.Hash, reeve.Millis(c.CreatedAt), millisOrZero(c.ExpiresAt),
		boolToInt(c.Server), string(cmp.Or(c.Kind, reeve.BearerToken)), c.Parent); err != nil {
		return err
	}
	for _, w := range c.Workspaces {
		if err := t.tx.execMapFault(ctx, func(f Fault) error {
			if f.Kind == FaultForeign {
				return notFound("workspace", w)
			}
			return nil
		}, `INSERT INTO access_token_workspaces (token_id, workspace_id) VALUES ($1, $2) ON CONFLICT (token_id,
			workspace_id) DO NOTHING`, c.ID, w); err != nil {
			return err
		}
	}
	return nil
}

// MarkServerCredential makes a token valid in every workspace. Only the server does this at its start, for the token in
// its data directory.
func (t AgentsTx) MarkServerCredential(ctx context.Context, id string) error {
	return t.tx.exec(ctx, `UPDATE access_tokens SET server = 1 WHERE id = $1`, id)
}

// GetCredential returns a token by its id. It returns false if there is none or its row is corrupt, so a corrupt token
// gives no access.
func (s Agents) GetCredential(ctx context.Context, id string) (Credential, bool, error) {
	c, ok, err := queryOne(ctx, s.Snap, skipCorrupt(s.Snap, scanCredential, nil), `SELECT `+credentialColumns+
		` FROM access_tokens WHERE id = $1`, id)
	if err != nil || !ok {
		return c, ok, err
	}
	c.Workspaces, err = s.credentialWorkspaces(ctx, c)
	return c, true, err
}

// credentialWorkspaces returns the workspaces in which a token is valid.
func (s Agents) credentialWorkspaces(ctx context.Context, c Credential) ([]string, error) {
	if c.Server {
		return s.WorkspaceIDs(ctx)
	}
	return queryAll(ctx, s.Snap, scanValue[string],
		`SELECT workspace_id FROM access_token_workspaces WHERE token_id = $1 ORDER BY workspace_id`, c.ID)
}

// ListCredentials returns the bearer tokens and console sessions that are valid in a workspace.
func (s Agents) ListCredentials(ctx context.Context, workspace string) ([]Credential, error) {
	list, err := queryAll(ctx, s.Snap, scanCredential, `SELECT `+credentialColumns+` FROM access_tokens
		WHERE kind <> 'link' AND (server = 1 OR id IN (SELECT token_id FROM access_token_workspaces
		WHERE workspace_id = $1)) ORDER BY id`,
		workspace)
	for i := range list {
		if err == nil {
			list[i].Workspaces, err = s.credentialWorkspaces(ctx, list[i])
		}
	}
	return list, err
}

// HasUser reports whether a user has, or had, a token that is valid in the workspace.
func (s Agents) HasUser(ctx context.Context, workspace, user string) (bool, error) {
	_, ok, err := queryOne(ctx, s.Snap, scanValue[string], `SELECT id FROM access_tokens WHERE user_name = $2
		AND (server = 1 OR id IN (SELECT token_id FROM access_token_workspaces WHERE workspace_id = $1)) LIMIT 1`,
		workspace, user)
	return ok, err
}

// RevokeCredential revokes a token, and the sessions and links that derive from it.
func (t AgentsTx) RevokeCredential(ctx context.Context, id string, at time.Time) error {
	t.tx.Announce("", TopicTokens, "", "")
	const revoke = `UPDATE access_tokens SET revoked_at = $2 WHERE revoked_at = 0 AND `
	return firstError(t.tx.exec(ctx, revoke+`id = $1`, id, reeve.Millis(at)),
		t.tx.exec(ctx, revoke+`parent_id <> '' AND parent_id = $1`, id, reeve.Millis(at)))
}

// SetCredentialRole changes the role of a token, and of the sessions and links that derive from it.
func (t AgentsTx) SetCredentialRole(ctx context.Context, id string, role reeve.Role) error {
	t.tx.Announce("", TopicTokens, "", "")
	const update = `UPDATE access_tokens SET role = $2 WHERE revoked_at = 0 AND `
	return firstError(t.tx.exec(ctx, update+`id = $1`, id, string(role)),
		t.tx.exec(ctx, update+`parent_id <> '' AND parent_id = $1`, id, string(role)))
}

// UseLink uses up a link of the console. It returns false if the link was used, revoked or has expired, also if another
// transaction uses it at the same time.
func (t AgentsTx) UseLink(ctx context.Context, id string) (bool, error) {
	n, err := t.tx.execCount(ctx, `UPDATE access_tokens SET revoked_at = $2 WHERE id = $1 AND kind = 'link'
		AND revoked_at = 0 AND expires_at > $2`, id, reeve.Millis(t.now))
	return n == 1, err
}

// LockCredential is like GetCredential, but keeps others from revoking the token until the transaction ends.
func (t AgentsTx) LockCredential(ctx context.Context, id string) (Credential, bool, error) {
	if _, _, err := queryOne(ctx, t.Snap, scanValue[string], `SELECT id FROM access_tokens WHERE id = $1`+
		t.db.engine.ShareClause(), id); err != nil {
		return Credential{}, false, err
	}
	return t.GetCredential(ctx, id)
}

// DeleteExpiredSessions deletes the sessions and links of the console that expired before a time.
func (t AgentsTx) DeleteExpiredSessions(ctx context.Context, before time.Time) error {
	return t.tx.exec(ctx, `DELETE FROM access_tokens WHERE parent_id <> '' AND expires_at < $1`, reeve.Millis(before))
}
