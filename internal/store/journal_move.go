package store

import (
	"context"
	"slices"

	"reeve"
)

// ItemMoveDraft is a drafted move of checklist items.
type ItemMoveDraft struct {
	Draft
	from   reeve.Checklist
	source reeve.Task
	to     reeve.Checklist // without an id if it is to be created
	dest   reeve.Task      // without an id if it is to be created
	items  []reeve.ChecklistItem
	reopen bool
}

// selectItems selects the items with these ids, in their order in the checklist.
func (m *ItemMoveDraft) selectItems(ids []string) error {
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
		m.addBase(i.Record)
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

// loadSource reads the checklist, its task and the items to move.
func (m *ItemMoveDraft) loadSource(ctx context.Context, r *JournalReader, list string, items []string,
	preserve *bool) (err error) {
	if m.from, m.source, err = r.Checklist(ctx, list); err != nil {
		return err
	}
	m.addBase(m.from.Record)
	m.addBase(m.source.Record)
	m.reopen = preserve != nil && !*preserve
	return m.selectItems(items)
}

// render describes the move in the draft's lines.
func (m *ItemMoveDraft) render(to string) {
	m.addLine("Move %d of %d items from checklist %q (%s) of task %q to %s:", len(m.items), len(m.from.Items),
		m.from.Title,
		m.from.ID, m.source.Title, to)
	for _, i := range m.items {
		m.addLine("  %s %s (%s)", renderCheckbox(i.Checked && !m.reopen), i.Title, i.ID)
	}
}

func renderCheckbox(checked bool) string {
	if checked {
		return "[x]"
	}
	return "[ ]"
}

// MoveItems drafts a move of items to the end of another checklist.
func (r *JournalReader) MoveItems(ctx context.Context, in reeve.ChecklistItemMove) (m ItemMoveDraft, err error) {
	if in.FromID == in.ToID {
		return m, reeve.InvalidField("/to_checklist_id", "is the checklist of the items", "another checklist")
	}
	if err := m.loadSource(ctx, r, in.FromID, in.ItemIDs, in.PreserveState); err != nil {
		return m, err
	}
	if m.to, m.dest, err = r.Checklist(ctx, in.ToID); err != nil {
		return m, err
	}
	m.addBase(m.to.Record)
	m.addBase(m.dest.Record)
	for _, i := range m.to.Items {
		m.addBase(i.Record)
	}
	if len(m.to.Items)+len(m.items) > maxItems {
		return m, tooManyItems("/item_ids")
	}
	m.render("the end of checklist " + quoteWithID(m.to.Title, m.to.ID) + " of task " + quoteWithID(m.dest.Title,
		m.dest.ID))
	return m, nil
}

func quoteWithID(title, id string) string { return "\"" + title + "\" (" + id + ")" }

// SplitItems drafts a move of items to a new task.
func (r *JournalReader) SplitItems(ctx context.Context, in reeve.ChecklistItemSplit) (m ItemMoveDraft, err error) {
	if err := m.loadSource(ctx, r, in.FromID, in.ItemIDs, in.PreserveState); err != nil {
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
	m.addLine("Create task %q in category %s, linked to task %q (%s).", m.dest.Title, category, m.source.Title,
		m.source.ID)
	m.render("its checklist \"" + m.to.Title + "\"")
	return m, nil
}

// moveItems writes the items of a move to their new checklist.
func (w *JournalWriter) moveItems(ctx context.Context, m *ItemMoveDraft) error {
	w.emitListChange(m.from, m.source.CategoryID)
	w.emitListChange(m.to, m.dest.CategoryID)
	next := nextPosition(m.to)
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

// ApplyMove moves items and returns both checklists. If base is not empty, it must be the base of the current draft.
func (w *JournalWriter) ApplyMove(ctx context.Context, in reeve.ChecklistItemMove,
	base string) ([]reeve.Checklist, error) {
	m, err := w.MoveItems(ctx, in)
	if err == nil {
		err = m.CheckBase(base)
	}
	if err == nil {
		err = w.moveItems(ctx, &m)
	}
	return []reeve.Checklist{m.from, m.to}, err
}

// ApplySplit moves items to a new task. If base is not empty, it must be the base of the current draft.
func (w *JournalWriter) ApplySplit(ctx context.Context, in reeve.ChecklistItemSplit,
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
	if err := w.moveItems(ctx, &m); err != nil {
		return out, err
	}
	links, err := w.ensureLinks(ctx, m.source.ID, m.dest.ID, reeve.SplitInto, reeve.SplitFrom)
	return reeve.TasksChanged{Task: m.source, Other: &m.dest, Moved: len(m.items), Links: links}, err
}
