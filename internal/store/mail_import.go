package store

import (
	"context"

	"reeve"
)

const importColumns = `id, user_id, source, state, replaces, position, seen, added, replaced, duplicate, bad, notes,
	started_at, updated_at, finished_at`

func scanImport(r scanner) (v reeve.MailImport, err error) {
	defer wrapCorrupt("mail_imports", &v.ID, &err)
	var notes string
	var started, updated, finished int64
	var replaces int
	if err := r.Scan(&v.ID, &v.User, &v.Source, &v.State, &replaces, &v.Position, &v.Seen, &v.Added, &v.Replaced,
		&v.Duplicate, &v.Unreadable, &notes, &started, &updated, &finished); err != nil {
		return v, err
	}
	v.Replace, v.StartedAt, v.UpdatedAt, v.FinishedAt = replaces == 1, reeve.FromMillis(started),
		reeve.FromMillis(updated), mailTime(finished)
	v.Problems = []reeve.MailProblem{}
	return v, decodeJSON("notes", notes, &v.Problems)
}

// BeginImport starts an import. Unless q.Restart is set, it returns the user's open import of the same source if there
// is one.
func (t MailTx) BeginImport(ctx context.Context, workspace, user string,
	q reeve.MailImportRequest) (reeve.MailImport, error) {
	if !q.Restart {
		v, ok, err := queryOne(ctx, t.Snap, scanImport, `SELECT `+importColumns+
			` FROM mail_imports WHERE workspace_id = $1 AND source = $2 AND state = 'open' AND replaces = $3
				AND user_id = $4 ORDER BY id DESC LIMIT 1`,
			workspace, q.Source, boolToInt(q.Replace), user)
		if err != nil || ok {
			return v, err
		}
	}
	v := reeve.MailImport{ID: t.NewID(reeve.PrefixImport), User: user, Source: q.Source, State: reeve.ImportOpen,
		Replace: q.Replace, Problems: []reeve.MailProblem{}, StartedAt: t.now, UpdatedAt: t.now}
	return v, t.tx.exec(ctx, `INSERT INTO mail_imports (workspace_id, `+importColumns+
		`) VALUES ($1, $2, $6, $3, 'open', $4, '', 0, 0, 0, 0, 0, '[]', $5, $5, 0)`,
		workspace, v.ID, v.Source, boolToInt(v.Replace), reeve.Millis(t.now), user)
}

// GetImport returns an import.
func (s Mail) GetImport(ctx context.Context, workspace, id string) (reeve.MailImport, error) {
	v, ok, err := queryOne(ctx, s.Snap, scanImport, `SELECT `+importColumns+
		` FROM mail_imports WHERE workspace_id = $1 AND id = $2`, workspace, id)
	if err == nil && !ok {
		err = notFound("import", id)
	}
	return v, err
}

// lockImport is like GetImport, but locks the row.
func (t MailTx) lockImport(ctx context.Context, workspace, id string) (reeve.MailImport, error) {
	if err := t.tx.exec(ctx, `UPDATE mail_imports SET updated_at = updated_at WHERE workspace_id = $1 AND id = $2`,
		workspace, id); err != nil {
		return reeve.MailImport{}, err
	}
	return t.GetImport(ctx, workspace, id)
}

// ListImports returns imports, newest first.
func (s Mail) ListImports(ctx context.Context, workspace string, limit int) ([]reeve.MailImport, error) {
	return queryAll(ctx, s.Snap, scanImport, `SELECT `+importColumns+
		` FROM mail_imports WHERE workspace_id = $1 ORDER BY id DESC LIMIT $2`, workspace, limit)
}

