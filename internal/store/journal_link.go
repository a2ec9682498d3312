package store

import (
	"context"

	"reeve"
)

const linkColumns = `from_id, to_id, relation`

func scanLink(r scanner) (l reeve.Link, err error) {
	h := head{to: &l.Record}
	return l, h.scan(r, &l.FromID, &l.ToID, &l.Relation)
}

// link ties two things. Tying them twice ties them once.
func (w *JournalWriter) link(ctx context.Context, from, to string, as reeve.Relation) (reeve.Link, error) {
	id := derivedID(reeve.PrefixLink, w.who.Workspace, from, to, string(as))
	l, ok, err := record(ctx, w.JournalReader, scanLink, "links", linkColumns, id, true)
	if err != nil || (ok && l.DeletedAt == nil) {
		return l, err
	}
	l.ID, l.FromID, l.ToID, l.Relation, l.DeletedAt = id, from, to, as, nil
	return l, w.put(ctx, "links", linkColumns, &l.Record, l.FromID, l.ToID, string(l.Relation))
}

// linkBoth ties two tasks in both directions.
func (w *JournalWriter) linkBoth(ctx context.Context, from, to string, there, back reeve.Relation) ([]reeve.Link, error) {
	a, err := w.link(ctx, from, to, there)
	if err != nil {
		return nil, err
	}
	b, err := w.link(ctx, to, from, back)
	return []reeve.Link{a, b}, err
}

// maxLinks is how many links of one thing are shown.
const maxLinks = 1000

// Links reads the links to and from one thing, oldest first. An agent sees those between things that it can see; as a link
// holds no more than two ids, that is asked of tasks alone.
func (r *JournalReader) Links(ctx context.Context, id string) ([]reeve.Link, error) {
	return all(ctx, r.snap, scanLink, `SELECT `+recordColumns+linkColumns+` FROM links WHERE workspace_id = $1 AND deleted_at = 0 AND from_id = $2
		UNION SELECT `+recordColumns+linkColumns+` FROM links WHERE workspace_id = $1 AND deleted_at = 0 AND to_id = $2
		ORDER BY 3, 1 LIMIT $3`, r.who.Workspace, id, maxLinks)
}
