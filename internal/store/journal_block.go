package store

import (
	"context"
	"slices"
	"time"

	"reeve"
)

const blockColumns = `plan_id, category_id, task_id, starts_at, start_offset, ends_at, end_offset, note`

func scanBlock(r scanner) (b reeve.PlanBlock, err error) {
	defer wrapCorrupt("plan_blocks", &b.ID, &err)
	h := head{to: &b.Record}
	var start, startOffset, end, endOffset int64
	err = h.scan(r, &b.PlanID, &b.CategoryID, &b.TaskID, &start, &startOffset, &end, &endOffset, &b.Note)
	b.StartsAt, b.EndsAt = reeve.InOffset(start, startOffset), reeve.InOffset(end, endOffset)
	return b, err
}

// blocks reads the blocks of a plan that the hand sees, in the order of their times.
func (r *JournalReader) blocks(ctx context.Context, plan string) ([]reeve.PlanBlock, error) {
	var c clause
	c.add("plan_id = ? AND deleted_at = 0", plan)
	r.within(&c, "category_id")
	return all(ctx, r.snap, scanBlock, `SELECT `+recordColumns+blockColumns+` FROM plan_blocks WHERE `+c.String()+
		` ORDER BY starts_at, ends_at, id`, c.args...)
}

// block reads a block of a plan.
func (r *JournalReader) block(ctx context.Context, plan reeve.DayPlan, id string) (reeve.PlanBlock, error) {
	b, ok, err := record(ctx, r, scanBlock, "plan_blocks", blockColumns, id, false)
	if err == nil && (!ok || b.PlanID != plan.ID) {
		err = notFound("plan block", id)
	}
	if err == nil {
		err = r.see(b.CategoryID)
	}
	return b, err
}

// ownBlock reads a block of any of the user's plans.
func (r *JournalReader) ownBlock(ctx context.Context, id string) (reeve.PlanBlock, error) {
	b, ok, err := record(ctx, r, scanBlock, "plan_blocks", blockColumns, id, false)
	if err != nil || !ok {
		return b, orNotFound(err, "plan block", id)
	}
	p, ok, err := record(ctx, r, scanPlan, "day_plans", planColumns, b.PlanID, false)
	if err != nil || !ok || p.UserID != r.who.User {
		return b, orNotFound(err, "plan block", id)
	}
	return b, r.see(b.CategoryID)
}

func orNotFound(err error, what, id string) error {
	if err != nil {
		return err
	}
	return notFound(what, id)
}

func (w *JournalWriter) putBlock(ctx context.Context, b *reeve.PlanBlock) error {
	w.tell(reeve.KeyDayPlan, b.CategoryID)
	w.emit(reeve.EntityID, b.TaskID)
	return w.put(ctx, "plan_blocks", blockColumns, &b.Record, b.PlanID, b.CategoryID, b.TaskID, b.StartsAt.UnixMilli(),
		offsetOf(b.StartsAt),
		b.EndsAt.UnixMilli(), offsetOf(b.EndsAt), b.Note)
}

// blockEdit is a change of one block: made, replaced or removed.
type blockEdit struct{ was, is *reeve.PlanBlock }

// same tells whether a block stays as it is.
func (e blockEdit) same() bool {
	return e.was != nil && e.is != nil && blockText(*e.was) == blockText(*e.is)
}

// blockText writes all that is in a block.
func blockText(b reeve.PlanBlock) string {
	s := b.StartsAt.Format(time.RFC3339) + " – " + b.EndsAt.Format(time.RFC3339) + " in " + b.CategoryID
	if b.TaskID != "" {
		s += " for " + b.TaskID
	}
	if b.Note != "" {
		s += ": " + b.Note
	}
	return s
}

// PlanDraft is a change of a day's blocks that was worked out and not made.
type PlanDraft struct {
	Draft
	plan  reeve.DayPlan
	edits []blockEdit
}

