package store

import (
	"context"
	"strconv"

	"reeve"
)

const (
	checklistColumns = `task_id, title, position`
	itemColumns      = `checklist_id, title, checked, position`
	maxItems         = 5000 // items of one checklist
)

func scanChecklist(r scanner) (c reeve.Checklist, err error) {
	defer wrapCorrupt("checklists", &c.ID, &err)
	h := recordScanner{record: &c.Record}
	c.Items = []reeve.ChecklistItem{}
	return c, h.scan(r, &c.TaskID, &c.Title, &c.Position)
}

func scanItem(r scanner) (i reeve.ChecklistItem, err error) {
	defer wrapCorrupt("checklist_items", &i.ID, &err)
	h, checked := recordScanner{record: &i.Record}, int64(0)
	err = h.scan(r, &i.ChecklistID, &i.Title, &checked, &i.Position)
	i.Checked = checked != 0
	return i, err
}

// Checklist returns a checklist with its items in order, and its task.
func (r *JournalReader) Checklist(ctx context.Context, id string) (reeve.Checklist, reeve.Task, error) {
	c, ok, err := findRecord(ctx, r, scanChecklist, "checklists", checklistColumns, id, false)
	if err == nil && !ok {
		err = notFound("checklist", id)
	}
	if err != nil {
		return c, reeve.Task{}, err
	}
	t, err := r.Task(ctx, c.TaskID)
	if reeve.CodeOf(err) == reeve.NotFound {
		err = notFound("checklist", id) // the checklists of a deleted task are deleted too
	}
	if err == nil {
		c.Items, err = r.listItems(ctx, id)
	}
	return c, t, err
}

func (r *JournalReader) listItems(ctx context.Context, list string) ([]reeve.ChecklistItem, error) {
	return queryAll(ctx, r.snap, scanItem, `SELECT `+recordColumns+itemColumns+
		` FROM checklist_items WHERE checklist_id = $1 AND deleted_at = 0 ORDER BY position, id`, list)
}

// Checklists returns the checklists of a task with their items, in order.
func (r *JournalReader) Checklists(ctx context.Context, task string) ([]reeve.Checklist, error) {
	if _, err := r.Task(ctx, task); err != nil {
		return nil, err
	}
	lists, err := queryAll(ctx, r.snap, scanChecklist, `SELECT `+recordColumns+checklistColumns+
		` FROM checklists WHERE task_id = $1 AND deleted_at = 0 ORDER BY position, id`, task)
	if err != nil {
		return nil, err
	}
	for i := range lists {
		if lists[i].Items, err = r.listItems(ctx, lists[i].ID); err != nil {
			return nil, err
		}
	}
	return lists, nil
}

func (w *JournalWriter) putChecklist(ctx context.Context, c *reeve.Checklist, category string) error {
	w.emitChange(reeve.KeyChecklist, category)
	w.emit(reeve.EntityID, c.TaskID)
	return w.putRecord(ctx, "checklists", checklistColumns, &c.Record, c.TaskID, c.Title, c.Position)
}

func (w *JournalWriter) putItem(ctx context.Context, i *reeve.ChecklistItem) error {
	checked := 0
	if i.Checked {
		checked = 1
	}
	return w.putRecord(ctx, "checklist_items", itemColumns, &i.Record, i.ChecklistID, i.Title, checked, i.Position)
}

// emitListChange adds the tokens of a checklist whose items changed.
func (w *JournalWriter) emitListChange(c reeve.Checklist, category string) {
	w.emitChange(reeve.KeyChecklist, category)
	w.emit(reeve.EntityID, c.ID)
	w.emit(reeve.EntityID, c.TaskID)
}

// addChecklist adds an empty checklist to a task.
func (w *JournalWriter) addChecklist(ctx context.Context, t reeve.Task, title string) (reeve.Checklist, error) {
	last, _, err := queryOne(ctx, w.snap, scanValue[int64],
		`SELECT COALESCE(max(position), 0) FROM checklists WHERE task_id = $1 AND deleted_at = 0`, t.ID)
	if err != nil {
		return reeve.Checklist{}, err
	}
	c := reeve.Checklist{TaskID: t.ID, Title: title, Position: last + 1, Items: []reeve.ChecklistItem{}}
	c.ID = w.newID(reeve.PrefixChecklist)
	return c, w.putChecklist(ctx, &c, t.CategoryID)
}

// CreateChecklist creates a checklist with its first items.
func (w *JournalWriter) CreateChecklist(ctx context.Context, in reeve.ChecklistDraft) (c reeve.Checklist, err error) {
	t, err := w.Task(ctx, in.TaskID)
	if err != nil {
		return c, err
	}
	title, err := reeve.CheckTitle("/title", in.Title)
	if err != nil {
		return c, err
	}
	if err := reeve.CheckCount("/items", len(in.Items)); err != nil {
		return c, err
	}
	items := make([]reeve.ChecklistItemDraft, len(in.Items))
	for i, s := range in.Items {
		if items[i].Title, err = reeve.CheckTitle("/items/"+strconv.Itoa(i), s); err != nil {
			return c, err
		}
	}
	if c, err = w.addChecklist(ctx, t, title); err != nil {
		return c, err
	}
	return c, w.appendItems(ctx, &c, items)
}

