package store

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"reeve"
)

// JournalScope identifies who uses the journal and the categories that they may access. Time entries, day plans and
// ratings are private to their user; other users do not see them.
type JournalScope struct {
	Workspace  string
	User       string
	Agent      string   // the agent, if an agent uses the journal
	Operation  string   // the operation that an agent's change belongs to
	Run        string   // the run in which an agent makes the change
	Categories []string // the categories that an agent may access
	All        bool     // every category; set for a person
}

// JournalReader reads the journal within a scope. It records every category that it uses, so that the gate can decide
// on a change that was only drafted.
type JournalReader struct {
	snap       *Snap
	scope      JournalScope
	categories map[string]bool
}

// Journal returns a reader of the journal within a scope.
func (s *Snap) Journal(who JournalScope) *JournalReader {
	return &JournalReader{snap: s, scope: who, categories: map[string]bool{}}
}

// UsedCategories returns the categories that were used, in order.
func (r *JournalReader) UsedCategories() []string { return slices.Sorted(maps.Keys(r.categories)) }

// useCategory records a category. It returns OutOfScope if the scope does not include the category.
func (r *JournalReader) useCategory(category string) error {
	r.categories[category] = true
	if r.scope.All || slices.Contains(r.scope.Categories, category) {
		return nil
	}
	return reeve.Errorf(reeve.OutOfScope, "category %q is outside the agent's scope", category).
		Hintf("the agent may access %d categories", len(r.scope.Categories))
}

// JournalWriter reads and changes the journal within a scope. There is one method for each kind of change, for people
// and agents alike. It checks the categories again in the writing transaction, so that rows that have left the scope
// since the gate's decision are refused.
type JournalWriter struct {
	*JournalReader
	tx         *Tx
	derivedIDs int // number of ids derived so far
	changed    []string
	tokens     []reeve.Token
	history    journalHistory
}

// JournalWriter begins a change of the journal. It locks the node, so that changes run one after another. Rules about
// several rows need this, for example that a user has at most one running timer.
func (t *Tx) JournalWriter(ctx context.Context, who JournalScope) (*JournalWriter, error) {
	if err := t.lockNode(ctx); err != nil {
		return nil, err
	}
	t.Announce(who.Workspace, TopicJournal, "", "")
	return &JournalWriter{JournalReader: t.Journal(who), tx: t}, nil
}

// Changed returns the ids of the rows that were written, in order.
func (w *JournalWriter) Changed() []string { return append([]string{}, w.changed...) }

// Tokens returns the tokens of the change.
func (w *JournalWriter) Tokens() []reeve.Token { return append([]reeve.Token{}, w.tokens...) }

// Finish completes a change. It records what the change did to each row, and links an agent's operation to all rows
// that it changed.
func (w *JournalWriter) Finish(ctx context.Context) error {
	if err := w.recordHistory(ctx); err != nil || w.scope.Operation == "" {
		return err
	}
	for _, id := range w.changed { // an operation runs once, so its links do not exist yet
		l := reeve.Link{FromID: w.scope.Operation, ToID: id, Relation: reeve.ToolEffect}
		if err := w.putLink(ctx, &l); err != nil {
			return err
		}
	}
	return nil
}

// newID returns a new id. Within an operation it derives the id from the operation, so that the same operation creates
// the same rows on every node.
func (w *JournalWriter) newID(prefix string) string {
	if w.scope.Operation == "" {
		return w.tx.NewID(prefix)
	}
	w.derivedIDs++
	return derivedID(prefix, w.scope.Workspace, w.scope.Operation, strconv.Itoa(w.derivedIDs))
}

// derivedID returns an id that is derived from parts and has the usual length.
func derivedID(prefix string, parts ...string) string {
	return reeve.DeriveID(prefix, parts...)[:len(prefix)+1+26]
}

// emit adds a token to the change unless it was added before.
func (w *JournalWriter) emit(class reeve.TokenClass, name string) {
	if t := (reeve.Token{Class: class, Name: name}); name != "" && !slices.Contains(w.tokens, t) {
		w.tokens = append(w.tokens, t)
	}
}

// emitChange adds the tokens for a kind of row and its categories. putRecord adds the tokens of the ids.
func (w *JournalWriter) emitChange(key string, categories ...string) {
	w.emit(reeve.SemanticKey, key)
	for _, c := range categories {
		w.emit(reeve.EntityID, c)
	}
}

// recordColumns are the first columns of every table of the journal.
const recordColumns = `id, workspace_id, created_at, updated_at, deleted_at, node, counter, clock, `

