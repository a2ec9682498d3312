package store

import (
	"context"
	"slices"

	"reeve"
)

// CarryOverDraft is a drafted follow-up or rollover. Open items move from one task to another, which may be new.
type CarryOverDraft struct {
	Draft
	source   reeve.Task
	closeAs  reeve.TaskStatus // the new status of source; empty means no change
	dest     *reeve.Task      // without an id if it is to be created; nil if there is nothing to move
	lists    []carriedList
	moved    int
	forward  reeve.Relation
	backward reeve.Relation
}

// carriedList is a checklist with open items.
type carriedList struct {
	from reeve.Checklist
	open []reeve.ChecklistItem
}

// loadSource reads the task and its open items.
func (c *CarryOverDraft) loadSource(ctx context.Context, r *JournalReader, task string) (err error) {
	if c.source, err = r.Task(ctx, task); err != nil {
		return err
	}
	c.addBase(c.source.Record)
	lists, err := r.Checklists(ctx, task)
	if err != nil {
		return err
	}
	for _, l := range lists {
		c.addBase(l.Record)
		open := slices.Clone(l.Items)
		for _, i := range l.Items {
			c.addBase(i.Record)
		}
		open = slices.DeleteFunc(open, func(i reeve.ChecklistItem) bool { return i.Checked })
		if len(open) > 0 {
			c.lists = append(c.lists, carriedList{l, open})
			c.moved += len(open)
		}
	}
	return nil
}

// render describes the change in the draft's lines.
func (c *CarryOverDraft) render() {
	switch {
	case c.dest == nil:
	case c.dest.ID == "":
		c.addLine("Create task %q in category %s with %d labels, linked to task %q (%s) in both directions.",
			c.dest.Title,
			c.dest.CategoryID,
			len(c.dest.LabelIDs), c.source.Title, c.source.ID)
	default:
		c.addLine("Link task %q (%s) and task %q (%s) in both directions.", c.source.Title, c.source.ID, c.dest.Title,
			c.dest.ID)
	}
	for _, l := range c.lists {
		c.addLine("Move %d open of %d items from checklist %q (%s) to a checklist of that title there:", len(l.open),
			len(l.from.Items), l.from.Title, l.from.ID)
		for _, i := range l.open {
			c.addLine("  [ ] %s (%s)", i.Title, i.ID)
		}
	}
	if c.closeAs != "" && c.closeAs != c.source.Status {
		c.addLine("Set task %q (%s) from %s to %s.", c.source.Title, c.source.ID, c.source.Status, c.closeAs)
	}
}

func checkClosing(path string, s reeve.TaskStatus) error {
	if s != "" && !s.IsClosed() {
		return reeve.InvalidField(path, "does not close a task", "done or rejected")
	}
	return nil
}

// FollowUp drafts a task that continues another one.
func (r *JournalReader) FollowUp(ctx context.Context, in reeve.FollowUp) (c CarryOverDraft, err error) {
	c.forward, c.backward, c.closeAs = reeve.FollowedBy, reeve.Follows, in.CloseAs
	if err := checkClosing("/close_source_task_as", in.CloseAs); err != nil {
		return c, err
	}
	if _, err := reeve.CheckTitle("/new_task_title", in.Title); err != nil {
		return c, err
	}
	if err := c.loadSource(ctx, r, in.SourceTaskID); err != nil {
		return c, err
	}
	if in.CarryOver != nil && !*in.CarryOver {
		c.lists, c.moved = nil, 0
	}
	draft := reeve.TaskDraft{CategoryID: c.source.CategoryID, Title: in.Title, Language: c.source.Language,
		Priority: c.source.Priority, LabelIDs: c.source.LabelIDs}
	switch preserve := in.Preserve == nil || *in.Preserve; {
	case preserve && in.CategoryID != "" && in.CategoryID != c.source.CategoryID:
		return c, reeve.InvalidField("/category_id", "is not the category of the source task",
			"set preserve_category_and_labels to false to choose another category")
	case !preserve && in.CategoryID == "":
		return c, reeve.InvalidField("/category_id", "is missing", "the category of the new task")
	case !preserve:
		draft.CategoryID, draft.LabelIDs = in.CategoryID, nil
	}
	return c, c.draftTarget(ctx, r, draft)
}

// draftTarget drafts the new task to which the items move.
func (c *CarryOverDraft) draftTarget(ctx context.Context, r *JournalReader, in reeve.TaskDraft) error {
	t, err := r.draftTask(ctx, in)
	if err != nil {
		return err
	}
	t.LabelIDs = in.LabelIDs
	c.dest = &t
	c.render()
	return nil
}

