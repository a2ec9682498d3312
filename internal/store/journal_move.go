package store

import (
	"context"
	"slices"

	"reeve"
)

// ItemMoveDraft is a move of checklist items that was worked out and not made.
type ItemMoveDraft struct {
	Draft
	from   reeve.Checklist
	source reeve.Task
	to     reeve.Checklist // its id is empty when it is to be made
	dest   reeve.Task      // likewise
	items  []reeve.ChecklistItem
	reopen bool
}

// pick finds the items of a move on their checklist, in the order they have there, whatever the order they were named
// in.
func (m *ItemMoveDraft) pick(ids []string) error {
	if err := reeve.CheckDistinct("/item_ids", ids); err != nil {
		return err
	}
	if len(ids) == 0 {
		return reeve.InvalidField("/item_ids", "is empty", "one item or more")
	}
	for _, i := range m.from.Items {
		if slices.Contains(ids, i.ID) {
			m.items = append(m.items, i)
		}
		m.rest(i.Record)
	}
	if len(m.items) == len(ids) {
		return nil
	}
	for _, id := range ids {
		if !slices.ContainsFunc(m.items, func(i reeve.ChecklistItem) bool { return i.ID == id }) {
			return notFound("item", id)
		}
	}
	return nil
}

// begin reads where items come from.
func (m *ItemMoveDraft) begin(ctx context.Context, r *JournalReader, list string, items []string,
	preserve *bool) (err error) {
	if m.from, m.source, err = r.Checklist(ctx, list); err != nil {
		return err
	}
	m.rest(m.from.Record)
	m.rest(m.source.Record)
	m.reopen = preserve != nil && !*preserve
	return m.pick(items)
}

// tell writes the move in words.
func (m *ItemMoveDraft) tell(to string) {
	m.say("Move %d of %d items from checklist %q (%s) of task %q to %s:", len(m.items), len(m.from.Items), m.from.Title,
		m.from.ID, m.source.Title, to)
	for _, i := range m.items {
		m.say("  %s %s (%s)", box(i.Checked && !m.reopen), i.Title, i.ID)
	}
}

func box(checked bool) string {
	if checked {
		return "[x]"
	}
	return "[ ]"
}

// MoveItems works out a move of items to the end of another checklist.
func (r *JournalReader) MoveItems(ctx context.Context, in reeve.ItemMove) (m ItemMoveDraft, err error) {
	if in.FromID == in.ToID {
		return m, reeve.InvalidField("/to_checklist_id", "is where the items are", "another checklist")
	}
	if err := m.begin(ctx, r, in.FromID, in.ItemIDs, in.PreserveState); err != nil {
		return m, err
	}
	if m.to, m.dest, err = r.Checklist(ctx, in.ToID); err != nil {
		return m, err
	}
	m.rest(m.to.Record)
	m.rest(m.dest.Record)
	for _, i := range m.to.Items {
		m.rest(i.Record)
	}
	if len(m.to.Items)+len(m.items) > maxItems {
		return m, tooMany("/item_ids")
	}
	m.tell("the end of checklist " + quoted(m.to.Title, m.to.ID) + " of task " + quoted(m.dest.Title, m.dest.ID))
	return m, nil
}

func quoted(title, id string) string { return "\"" + title + "\" (" + id + ")" }

// SplitItems works out a move of items to a new task of their own.
func (r *JournalReader) SplitItems(ctx context.Context, in reeve.ItemSplit) (m ItemMoveDraft, err error) {
	if err := m.begin(ctx, r, in.FromID, in.ItemIDs, in.PreserveState); err != nil {
		return m, err
	}
	category := in.CategoryID
	if category == "" {
		category = m.source.CategoryID
	}
	if _, err := reeve.CheckTitle("/new_task_title", in.Title); err != nil {
		return m, err
	}
	if m.dest, err = r.draftTask(ctx, reeve.TaskDraft{CategoryID: category, Title: in.Title,
		Language: m.source.Language}); err != nil {
		return m, err
	}
	m.to.Title = m.from.Title
	m.say("Create task %q in category %s, linked to task %q (%s).", m.dest.Title, category, m.source.Title, m.source.ID)
	m.tell("its checklist \"" + m.to.Title + "\"")
	return m, nil
}

// move writes the items of a move where they go.
func (w *JournalWriter) move(ctx context.Context, m *ItemMoveDraft) error {
	w.touchList(m.from, m.source.CategoryID)
	w.touchList(m.to, m.dest.CategoryID)
	next := after(m.to)
	for _, i := range m.items {
		i.ChecklistID, i.Position = m.to.ID, next
		i.Checked = i.Checked && !m.reopen
		if err := w.putItem(ctx, &i); err != nil {
			return err
		}
		m.to.Items = append(m.to.Items, i)
		next++
	}
	m.from.Items = slices.DeleteFunc(m.from.Items, func(i reeve.ChecklistItem) bool {
		return slices.ContainsFunc(m.items, func(v reeve.ChecklistItem) bool { return v.ID == i.ID })
	})
	return nil
}

// ApplyMove moves items, if base is empty or still holds. It gives both checklists as they are then.
func (w *JournalWriter) ApplyMove(ctx context.Context, in reeve.ItemMove, base string) ([]reeve.Checklist, error) {
	m, err := w.MoveItems(ctx, in)
	if err == nil {
		err = m.CheckBase(base)
	}
	if err == nil {
		err = w.move(ctx, &m)
	}
	return []reeve.Checklist{m.from, m.to}, err
}

// ApplySplit moves items to a new task, if base is empty or still holds.
func (w *JournalWriter) ApplySplit(ctx context.Context, in reeve.ItemSplit,
	base string) (out reeve.TasksChanged, err error) {
	m, err := w.SplitItems(ctx, in)
	if err == nil {
		err = m.CheckBase(base)
	}
	if err != nil {
		return out, err
	}
	m.dest.ID = w.newID(reeve.PrefixTask)
	if err := w.putTask(ctx, &m.dest); err != nil {
		return out, err
	}
	if m.to, err = w.addChecklist(ctx, m.dest, m.to.Title); err != nil {
		return out, err
	}
	if err := w.move(ctx, &m); err != nil {
		return out, err
	}
	links, err := w.linkBoth(ctx, m.source.ID, m.dest.ID, reeve.SplitInto, reeve.SplitFrom)
	return reeve.TasksChanged{Task: m.source, Other: &m.dest, Moved: len(m.items), Links: links}, err
}
