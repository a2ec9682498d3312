package store

import (
	"context"
	"slices"

	"reeve"
)

// CarryOverDraft is a follow-up or a rollover that was worked out and not made: open items go from one task to another,
// which may be a new one.
type CarryOverDraft struct {
	Draft
	source  reeve.Task
	closeAs reeve.TaskStatus // empty leaves it as it is
	dest    *reeve.Task      // its id is empty when it is to be made; nil when there is nothing to carry
	lists   []carriedList
	moved   int
	there   reeve.Relation
	back    reeve.Relation
}

// carriedList is a checklist with open items.
type carriedList struct {
	from reeve.Checklist
	open []reeve.ChecklistItem
}

// gather reads the task and its open items, checklist by checklist, in order.
func (c *CarryOverDraft) gather(ctx context.Context, r *JournalReader, task string) (err error) {
	if c.source, err = r.Task(ctx, task); err != nil {
		return err
	}
	c.rest(c.source.Record)
	lists, err := r.Checklists(ctx, task)
	if err != nil {
		return err
	}
	for _, l := range lists {
		c.rest(l.Record)
		open := slices.Clone(l.Items)
		for _, i := range l.Items {
			c.rest(i.Record)
		}
		open = slices.DeleteFunc(open, func(i reeve.ChecklistItem) bool { return i.Checked })
		if len(open) > 0 {
			c.lists = append(c.lists, carriedList{l, open})
			c.moved += len(open)
		}
	}
	return nil
}

// tell writes the change in words.
func (c *CarryOverDraft) tell() {
	switch {
	case c.dest == nil:
	case c.dest.ID == "":
		c.say("Create task %q in category %s with %d labels, linked to task %q (%s) in both directions.", c.dest.Title,
			c.dest.CategoryID,
			len(c.dest.LabelIDs), c.source.Title, c.source.ID)
	default:
		c.say("Link task %q (%s) and task %q (%s) in both directions.", c.source.Title, c.source.ID, c.dest.Title,
			c.dest.ID)
	}
	for _, l := range c.lists {
		c.say("Move %d open of %d items from checklist %q (%s) to a checklist of that title there:", len(l.open),
			len(l.from.Items), l.from.Title, l.from.ID)
		for _, i := range l.open {
			c.say("  [ ] %s (%s)", i.Title, i.ID)
		}
	}
	if c.closeAs != "" && c.closeAs != c.source.Status {
		c.say("Set task %q (%s) from %s to %s.", c.source.Title, c.source.ID, c.source.Status, c.closeAs)
	}
}

func checkClosing(path string, s reeve.TaskStatus) error {
	if s != "" && !s.Closed() {
		return reeve.InvalidField(path, "does not close a task", "done or rejected")
	}
	return nil
}

// FollowUp works out a task that goes on where another ends.
func (r *JournalReader) FollowUp(ctx context.Context, in reeve.FollowUp) (c CarryOverDraft, err error) {
	c.there, c.back, c.closeAs = reeve.FollowedBy, reeve.Follows, in.CloseAs
	if err := checkClosing("/close_source_task_as", in.CloseAs); err != nil {
		return c, err
	}
	if _, err := reeve.CheckTitle("/new_task_title", in.Title); err != nil {
		return c, err
	}
	if err := c.gather(ctx, r, in.SourceTaskID); err != nil {
		return c, err
	}
	if in.CarryOver != nil && !*in.CarryOver {
		c.lists, c.moved = nil, 0
	}
	draft := reeve.TaskDraft{CategoryID: c.source.CategoryID, Title: in.Title, Language: c.source.Language,
		Priority: c.source.Priority, LabelIDs: c.source.LabelIDs}
	switch preserve := in.Preserve == nil || *in.Preserve; {
	case preserve && in.CategoryID != "" && in.CategoryID != c.source.CategoryID:
		return c, reeve.InvalidField("/category_id", "is not the source task's",
			"preserve_category_and_labels false to choose another")
	case !preserve && in.CategoryID == "":
		return c, reeve.InvalidField("/category_id", "is missing", "the category of the new task")
	case !preserve:
		draft.CategoryID, draft.LabelIDs = in.CategoryID, nil
	}
	return c, c.draft(ctx, r, draft)
}