// Rollover drafts closing a task whose open items move to another task. Without open items, it only closes the task.
func (r *JournalReader) Rollover(ctx context.Context, in reeve.Rollover) (c CarryOverDraft, err error) {
	c.forward, c.backward, c.closeAs = reeve.RolledOverTo, reeve.RolledOverFrom, in.CloseAs
	if c.closeAs == "" {
		c.closeAs = reeve.TaskDone
	}
	if err := checkClosing("/close_as", in.CloseAs); err != nil {
		return c, err
	}
	if in.TargetTaskID != "" && in.Title != "" {
		return c, reeve.InvalidField("/new_task_title", "is for a new task", "either target_task_id or new_task_title")
	}
	if err := c.loadSource(ctx, r, in.TaskID); err != nil {
		return c, err
	}
	if c.source.Status.IsClosed() {
		return c, reeve.Errorf(reeve.Conflict, "task %q is already %s", c.source.ID, c.source.Status).
			Hintf("reopen the task first, or create a follow-up task")
	}
	if in.TargetTaskID != "" {
		return c, c.loadTarget(ctx, r, in.TargetTaskID)
	}
	if c.moved == 0 {
		c.render()
		return c, nil
	}
	title := in.Title
	if title == "" {
		title = c.source.Title
	} else if _, err := reeve.CheckTitle("/new_task_title", title); err != nil {
		return c, err
	}
	return c, c.draftTarget(ctx, r, reeve.TaskDraft{CategoryID: c.source.CategoryID, Title: title,
		Language: c.source.Language, Priority: c.source.Priority,
		LabelIDs: c.source.LabelIDs})
}

// loadTarget reads the existing task to which the items move.
func (c *CarryOverDraft) loadTarget(ctx context.Context, r *JournalReader, id string) error {
	if id == c.source.ID {
		return reeve.InvalidField("/target_task_id", "is the task itself", "another task")
	}
	t, err := r.Task(ctx, id)
	if err != nil {
		return err
	}
	if t.Status.IsClosed() {
		return reeve.InvalidField("/target_task_id", "is a task that is "+string(t.Status), "a task that is not closed")
	}
	c.addBase(t.Record)
	if c.moved > 0 {
		c.dest = &t
	}
	c.render()
	return nil
}

// ApplyFollowUp creates a follow-up task. If base is not empty, it must be the base of the current draft.
func (w *JournalWriter) ApplyFollowUp(ctx context.Context, in reeve.FollowUp, base string) (reeve.TasksChanged, error) {
	c, err := w.FollowUp(ctx, in)
	if err != nil {
		return reeve.TasksChanged{}, err
	}
	return w.applyCarryOver(ctx, c, base)
}

// ApplyRollover closes a task and moves its open items. If base is not empty, it must be the base of the current draft.
func (w *JournalWriter) ApplyRollover(ctx context.Context, in reeve.Rollover, base string) (reeve.TasksChanged, error) {
	c, err := w.Rollover(ctx, in)
	if err != nil {
		return reeve.TasksChanged{}, err
	}
	return w.applyCarryOver(ctx, c, base)
}

// applyCarryOver writes a drafted follow-up or rollover.
func (w *JournalWriter) applyCarryOver(ctx context.Context, c CarryOverDraft, base string) (out reeve.TasksChanged,
	err error) {
	if err := c.CheckBase(base); err != nil {
		return out, err
	}
	if c.dest != nil {
		if out.Links, err = w.moveToTarget(ctx, &c); err != nil {
			return out, err
		}
	}
	if c.closeAs != "" && c.closeAs != c.source.Status {
		c.source.Status, c.source.ClosedAt = c.closeAs, nil
		if err := w.putTask(ctx, &c.source); err != nil {
			return out, err
		}
	}
	out.Task, out.Other, out.Moved = c.source, c.dest, c.moved
	return out, nil
}

// moveToTarget creates the target task if it is new, moves the items to it and links both tasks.
func (w *JournalWriter) moveToTarget(ctx context.Context, c *CarryOverDraft) ([]reeve.Link, error) {
	if c.dest.ID == "" {
		c.dest.ID = w.newID(reeve.PrefixTask)
		labels := c.dest.LabelIDs
		c.dest.LabelIDs = nil
		if err := w.setLabels(ctx, c.dest, reeve.LabelAssignment{Add: labels}); err != nil {
			return nil, err
		}
		if err := w.putTask(ctx, c.dest); err != nil {
			return nil, err
		}
	}
	for _, l := range c.lists {
		to, err := w.addChecklist(ctx, *c.dest, l.from.Title)
		if err != nil {
			return nil, err
		}
		if err := w.moveItems(ctx, &ItemMoveDraft{from: l.from, source: c.source, to: to, dest: *c.dest,
			items: l.open}); err != nil {
			return nil, err
		}
	}
	return w.ensureLinks(ctx, c.source.ID, c.dest.ID, c.forward, c.backward)
}
