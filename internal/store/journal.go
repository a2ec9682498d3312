package store

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"reeve"
)

// JournalScope is who reads or writes the journal, and what of it they may see. Time entries, day plans and ratings are
// a user's own: those of another do not exist for them.
type JournalScope struct {
	Workspace  string
	User       string
	Agent      string   // set for an agent
	Operation  string   // the operation an agent's change belongs to
	Categories []string // what an agent may touch
	All        bool     // a person's: every category
}

// JournalReader reads the journal as one hand sees it. It notes every category that it came across, so that a change
// can be judged by working it out without making it.
type JournalReader struct {
	snap *Snap
	who  JournalScope
	seen map[string]bool
}

// Journal gives the journal as a hand sees it.
func (s *Snap) Journal(who JournalScope) *JournalReader {
	return &JournalReader{snap: s, who: who, seen: map[string]bool{}}
}

// SeenCategories gives the categories that were come across, in order.
func (r *JournalReader) SeenCategories() []string { return slices.Sorted(maps.Keys(r.seen)) }

// see notes a category, and refuses one that the hand may not touch.
func (r *JournalReader) see(category string) error {
	r.seen[category] = true
	if r.who.All || slices.Contains(r.who.Categories, category) {
		return nil
	}
	return reeve.Errorf(reeve.OutOfScope, "category %q is outside the agent's scope", category).
		Hintf("the agent may touch %d categories", len(r.who.Categories))
}

// JournalWriter changes the journal: all that a reader can, and writing. Every change has one method here, whoever
// makes it. A category is looked at again in the transaction that writes, so what left the hand's scope since it was
// judged is refused.
type JournalWriter struct {
	*JournalReader
	tx     *Tx
	made   int // ids derived so far
	rows   []string
	tokens []reeve.Token
}

// JournalWriter begins a change of the journal. Changes are made one after another: rules about several rows, such as
// that a user has one running timer, could not be kept otherwise.
func (t *Tx) JournalWriter(ctx context.Context, who JournalScope) (*JournalWriter, error) {
	if err := t.lockNode(ctx); err != nil {
		return nil, err
	}
	return &JournalWriter{JournalReader: t.Journal(who), tx: t}, nil
}

// Changed gives the ids of the rows that were written, in order.
func (w *JournalWriter) Changed() []string { return append([]string{}, w.rows...) }

// Tokens gives what the change notifies about.
func (w *JournalWriter) Tokens() []reeve.Token { return append([]reeve.Token{}, w.tokens...) }

// Finish ends a change: an agent's is linked to all it touched.
func (w *JournalWriter) Finish(ctx context.Context) error {
	if w.who.Operation == "" {
		return nil
	}
	for _, id := range w.rows { // an operation is made once, so its links are new: nobody need be asked
		l := reeve.Link{FromID: w.who.Operation, ToID: id, Relation: reeve.ToolEffect}
		if err := w.putLink(ctx, &l); err != nil {
			return err
		}
	}
	return nil
}

// newID issues an id. Within an operation ids follow from it, so that the same operation made on two nodes makes the
// same things.
func (w *JournalWriter) newID(prefix string) string {
	if w.who.Operation == "" {
		return w.tx.NewID(prefix)
	}
	w.made++
	return derivedID(prefix, w.who.Workspace, w.who.Operation, strconv.Itoa(w.made))
}

// derivedID is an id that follows from its parts, as long as any other.
func derivedID(prefix string, parts ...string) string {
	return reeve.Key(prefix, parts...)[:len(prefix)+1+26]
}

// emit notes a token, once.
func (w *JournalWriter) emit(class reeve.TokenClass, name string) {
	if t := (reeve.Token{Class: class, Name: name}); name != "" && !slices.Contains(w.tokens, t) {
		w.tokens = append(w.tokens, t)
	}
}

// tell notes what kind of thing changed, and the category it is in. The ids of the rows were noted as they were
// written.
func (w *JournalWriter) tell(key string, categories ...string) {
	w.emit(reeve.SemanticKey, key)
	for _, c := range categories {
		w.emit(reeve.EntityID, c)
	}
}

// recordColumns begin every table of the journal.
const recordColumns = `id, workspace_id, created_at, updated_at, deleted_at, node, counter, clock, `

// head reads what every row begins with.
type head struct {
	to                        *reeve.Record
	created, updated, deleted int64
	clock                     string
}