// draft makes the task that the items go to.
func (c *CarryOverDraft) draft(ctx context.Context, r *JournalReader, in reeve.TaskDraft) error {
	t, err := r.draftTask(ctx, in)
	if err != nil {
		return err
	}
	t.LabelIDs = in.LabelIDs
	c.dest = &t
	c.tell()
	return nil
}

// Rollover works out the conclusion of a task whose open items go on. Without any, the task is closed and that is all.
func (r *JournalReader) Rollover(ctx context.Context, in reeve.Rollover) (c CarryOverDraft, err error) {
	c.there, c.back, c.closeAs = reeve.RolledOverTo, reeve.RolledOverFrom, in.CloseAs
	if c.closeAs == "" {
		c.closeAs = reeve.TaskDone
	}
	if err := checkClosing("/close_as", in.CloseAs); err != nil {
		return c, err
	}
	if in.TargetTaskID != "" && in.Title != "" {
		return c, reeve.InvalidField("/new_task_title", "is for a new task", "either target_task_id or new_task_title")
	}
	if err := c.gather(ctx, r, in.TaskID); err != nil {
		return c, err
	}
	if c.source.Status.Closed() {
		return c, reeve.Errorf(reeve.Conflict, "task %q is %s already", c.source.ID, c.source.Status).
			Hintf("reopen it first, or make a follow-up task")
	}
	if in.TargetTaskID != "" {
		return c, c.target(ctx, r, in.TargetTaskID)
	}
	if c.moved == 0 {
		c.tell()
		return c, nil
	}
	title := in.Title
	if title == "" {
		title = c.source.Title
	} else if _, err := reeve.CheckTitle("/new_task_title", title); err != nil {
		return c, err
	}
	return c, c.draft(ctx, r, reeve.TaskDraft{CategoryID: c.source.CategoryID, Title: title,
		Language: c.source.Language, Priority: c.source.Priority,
		LabelIDs: c.source.LabelIDs})
}

// target reads the existing task that the items go to.
func (c *CarryOverDraft) target(ctx context.Context, r *JournalReader, id string) error {
	if id == c.source.ID {
		return reeve.InvalidField("/target_task_id", "is the task itself", "another task")
	}
	t, err := r.Task(ctx, id)
	if err != nil {
		return err
	}
	if t.Status.Closed() {
		return reeve.InvalidField("/target_task_id", "is a task that is "+string(t.Status), "a task that is not closed")
	}
	c.rest(t.Record)
	if c.moved > 0 {
		c.dest = &t
	}
	c.tell()
	return nil
}

// ApplyFollowUp makes a follow-up task, if base is empty or still holds.
func (w *JournalWriter) ApplyFollowUp(ctx context.Context, in reeve.FollowUp, base string) (reeve.TasksChanged, error) {
	c, err := w.FollowUp(ctx, in)
	if err != nil {
		return reeve.TasksChanged{}, err
	}
	return w.carry(ctx, c, base)
}

// ApplyRollover concludes a task, if base is empty or still holds.
func (w *JournalWriter) ApplyRollover(ctx context.Context, in reeve.Rollover, base string) (reeve.TasksChanged, error) {
	c, err := w.Rollover(ctx, in)
	if err != nil {
		return reeve.TasksChanged{}, err
	}
	return w.carry(ctx, c, base)
}

func (w *JournalWriter) carry(ctx context.Context, c CarryOverDraft, base string) (out reeve.TasksChanged, err error) {
	if err := c.CheckBase(base); err != nil {
		return out, err
	}
	if c.dest != nil {
		if out.Links, err = w.carryTo(ctx, &c); err != nil {
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

// carryTo makes the other task where it is new, and gives it the items.
func (w *JournalWriter) carryTo(ctx context.Context, c *CarryOverDraft) ([]reeve.Link, error) {
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
		if err := w.move(ctx, &ItemMoveDraft{from: l.from, source: c.source, to: to, dest: *c.dest,
			items: l.open}); err != nil {
			return nil, err
		}
	}
	return w.linkBoth(ctx, c.source.ID, c.dest.ID, c.there, c.back)
}