// appendItems adds new items at the end of a checklist.
func (w *JournalWriter) appendItems(ctx context.Context, c *reeve.Checklist, drafts []reeve.ChecklistItemDraft) error {
	next := nextPosition(*c)
	for _, d := range drafts {
		i := reeve.ChecklistItem{ChecklistID: c.ID, Title: d.Title, Checked: d.Checked, Position: next}
		i.ID = w.newID(reeve.PrefixChecklistItem)
		if err := w.putItem(ctx, &i); err != nil {
			return err
		}
		c.Items = append(c.Items, i)
		next++
	}
	return nil
}

// nextPosition returns the position after a checklist's last item.
func nextPosition(c reeve.Checklist) int64 {
	if n := len(c.Items); n > 0 {
		return c.Items[n-1].Position + 1
	}
	return 1
}

func tooManyItems(path string) error {
	return reeve.InvalidField(path, "would make the checklist too long", "at most "+strconv.Itoa(maxItems)+
		" items in one checklist")
}

// AddItems adds items to a checklist and returns the checklist.
func (w *JournalWriter) AddItems(ctx context.Context, list string,
	in reeve.ChecklistItemsDraft) (reeve.Checklist, error) {
	c, t, err := w.Checklist(ctx, list)
	if err != nil {
		return c, err
	}
	if err := reeve.CheckCount("/items", len(in.Items)); err != nil {
		return c, err
	}
	if len(in.Items) == 0 {
		return c, reeve.InvalidField("/items", "is empty", "one item or more")
	}
	if len(c.Items)+len(in.Items) > maxItems {
		return c, tooManyItems("/items")
	}
	drafts := make([]reeve.ChecklistItemDraft, len(in.Items))
	for i, d := range in.Items {
		if d.Title, err = reeve.CheckTitle("/items/"+strconv.Itoa(i)+"/title", d.Title); err != nil {
			return c, err
		}
		drafts[i] = d
	}
	w.emitListChange(c, t.CategoryID)
	return c, w.appendItems(ctx, &c, drafts)
}

// ItemsEdit is an actual change of items, and the change that undoes it.
type ItemsEdit struct{ Changes, Undo []reeve.ChecklistItemChange }

// UpdateItems changes items of a checklist.
func (w *JournalWriter) UpdateItems(ctx context.Context, list string,
	in reeve.ChecklistItemsChange) (c reeve.Checklist, e ItemsEdit, err error) {
	c, t, err := w.Checklist(ctx, list)
	if err != nil {
		return c, e, err
	}
	ids := make([]string, len(in.Items))
	for i, v := range in.Items {
		ids[i] = v.ID
	}
	if err := reeve.CheckDistinct("/items", ids); err != nil {
		return c, e, err
	}
	at := map[string]int{}
	for i, v := range c.Items {
		at[v.ID] = i
	}
	for n, v := range in.Items {
		i, ok := at[v.ID]
		if !ok {
			return c, e, notFound("item", v.ID)
		}
		item, made, back := &c.Items[i], reeve.ChecklistItemChange{ID: v.ID}, reeve.ChecklistItemChange{ID: v.ID}
		if v.Title != nil {
			title, err := reeve.CheckTitle("/items/"+strconv.Itoa(n)+"/title", *v.Title)
			if err != nil {
				return c, e, err
			}
			if title != item.Title {
				was := item.Title
				item.Title, made.Title, back.Title = title, &title, &was
			}
		}
		if v.Checked != nil && *v.Checked != item.Checked {
			was := item.Checked
			item.Checked, made.Checked, back.Checked = *v.Checked, v.Checked, &was
		}
		if made.Title == nil && made.Checked == nil {
			continue
		}
		e.Changes, e.Undo = append(e.Changes, made), append(e.Undo, back)
		w.emitListChange(c, t.CategoryID)
		if err := w.putItem(ctx, item); err != nil {
			return c, e, err
		}
	}
	return c, e, nil
}

// UpdateChecklist renames a checklist.
func (w *JournalWriter) UpdateChecklist(ctx context.Context, id string,
	in reeve.ChecklistChange) (reeve.Checklist, error) {
	c, t, err := w.Checklist(ctx, id)
	if err != nil || in.Title == nil {
		return c, err
	}
	title, err := reeve.CheckTitle("/title", *in.Title)
	if err != nil || title == c.Title {
		return c, err
	}
	c.Title = title
	return c, w.putChecklist(ctx, &c, t.CategoryID)
}

// DeleteChecklist deletes a checklist and its items.
func (w *JournalWriter) DeleteChecklist(ctx context.Context, id string) error {
	c, t, err := w.Checklist(ctx, id)
	if err != nil {
		return err
	}
	for i := range c.Items {
		w.markDeleted(&c.Items[i].Record)
		if err := w.putItem(ctx, &c.Items[i]); err != nil {
			return err
		}
	}
	w.markDeleted(&c.Record)
	return w.putChecklist(ctx, &c, t.CategoryID)
}

// DeleteItem deletes an item of a checklist.
func (w *JournalWriter) DeleteItem(ctx context.Context, list, id string) error {
	c, t, err := w.Checklist(ctx, list)
	if err != nil {
		return err
	}
	for i := range c.Items {
		if c.Items[i].ID == id {
			w.emitListChange(c, t.CategoryID)
			w.markDeleted(&c.Items[i].Record)
			return w.putItem(ctx, &c.Items[i])
		}
	}
	return notFound("item", id)
}
