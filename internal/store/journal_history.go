package store

import (
	"context"
	"slices"

	"reeve"
)

// journalHistory collects what a change of the journal does to each row.
type journalHistory struct {
	rows   []string                        // ids of the first rows that the change touches, in order
	before map[string]map[string]any       // rows before the change; nil for new ones
	extra  map[string]map[string][2]string // fields that are not columns of the row
}

// rememberBefore reads a row before the change touches it for the first time.
func (w *JournalWriter) rememberBefore(ctx context.Context, id string) error {
	h := &w.history
	if slices.Contains(h.rows, id) || len(h.rows) == maxChangedEntities {
		return nil
	}
	m, _, err := w.findEntity(ctx, id)
	if err != nil {
		return err
	}
	if h.before == nil {
		h.before = map[string]map[string]any{}
	}
	h.rows, h.before[id] = append(h.rows, id), m
	return nil
}

// addField records a changed field of a row that is not one of its columns.
func (w *JournalWriter) addField(id, name, before, after string) {
	if w.history.extra == nil {
		w.history.extra = map[string]map[string][2]string{}
	}
	w.history.extra[id] = map[string][2]string{name: {before, after}}
}

// recordHistory records the changes of the rows that were written.
func (w *JournalWriter) recordHistory(ctx context.Context) error {
	if len(w.changed) == 0 {
		return nil
	}
	var list []reeve.EntityChange
	for _, id := range w.history.rows {
		if !slices.Contains(w.changed, id) {
			continue
		}
		e, err := w.describeChange(ctx, id)
		if err != nil {
			return err
		}
		list = append(list, e)
	}
	if w.scope.Operation == "" {
		return w.tx.Queue().InsertPersonChanges(ctx, w.scope.Workspace, w.scope.User, list...)
	}
	return w.tx.Queue().InsertEntityChanges(ctx, ChangeAuthor{Workspace: w.scope.Workspace, Change: w.scope.Operation,
		Agent: w.scope.Agent, User: w.scope.User, Run: w.scope.Run}, list)
}

// describeChange compares a row with what it was before the change.
func (w *JournalWriter) describeChange(ctx context.Context, id string) (e reeve.EntityChange, err error) {
	before := w.history.before[id]
	after, _, err := w.findEntity(ctx, id)
	if err != nil {
		return e, err
	}
	known := after
	if known == nil {
		known = before
	}
	if known == nil { // created and deleted by the same change
		return reeve.EntityChange{ID: id, Action: reeve.EntityDeleted}, nil
	}
	field := func(name string) string { s, _ := known[name].(string); return s }
	title := ""
	for _, name := range []string{"title", "name", "plan_date", "started_at", "starts_at", "target_id"} {
		if title == "" {
			title = field(name)
		}
	}
	if e, err = DiffEntity(field("kind"), id, title, anyOrNil(before), anyOrNil(after)); err != nil {
		return e, err
	}
	for name, v := range w.history.extra[id] {
		e.Fields[name] = v
	}
	e.Category = field("category_id")
	switch e.Kind {
	case "rating": // has the category of its target
		target, ok, err := w.findEntity(ctx, field("target_id"))
		if err != nil {
			return e, err
		}
		if e.Category, _ = target["category_id"].(string); !ok {
			e.Category = "unknown" // a category that is in no scope
		}
		e.Owner = w.scope.User
	case "time_entry", "day_plan", "plan_block":
		e.Owner = w.scope.User
	}
	return e, nil
}

// anyOrNil returns nil for a nil map.
func anyOrNil(m map[string]any) any {
	if m == nil {
		return nil
	}
	return m
}
