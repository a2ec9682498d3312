package store

import (
	"context"

	"reeve"
)

const linkColumns = `from_id, to_id, relation`

func scanLink(r scanner) (l reeve.Link, err error) {
	defer wrapCorrupt("links", &l.ID, &err)
	h := head{to: &l.Record}
	return l, h.scan(r, &l.FromID, &l.ToID, &l.Relation)
}

// link ties two things. Tying them twice ties them once.
func (w *JournalWriter) link(ctx context.Context, from, to string, as reeve.Relation) (reeve.Link, error) {
	l, ok, err := record(ctx, w.JournalReader, scanLink, "links", linkColumns, w.linkID(from, to, as), true)
	if err != nil || (ok && l.DeletedAt == nil) {
		return l, err
	}
	l.FromID, l.ToID, l.Relation, l.DeletedAt = from, to, as, nil
	return l, w.putLink(ctx, &l)
}

// linkID follows from what a link ties: two nodes that tie the same make the same link.
func (w *JournalWriter) linkID(from, to string, as reeve.Relation) string {
	return derivedID(reeve.PrefixLink, w.who.Workspace, from, to, string(as))
}

func (w *JournalWriter) putLink(ctx context.Context, l *reeve.Link) error {
	l.ID = w.linkID(l.FromID, l.ToID, l.Relation)
	return w.put(ctx, "links", linkColumns, &l.Record, l.FromID, l.ToID, string(l.Relation))
}

// linkBoth ties two tasks in both directions.
func (w *JournalWriter) linkBoth(ctx context.Context, from, to string,
	there, back reeve.Relation) ([]reeve.Link, error) {
	a, err := w.link(ctx, from, to, there)
	if err != nil {
		return nil, err
	}
	b, err := w.link(ctx, to, from, back)
	return []reeve.Link{a, b}, err
}

// maxLinks is how many links of one thing are shown.
const maxLinks = 1000

// Effects reads what an operation touched.
func (r *JournalReader) Effects(ctx context.Context, operation string) ([]reeve.Link, error) {
	if _, err := r.snap.Ledger().GetOperation(ctx, r.who.Workspace, operation); err != nil {
		return nil, err
	}
	return r.Links(ctx, operation)
}

// Links reads the links to and from one thing, oldest first.
func (r *JournalReader) Links(ctx context.Context, id string) ([]reeve.Link, error) {
	return all(ctx, r.snap, scanLink, `SELECT `+recordColumns+linkColumns+` FROM links WHERE workspace_id = $1 AND deleted_at = 0 AND from_id = $2
		UNION SELECT `+recordColumns+linkColumns+` FROM links WHERE workspace_id = $1 AND deleted_at = 0 AND to_id = $2
		ORDER BY 3, 1 LIMIT $3`, r.who.Workspace, id, maxLinks)
}