func (h *head) scan(r scanner, rest ...any) error {
	dest := append([]any{&h.to.ID, &h.to.WorkspaceID, &h.created, &h.updated, &h.deleted, &h.to.Stamp.Node,
		&h.to.Stamp.Counter, &h.clock}, rest...)
	if err := r.Scan(dest...); err != nil {
		return err
	}
	h.to.CreatedAt, h.to.UpdatedAt, h.to.DeletedAt = reeve.FromMillis(h.created), reeve.FromMillis(h.updated),
		optional(h.deleted)
	return decode("clock", h.clock, &h.to.Stamp.Clock)
}

// bonds are tables whose rows only tie others together: what changed is what they tie.
var bonds = map[string]bool{"links": true, "task_labels": true, "plan_pins": true}

// put writes a row, new or changed, with the stamp of this transaction.
func (w *JournalWriter) put(ctx context.Context, table, columns string, r *reeve.Record, values ...any) error {
	s, err := w.tx.Stamp(ctx)
	if err != nil {
		return err
	}
	clock := maps.Clone(r.Stamp.Clock)
	if clock == nil {
		clock = map[string]int64{}
	}
	clock[s.Node] = s.Counter
	r.Stamp = reeve.Stamp{Node: s.Node, Counter: s.Counter, Clock: clock}
	if r.WorkspaceID, r.UpdatedAt = w.who.Workspace, w.tx.now; r.CreatedAt.IsZero() {
		r.CreatedAt = w.tx.now
	}
	if !bonds[table] && !slices.Contains(w.rows, r.ID) {
		w.rows = append(w.rows, r.ID)
		w.emit(reeve.EntityID, r.ID)
	}
	args := append([]any{r.ID, r.WorkspaceID, reeve.Millis(r.CreatedAt), reeve.Millis(r.UpdatedAt), orZero(r.DeletedAt),
		s.Node, s.Counter, text(clock)}, values...)
	return w.tx.exec(ctx, upsert(table, recordColumns+columns), args...)
}

// upsert is the text that writes a row whose first column is its key.
func upsert(table, columns string) string {
	names := strings.Split(columns, ", ")
	values, sets := make([]string, len(names)), make([]string, 0, len(names))
	for i, n := range names {
		values[i] = "$" + strconv.Itoa(i+1)
		if i > 0 {
			sets = append(sets, n+" = excluded."+n)
		}
	}
	return `INSERT INTO ` + table + ` (` + columns + `) VALUES (` + strings.Join(values, ", ") + `) ON CONFLICT (` +
		names[0] + `) DO UPDATE SET ` + strings.Join(sets, ", ")
}

// remove marks a row as deleted, to be put.
func (w *JournalWriter) remove(r *reeve.Record) {
	now := w.tx.now
	r.DeletedAt = &now
}

// clause is a WHERE clause in the making. Each ? becomes the next placeholder.
type clause struct {
	parts []string
	args  []any
}

func (c *clause) add(text string, args ...any) {
	for _, a := range args {
		c.args = append(c.args, a)
		text = strings.Replace(text, "?", "$"+strconv.Itoa(len(c.args)), 1)
	}
	c.parts = append(c.parts, text)
}

// among asks for a column to be one of a list, in one of few texts; see sizes.
func (c *clause) among(column string, list []string) {
	if len(list) == 0 {
		c.parts = append(c.parts, "1 = 0")
		return
	}
	var args []any
	for len(list) > 0 {
		var some []string
		some, list = pad(list)
		for _, v := range some {
			args = append(args, v)
		}
	}
	c.add(column+" IN ("+strings.TrimSuffix(strings.Repeat("?, ", len(args)), ", ")+")", args...)
}

// within asks for a column to be one of the hand's categories.
func (r *JournalReader) within(c *clause, column string) {
	if !r.who.All {
		c.among(column, r.who.Categories)
	}
}

func (c *clause) String() string { return strings.Join(c.parts, " AND ") }

// record reads one row of the hand's workspace; dead ones too when asked.
func record[T any](ctx context.Context, r *JournalReader, scan func(scanner) (T, error), table, columns, id string,
	dead bool) (T, bool, error) {
	query := `SELECT ` + recordColumns + columns + ` FROM ` + table + ` WHERE workspace_id = $1 AND id = $2`
	if !dead {
		query += ` AND deleted_at = 0`
	}
	return one(ctx, r.snap, scan, query, r.who.Workspace, id)
}

// fold is how text is compared: what differs only in case or in spaces is the same.
func fold(s string) string { return strings.Join(strings.Fields(strings.ToLower(s)), " ") }

// Cursor is a place in a list that is ordered newest first.
type Cursor struct {
	At int64
	ID string
}