// tell writes the change in words.
func (p *PlanDraft) tell() {
	p.edits = slices.DeleteFunc(p.edits, blockEdit.same)
	for _, e := range p.edits {
		switch {
		case e.was == nil:
			p.say("+ %s", blockText(*e.is))
		case e.is == nil:
			p.say("- %s (%s)", blockText(*e.was), e.was.ID)
		default:
			p.say("- %s (%s)", blockText(*e.was), e.was.ID)
			p.say("+ %s (%s)", blockText(*e.is), e.was.ID)
		}
	}
}

// PlanBlocks works out a change of some blocks of a day.
func (r *JournalReader) PlanBlocks(ctx context.Context, day string, in reeve.PlanChange) (p PlanDraft, err error) {
	if err := reeve.CheckDistinct("/deletes", in.Deletes); err != nil {
		return p, err
	}
	if len(in.Upserts)+len(in.Deletes) == 0 {
		return p, reeve.InvalidField("", "names no block", "upserts or deletes")
	}
	if p.plan, err = r.Plan(ctx, day); err != nil {
		return p, err
	}
	if p.edits, err = r.draftBlocks(ctx, p.plan, "/upserts", in.Upserts); err != nil {
		return p, err
	}
	for _, id := range in.Deletes {
		b, err := r.block(ctx, p.plan, id)
		if err != nil {
			return p, err
		}
		if slices.ContainsFunc(in.Upserts, func(d reeve.BlockDraft) bool { return d.ID == id }) {
			return p, reeve.InvalidField("/deletes", "names a block that upserts replaces", "each block once")
		}
		p.edits = append(p.edits, blockEdit{was: &b})
	}
	p.tell()
	return p, nil
}

// Replan works out a new plan of a day, of the blocks that the hand sees: the others are not its to plan.
func (r *JournalReader) Replan(ctx context.Context, day string, in reeve.Replan) (p PlanDraft, err error) {
	var from time.Time
	if in.From != "" {
		if from, err = reeve.ParseTimeWithOffset("/from", in.From); err != nil {
			return p, err
		}
	}
	if p.plan, err = r.Plan(ctx, day); err != nil {
		return p, err
	}
	if p.edits, err = r.draftBlocks(ctx, p.plan, "/blocks", in.Blocks); err != nil {
		return p, err
	}
	for _, b := range p.plan.Blocks {
		p.rest(b.Record)
		named := slices.ContainsFunc(p.edits, func(e blockEdit) bool { return e.was != nil && e.was.ID == b.ID })
		if !named && !b.StartsAt.Before(from) {
			p.edits = append(p.edits, blockEdit{was: &b})
		}
	}
	p.tell()
	return p, nil
}

// UpsertBlocks changes some blocks of a day.
func (w *JournalWriter) UpsertBlocks(ctx context.Context, day string, in reeve.PlanChange) (reeve.DayPlan, error) {
	p, err := w.PlanBlocks(ctx, day, in)
	if err != nil {
		return p.plan, err
	}
	return w.plan(ctx, p)
}

// ApplyReplan replaces the blocks of a day, if base is empty or still holds.
func (w *JournalWriter) ApplyReplan(ctx context.Context, day string, in reeve.Replan,
	base string) (reeve.DayPlan, error) {
	p, err := w.Replan(ctx, day, in)
	if err == nil {
		err = p.CheckBase(base)
	}
	if err != nil {
		return p.plan, err
	}
	return w.plan(ctx, p)
}

// plan writes a change of blocks.
func (w *JournalWriter) plan(ctx context.Context, p PlanDraft) (reeve.DayPlan, error) {
	if len(p.edits) == 0 {
		return p.plan, nil
	}
	if err := w.putPlan(ctx, &p.plan); err != nil {
		return p.plan, err
	}
	for _, e := range p.edits {
		b := e.is
		if e.was != nil {
			w.tell(reeve.KeyDayPlan, e.was.CategoryID)
		}
		if b == nil {
			b = e.was
			w.remove(&b.Record)
		} else if b.ID == "" {
			b.ID = w.newID(reeve.PrefixPlanBlock)
		}
		if err := w.putBlock(ctx, b); err != nil {
			return p.plan, err
		}
	}
	return w.Plan(ctx, p.plan.Day)
}