// putImport stores the progress of an import.
func (t MailTx) putImport(ctx context.Context, workspace string, v reeve.MailImport) error {
	finished := int64(0)
	if v.FinishedAt != nil {
		finished = reeve.Millis(*v.FinishedAt)
	}
	return t.tx.exec(ctx, `UPDATE mail_imports SET state = $3, position = $4, seen = $5, added = $6, replaced = $7,
		duplicate = $8, bad = $9, notes = $10, updated_at = $11, finished_at = $12
		WHERE workspace_id = $1 AND id = $2`, workspace, v.ID, v.State, v.Position, v.Seen, v.Added, v.Replaced,
		v.Duplicate, v.Unreadable, reeve.SanitizeText(encodeJSONUnescaped(v.Problems)), reeve.Millis(t.now), finished)
}

// MailBatch is the mails between two positions of an import.
type MailBatch struct {
	After    string // the import's position before the batch
	Position string // the import's position after the batch
	Hash     string // hash of the request, to recognize a repeated batch
	Lines    []reeve.MailLine
}

// AddBatch adds a batch to an import and advances its position in one transaction. It does nothing if the same batch
// was added last. It returns a Conflict if the batch does not start at the import's position, or if another batch has
// reached the same position.
func (t MailTx) AddBatch(ctx context.Context, workspace, id string, b MailBatch) (reeve.MailImport, error) {
	v, err := t.lockImport(ctx, workspace, id)
	if err != nil {
		return v, err
	}
	lastKey, _, err := queryOne(ctx, t.Snap, scanValue[string],
		`SELECT batch FROM mail_imports WHERE workspace_id = $1 AND id = $2`, workspace, id)
	switch {
	case err != nil:
		return v, err
	case v.Position == b.Position && lastKey == b.key():
		return v, nil
	case v.Position == b.Position:
		return v, reeve.Errorf(reeve.Conflict, "import has reached position %q with another batch", b.Position).
			Hintf("continue from this position; if another client continues the import, wait until it is done, or " +
				"start again with restart")
	case v.IsDone():
		return v, reeve.Errorf(reeve.Conflict, "import is done").Hintf("start a new import")
	case v.Position != b.After:
		return v, reeve.Errorf(reeve.Conflict, "import is at position %q, not at %q", v.Position, b.After).
			Hintf("another client continues the import; wait until it is done, or start again with restart")
	}
	var mails []reeve.Email
	places := map[string]string{}
	for _, l := range b.Lines {
		v.Seen++
		for _, n := range l.Problems {
			v.AddProblem(n, l.Place, false)
		}
		if l.Email == nil {
			v.Unreadable++
			v.AddProblem(l.Error, l.Place, true)
			continue
		}
		mails = append(mails, *l.Email)
		places[l.Email.MessageID] = l.Place
	}
	n, err := t.AddMail(ctx, workspace, v.User, mails, v.Replace)
	if err != nil {
		return v, err
	}
	v.Added, v.Replaced, v.Duplicate, v.Position, v.UpdatedAt = v.Added+n.Added, v.Replaced+n.Replaced,
		v.Duplicate+n.Duplicate, b.Position, t.now
	for _, id := range n.Renamed {
		v.AddProblem("another mail has the same Message-ID; this one got a new id", places[id], false)
	}
	if err := t.tx.exec(ctx, `UPDATE mail_imports SET batch = $3 WHERE workspace_id = $1 AND id = $2`, workspace, id,
		b.key()); err != nil {
		return v, err
	}
	return v, t.putImport(ctx, workspace, v)
}

// key identifies a batch.
func (b MailBatch) key() string { return reeve.Hash([]byte(b.After + "\n" + b.Hash))[:32] }

// FinishImport finishes an import that is at its last position. It is idempotent.
func (t MailTx) FinishImport(ctx context.Context, workspace, id, position string) (reeve.MailImport, error) {
	t.tx.Announce(workspace, TopicMail, "", "")
	v, err := t.lockImport(ctx, workspace, id)
	if err != nil || v.IsDone() {
		return v, err
	}
	if v.Position != position {
		return v, reeve.Errorf(reeve.Conflict, "import is at position %q, not at %q", v.Position, position).
			Hintf("another client continues the import")
	}
	v.State, v.UpdatedAt, v.FinishedAt = reeve.ImportDone, t.now, &t.now
	return v, t.putImport(ctx, workspace, v)
}
