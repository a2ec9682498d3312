package store

import (
	"context"
	"crypto/aes"
	"crypto/cipher"

	"reeve"
)

// sealer encrypts secrets. The ciphertext is bound to the workspace and the name, so that rows cannot be swapped.
type sealer struct{ aead cipher.AEAD }

func newSealer(key []byte) (sealer, error) {
	block, err := aes.NewCipher(key)
	if err != nil || len(key) != 32 {
		return sealer{}, reeve.Errorf(reeve.Validation, "key for secrets must be 32 bytes long, not %d", len(key))
	}
	aead, err := cipher.NewGCM(block)
	return sealer{aead}, err
}

func (s sealer) seal(workspace, name, value string) []byte {
	nonce := reeve.RandomBytes(s.aead.NonceSize())
	return s.aead.Seal(nonce, nonce, []byte(value), []byte(workspace+"\x00"+name))
}

func (s sealer) open(workspace, name string, sealed []byte) (string, error) {
	n := s.aead.NonceSize()
	if len(sealed) < n {
		return "", corruptError("secrets", workspace+"/"+name, &columnError{"sealed", "is too short"})
	}
	b, err := s.aead.Open(nil, sealed[:n], sealed[n:], []byte(workspace+"\x00"+name))
	if err != nil {
		return "", reeve.Errorf(reeve.Unavailable, "secret %q cannot be decrypted with this server's key", name).
			Hintf("start the server with the key that encrypted the secret, or store the secret again; servers that " +
				"share a database need the same secret.key")
	}
	return string(b), nil
}

// PutSecret stores a secret and increments the workspace's revision, so that the secret is redacted at once.
func (t AgentsTx) PutSecret(ctx context.Context, workspace, name, value string) error {
	t.tx.Announce(workspace, TopicSecrets, "", "")
	if err := t.tx.IncrementRevision(ctx, workspace); err != nil {
		return err
	}
	return t.tx.exec(ctx, `INSERT INTO secrets (workspace_id, name, sealed, updated_at) VALUES ($1, $2, $3, $4)
		ON CONFLICT (workspace_id, name) DO UPDATE SET sealed = $3, updated_at = $4`,
		workspace, name, t.db.sealer.seal(workspace, name, value), reeve.Millis(t.now))
}

// GetSecret returns the value of a secret.
func (s Agents) GetSecret(ctx context.Context, workspace, name string) (string, error) {
	sealed, ok, err := queryOne(ctx, s.Snap, scanValue[[]byte],
		`SELECT sealed FROM secrets WHERE workspace_id = $1 AND name = $2`, workspace, name)
	if err != nil {
		return "", err
	}
	if !ok {
		return "", notFound("secret", name)
	}
	return s.db.sealer.open(workspace, name, sealed)
}

// ListSecrets returns the names of a workspace's secrets.
func (s Agents) ListSecrets(ctx context.Context, workspace string) ([]reeve.SecretName, error) {
	return queryAll(ctx, s.Snap, func(r scanner) (n reeve.SecretName, err error) {
		defer wrapCorrupt("secrets", &n.Name, &err)
		var updated int64
		err = r.Scan(&n.Name, &updated)
		n.UpdatedAt = reeve.FromMillis(updated)
		return n, err
	}, `SELECT name, updated_at FROM secrets WHERE workspace_id = $1 ORDER BY name`, workspace)
}

// SecretValues returns the values of a workspace's secrets, ordered by name. It leaves out secrets that this server's
// key cannot decrypt, because they cannot appear in a text either.
func (s Agents) SecretValues(ctx context.Context, workspace string) ([]string, error) {
	return queryAll(ctx, s.Snap, func(r scanner) (string, error) {
		var name string
		var sealed []byte
		if err := r.Scan(&name, &sealed); err != nil {
			return "", err
		}
		value, err := s.db.sealer.open(workspace, name, sealed)
		if err != nil {
			return "", errSkipped
		}
		return value, nil
	}, `SELECT name, sealed FROM secrets WHERE workspace_id = $1 ORDER BY name`, workspace)
}

// CountSecrets returns the number of secrets of all workspaces, and how many of them this server's key cannot decrypt.
func (s Agents) CountSecrets(ctx context.Context) (total, undecryptable int, err error) {
	opened, err := queryAll(ctx, s.Snap, func(r scanner) (bool, error) {
		var workspace, name string
		var sealed []byte
		if err := r.Scan(&workspace, &name, &sealed); err != nil {
			return false, err
		}
		_, err := s.db.sealer.open(workspace, name, sealed)
		return err == nil, nil
	}, `SELECT workspace_id, name, sealed FROM secrets`)
	for _, ok := range opened {
		if !ok {
			undecryptable++
		}
	}
	return len(opened), undecryptable, err
}

// DeleteSecret deletes a secret and increments the workspace's revision.
func (t AgentsTx) DeleteSecret(ctx context.Context, workspace, name string) error {
	t.tx.Announce(workspace, TopicSecrets, "", "")
	if err := t.tx.IncrementRevision(ctx, workspace); err != nil {
		return err
	}
	n, err := t.tx.execCount(ctx, `DELETE FROM secrets WHERE workspace_id = $1 AND name = $2`, workspace, name)
	if err == nil && n == 0 {
		return notFound("secret", name)
	}
	return err
}
