package store

import (
	"context"
	"crypto/aes"
	"crypto/cipher"

	"reeve"
)

// sealer encrypts secrets at rest, bound to their workspace and name so that rows cannot be swapped.
type sealer struct{ aead cipher.AEAD }

func newSealer(key []byte) (sealer, error) {
	block, err := aes.NewCipher(key)
	if err != nil || len(key) != 32 {
		return sealer{}, reeve.Errorf(reeve.Validation, "the key that seals secrets must be 32 bytes, not %d", len(key))
	}
	aead, err := cipher.NewGCM(block)
	return sealer{aead}, err
}

func (s sealer) close(workspace, name, value string) []byte {
	nonce := reeve.RandomBytes(s.aead.NonceSize())
	return s.aead.Seal(nonce, nonce, []byte(value), []byte(workspace+"\x00"+name))
}

func (s sealer) open(workspace, name string, sealed []byte) (string, error) {
	n := s.aead.NonceSize()
	if len(sealed) < n {
		return "", corrupt("secrets", workspace+"/"+name, &columnError{"sealed", "is too short"})
	}
	b, err := s.aead.Open(nil, sealed[:n], sealed[n:], []byte(workspace+"\x00"+name))
	if err != nil {
		return "", reeve.Errorf(reeve.Unavailable, "the secret %q cannot be opened with this server's key", name).
			Hintf("start the server with the key the secret was stored with, or store the secret again; servers that " +
				"share a database need the same secret.key")
	}
	return string(b), nil
}

// PutSecret stores a secret and touches the workspace, so that it is taken out of what is shown at once.
func (t AgentsTx) PutSecret(ctx context.Context, workspace, name, value string) error {
	if err := t.tx.Touch(ctx, workspace); err != nil {
		return err
	}
	return t.tx.exec(ctx, `INSERT INTO secrets (workspace_id, name, sealed, updated_at) VALUES ($1, $2, $3, $4)
		ON CONFLICT (workspace_id, name) DO UPDATE SET sealed = $3, updated_at = $4`,
		workspace, name, t.db.seal.close(workspace, name, value), reeve.Millis(t.now))
}

// GetSecret reads a secret.
func (s Agents) GetSecret(ctx context.Context, workspace, name string) (string, error) {
	sealed, ok, err := one(ctx, s.Snap, value[[]byte],
		`SELECT sealed FROM secrets WHERE workspace_id = $1 AND name = $2`, workspace, name)
	if err != nil {
		return "", err
	}
	if !ok {
		return "", notFound("secret", name)
	}
	return s.db.seal.open(workspace, name, sealed)
}

// ListSecrets reads the names of a workspace's secrets.
func (s Agents) ListSecrets(ctx context.Context, workspace string) ([]reeve.SecretName, error) {
	return all(ctx, s.Snap, func(r scanner) (n reeve.SecretName, err error) {
		defer wrapCorrupt("secrets", &n.Name, &err)
		var updated int64
		err = r.Scan(&n.Name, &updated)
		n.UpdatedAt = reeve.FromMillis(updated)
		return n, err
	}, `SELECT name, updated_at FROM secrets WHERE workspace_id = $1 ORDER BY name`, workspace)
}

// SecretValues reads the values of a workspace's secrets, in the order of their names. One that this server's key does
// not open is left out: it cannot be shown either.
func (s Agents) SecretValues(ctx context.Context, workspace string) ([]string, error) {
	return all(ctx, s.Snap, func(r scanner) (string, error) {
		var name string
		var sealed []byte
		if err := r.Scan(&name, &sealed); err != nil {
			return "", err
		}
		value, err := s.db.seal.open(workspace, name, sealed)
		if err != nil {
			return "", errSkipped
		}
		return value, nil
	}, `SELECT name, sealed FROM secrets WHERE workspace_id = $1 ORDER BY name`, workspace)
}

// CountSecrets counts the secrets of all workspaces, and those of them that this server's key does not open.
func (s Agents) CountSecrets(ctx context.Context) (total, shut int, err error) {
	opened, err := all(ctx, s.Snap, func(r scanner) (bool, error) {
		var workspace, name string
		var sealed []byte
		if err := r.Scan(&workspace, &name, &sealed); err != nil {
			return false, err
		}
		_, err := s.db.seal.open(workspace, name, sealed)
		return err == nil, nil
	}, `SELECT workspace_id, name, sealed FROM secrets`)
	for _, ok := range opened {
		if !ok {
			shut++
		}
	}
	return len(opened), shut, err
}

// DeleteSecret removes a secret and touches the workspace.
func (t AgentsTx) DeleteSecret(ctx context.Context, workspace, name string) error {
	if err := t.tx.Touch(ctx, workspace); err != nil {
		return err
	}
	n, err := t.tx.affect(ctx, `DELETE FROM secrets WHERE workspace_id = $1 AND name = $2`, workspace, name)
	if err == nil && n == 0 {
		return notFound("secret", name)
	}
	return err
}
