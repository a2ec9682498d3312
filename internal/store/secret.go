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
		return "", reeve.Errorf(reeve.Internal, "the secret %q is damaged", name)
	}
	b, err := s.aead.Open(nil, sealed[:n], sealed[n:], []byte(workspace+"\x00"+name))
	if err != nil {
		return "", reeve.Errorf(reeve.Unavailable, "the secret %q cannot be opened with this server's key", name).
			Hintf("start the server with the key the secret was stored with, or store the secret again; servers that share a database need the same secret.key")
	}
	return string(b), nil
}

// PutSecret stores a secret and touches the workspace, so that it is taken out of what is shown at once.
func (t *Tx) PutSecret(ctx context.Context, workspace, name, value string) error {
	if err := t.Touch(ctx, workspace); err != nil {
		return err
	}
	return t.exec(ctx, `INSERT INTO secrets (workspace_id, name, sealed, updated_at) VALUES ($1, $2, $3, $4)
		ON CONFLICT (workspace_id, name) DO UPDATE SET sealed = $3, updated_at = $4`,
		workspace, name, t.db.seal.close(workspace, name, value), reeve.Millis(t.now))
}

// GetSecret reads a secret.
func (s *Snap) GetSecret(ctx context.Context, workspace, name string) (string, error) {
	sealed, ok, err := one(ctx, s, value[[]byte], `SELECT sealed FROM secrets WHERE workspace_id = $1 AND name = $2`, workspace, name)
	if err != nil {
		return "", err
	}
	if !ok {
		return "", notFound("secret", name)
	}
	return s.db.seal.open(workspace, name, sealed)
}

// ListSecrets reads the names of a workspace's secrets.
func (s *Snap) ListSecrets(ctx context.Context, workspace string) ([]reeve.SecretName, error) {
	return all(ctx, s, func(r scanner) (n reeve.SecretName, err error) {
		var updated number // decides nothing, and must not keep the secret from being redacted
		err = r.Scan(&n.Name, &updated)
		n.UpdatedAt = reeve.FromMillis(updated.value)
		return n, err
	}, `SELECT name, updated_at FROM secrets WHERE workspace_id = $1 ORDER BY name`, workspace)
}

// OpenSecrets reads the values of a workspace's secrets, in the order of their names. One that this server's key does not open is left out: it cannot be shown either.
func (s *Snap) OpenSecrets(ctx context.Context, workspace string) ([]string, error) {
	return all(ctx, s, func(r scanner) (string, error) {
		var name string
		var sealed []byte
		if err := r.Scan(&name, &sealed); err != nil {
			return "", err
		}
		value, err := s.db.seal.open(workspace, name, sealed)
		if err != nil {
			return "", errLeftOut
		}
		return value, nil
	}, `SELECT name, sealed FROM secrets WHERE workspace_id = $1 ORDER BY name`, workspace)
}

// SealedSecrets counts the secrets of all workspaces, and those of them that this server's key does not open.
func (s *Snap) SealedSecrets(ctx context.Context) (total, shut int, err error) {
	opened, err := all(ctx, s, func(r scanner) (bool, error) {
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
func (t *Tx) DeleteSecret(ctx context.Context, workspace, name string) error {
	if err := t.Touch(ctx, workspace); err != nil {
		return err
	}
	n, err := t.affect(ctx, `DELETE FROM secrets WHERE workspace_id = $1 AND name = $2`, workspace, name)
	if err == nil && n == 0 {
		return notFound("secret", name)
	}
	return err
}