// recordScanner scans the columns that every row of the journal has.
type recordScanner struct {
	record                    *reeve.Record
	created, updated, deleted int64
	clock                     string
}

func (h *recordScanner) scan(r scanner, rest ...any) error {
	dest := append([]any{&h.record.ID, &h.record.WorkspaceID, &h.created, &h.updated, &h.deleted, &h.record.Stamp.Node,
		&h.record.Stamp.Counter, &h.clock}, rest...)
	if err := r.Scan(dest...); err != nil {
		return err
	}
	h.record.CreatedAt, h.record.UpdatedAt, h.record.DeletedAt = reeve.FromMillis(h.created),
		reeve.FromMillis(h.updated),
		timeOrNil(h.deleted)
	return decodeJSON("clock", h.clock, &h.record.Stamp.Clock)
}

// relationTables are tables whose rows only connect other rows. Changes of their rows count as changes of the connected
// rows.
var relationTables = map[string]bool{"links": true, "task_labels": true, "plan_pins": true}

// putRecord inserts or replaces a row, with the stamp of this transaction.
func (w *JournalWriter) putRecord(ctx context.Context, table, columns string, r *reeve.Record, values ...any) error {
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
	if r.WorkspaceID, r.UpdatedAt = w.scope.Workspace, w.tx.now; r.CreatedAt.IsZero() {
		r.CreatedAt = w.tx.now
	}
	if !relationTables[table] && !slices.Contains(w.changed, r.ID) {
		if err := w.rememberBefore(ctx, r.ID); err != nil {
			return err
		}
		w.changed = append(w.changed, r.ID)
		w.emit(reeve.EntityID, r.ID)
	}
	args := append([]any{r.ID, r.WorkspaceID, reeve.Millis(r.CreatedAt), reeve.Millis(r.UpdatedAt),
		millisOrZero(r.DeletedAt),
		s.Node, s.Counter, encodeJSON(clock)}, values...)
	return w.tx.exec(ctx, upsertSQL(table, recordColumns+columns), args...)
}

// upsertSQL returns the statement that inserts or replaces a row whose key is its first column.
func upsertSQL(table, columns string) string {
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

// markDeleted marks a row as deleted. The caller writes it with putRecord.
func (w *JournalWriter) markDeleted(r *reeve.Record) {
	now := w.tx.now
	r.DeletedAt = &now
}

// whereClause builds a WHERE clause. Each ? becomes the next placeholder.
type whereClause struct {
	parts []string
	args  []any
}

func (c *whereClause) add(text string, args ...any) {
	for _, a := range args {
		c.args = append(c.args, a)
		text = strings.Replace(text, "?", "$"+strconv.Itoa(len(c.args)), 1)
	}
	c.parts = append(c.parts, text)
}

// addIn adds the condition that a column is in a list. It pads the list so that there are few statement texts; see
// batchSizes.
func (c *whereClause) addIn(column string, list []string) {
	if len(list) == 0 {
		c.parts = append(c.parts, "1 = 0")
		return
	}
	var args []any
	for len(list) > 0 {
		var some []string
		some, list = padBatch(list)
		for _, v := range some {
			args = append(args, v)
		}
	}
	c.add(column+" IN ("+strings.TrimSuffix(strings.Repeat("?, ", len(args)), ", ")+")", args...)
}

// addScope adds the condition that a column is one of the categories in the scope.
func (r *JournalReader) addScope(c *whereClause, column string) {
	if !r.scope.All {
		c.addIn(column, r.scope.Categories)
	}
}

func (c *whereClause) String() string { return strings.Join(c.parts, " AND ") }

// findRecord returns a row of the workspace. It finds deleted rows only if deleted is true.
func findRecord[T any](ctx context.Context, r *JournalReader, scan func(scanner) (T, error), table, columns, id string,
	deleted bool) (T, bool, error) {
	query := `SELECT ` + recordColumns + columns + ` FROM ` + table + ` WHERE workspace_id = $1 AND id = $2`
	if !deleted {
		query += ` AND deleted_at = 0`
	}
	return queryOne(ctx, r.snap, scan, query, r.scope.Workspace, id)
}

// foldText returns text in the form in which it is compared: lower case, with single spaces.
func foldText(s string) string { return strings.Join(strings.Fields(strings.ToLower(s)), " ") }

// Cursor is a position in a list that is ordered from new to old.
type Cursor struct {
	At int64
	ID string
}
