package store

import (
	"context"

	"reeve"
)

const linkColumns = `from_id, to_id, relation`

func scanLink(r scanner) (l reeve.Link, err error) {
	defer wrapCorrupt("links", &l.ID, &err)
	h := recordScanner{record: &l.Record}
	return l, h.scan(r, &l.FromID, &l.ToID, &l.Relation)
}

// ensureLink links two rows unless they are linked already.
func (w *JournalWriter) ensureLink(ctx context.Context, from, to string, as reeve.Relation) (reeve.Link, error) {
	l, ok, err := findRecord(ctx, w.JournalReader, scanLink, "links", linkColumns, w.linkID(from, to, as), true)
	if err != nil || (ok && l.DeletedAt == nil) {
		return l, err
	}
	l.FromID, l.ToID, l.Relation, l.DeletedAt = from, to, as, nil
	return l, w.putLink(ctx, &l)
}

// linkID derives the id of a link from the rows that it connects, so that it is the same on every node.
func (w *JournalWriter) linkID(from, to string, as reeve.Relation) string {
	return derivedID(reeve.PrefixLink, w.scope.Workspace, from, to, string(as))
}

func (w *JournalWriter) putLink(ctx context.Context, l *reeve.Link) error {
	l.ID = w.linkID(l.FromID, l.ToID, l.Relation)
	return w.putRecord(ctx, "links", linkColumns, &l.Record, l.FromID, l.ToID, string(l.Relation))
}

// ensureLinks links two tasks in both directions.
func (w *JournalWriter) ensureLinks(ctx context.Context, from, to string,
	forward, backward reeve.Relation) ([]reeve.Link, error) {
	a, err := w.ensureLink(ctx, from, to, forward)
	if err != nil {
		return nil, err
	}
	b, err := w.ensureLink(ctx, to, from, backward)
	return []reeve.Link{a, b}, err
}

// maxLinks is the maximum number of links that Links returns.
const maxLinks = 1000

// Effects returns the links of an operation to the rows that it changed.
func (r *JournalReader) Effects(ctx context.Context, operation string) ([]reeve.Link, error) {
	if _, err := r.snap.Ledger().GetOperation(ctx, r.scope.Workspace, operation); err != nil {
		return nil, err
	}
	return r.Links(ctx, operation)
}

// Links returns the links to and from a row, oldest first.
func (r *JournalReader) Links(ctx context.Context, id string) ([]reeve.Link, error) {
	return queryAll(ctx, r.snap, scanLink, `SELECT `+recordColumns+linkColumns+` FROM links WHERE workspace_id = $1
		AND deleted_at = 0 AND from_id = $2
		UNION SELECT `+recordColumns+linkColumns+` FROM links WHERE workspace_id = $1 AND deleted_at = 0 AND to_id = $2
		ORDER BY 3, 1 LIMIT $3`, r.scope.Workspace, id, maxLinks)
}
