package store

import (
	"context"
	"unicode/utf8"

	"reeve"
)

// PutSessionFile writes a session file. An existing file keeps its creation time.
func (t ChatTx) PutSessionFile(ctx context.Context, workspace, session, path string, body []byte) error {
	return t.tx.exec(ctx, `INSERT INTO session_files (workspace_id, session_id, path, size, body, created_at,
		updated_at) VALUES ($1, $2, $3, $4, $5, $6, $6)
		ON CONFLICT (workspace_id, session_id, path) DO UPDATE SET size = $4, body = $5, updated_at = $6`,
		workspace, session, path, len(body), emptyIfNil(body), reeve.Millis(t.now))
}

// GetSessionFile returns the content of a session file. It returns false if there is none.
func (s Chat) GetSessionFile(ctx context.Context, workspace, session, path string) ([]byte, bool, error) {
	return queryOne(ctx, s.Snap, scanValue[[]byte],
		`SELECT body FROM session_files WHERE workspace_id = $1 AND session_id = $2 AND path = $3`, workspace, session,
		path)
}

const sessionFileColumns = `path, size, created_at, updated_at`

func scanSessionFile(r scanner) (f reeve.SessionFile, err error) {
	defer wrapCorrupt("session_files", &f.Path, &err)
	var created, updated int64
	err = r.Scan(&f.Path, &f.Size, &created, &updated)
	f.CreatedAt, f.UpdatedAt = reeve.FromMillis(created), reeve.FromMillis(updated)
	return f, err
}

// ListSessionFiles returns the files of a session whose paths begin with a prefix, ordered by path.
func (s Chat) ListSessionFiles(ctx context.Context, workspace, session, prefix string,
	limit int) ([]reeve.SessionFile, error) {
	return queryAll(ctx, s.Snap, scanSessionFile, `SELECT `+sessionFileColumns+` FROM session_files
		WHERE workspace_id = $1 AND session_id = $2 AND substr(path, 1, $3) = $4
		ORDER BY path LIMIT $5`, workspace, session, utf8.RuneCountInString(prefix), prefix, limit)
}

// SessionFilesAfter returns a page of the files of a session after a path, ordered by path.
func (s Chat) SessionFilesAfter(ctx context.Context, workspace, session, after string,
	limit int) ([]reeve.SessionFile, error) {
	return queryAll(ctx, s.Snap, scanSessionFile, `SELECT `+sessionFileColumns+` FROM session_files
		WHERE workspace_id = $1 AND session_id = $2 AND path > $3
		ORDER BY path LIMIT $4`, workspace, session, after, limit)
}

// FindSessionFile returns the metadata of a session file. It returns false if there is none.
func (s Chat) FindSessionFile(ctx context.Context, workspace, session, path string) (reeve.SessionFile, bool, error) {
	return queryOne(ctx, s.Snap, scanSessionFile, `SELECT `+sessionFileColumns+
		` FROM session_files WHERE workspace_id = $1 AND session_id = $2 AND path = $3`,
		workspace, session, path)
}
