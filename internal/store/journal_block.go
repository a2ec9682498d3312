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
	h := recordScanner{record: &b.Record}
	var start, startOffset, end, endOffset int64
	err = h.scan(r, &b.PlanID, &b.CategoryID, &b.TaskID, &start, &startOffset, &end, &endOffset, &b.Note)
	b.StartsAt, b.EndsAt = reeve.InOffset(start, startOffset), reeve.InOffset(end, endOffset)
	return b, err
}

// listBlocks returns the blocks of a plan that are in the scope, ordered by time.
func (r *JournalReader) listBlocks(ctx context.Context, plan string) ([]reeve.PlanBlock, error) {
	var c whereClause
	c.add("plan_id = ? AND deleted_at = 0", plan)
	r.addScope(&c, "category_id")
	return queryAll(ctx, r.snap, scanBlock, `SELECT `+recordColumns+blockColumns+` FROM plan_blocks WHERE `+c.String()+
		` ORDER BY starts_at, ends_at, id`, c.args...)
}

// getBlock returns a block of a plan.
func (r *JournalReader) getBlock(ctx context.Context, plan reeve.DayPlan, id string) (reeve.PlanBlock, error) {
	b, ok, err := findRecord(ctx, r, scanBlock, "plan_blocks", blockColumns, id, false)
	if err == nil && (!ok || b.PlanID != plan.ID) {
		err = notFound("plan block", id)
	}
	if err == nil {
		err = r.useCategory(b.CategoryID)
	}
	return b, err
}

// getOwnBlock returns a block of any plan of the user.
func (r *JournalReader) getOwnBlock(ctx context.Context, id string) (reeve.PlanBlock, error) {
	b, ok, err := findRecord(ctx, r, scanBlock, "plan_blocks", blockColumns, id, false)
	if err != nil || !ok {
		return b, orNotFound(err, "plan block", id)
	}
	p, ok, err := findRecord(ctx, r, scanPlan, "day_plans", planColumns, b.PlanID, false)
	if err != nil || !ok || p.UserID != r.scope.User {
		return b, orNotFound(err, "plan block", id)
	}
	return b, r.useCategory(b.CategoryID)
}

func orNotFound(err error, what, id string) error {
	if err != nil {
		return err
	}
	return notFound(what, id)
}

func (w *JournalWriter) putBlock(ctx context.Context, b *reeve.PlanBlock) error {
	w.emitChange(reeve.KeyDayPlan, b.CategoryID)
	w.emit(reeve.EntityID, b.TaskID)
	return w.putRecord(ctx, "plan_blocks", blockColumns, &b.Record, b.PlanID, b.CategoryID, b.TaskID,
		b.StartsAt.UnixMilli(),
		utcOffset(b.StartsAt),
		b.EndsAt.UnixMilli(), utcOffset(b.EndsAt), b.Note)
}

// blockEdit is the creation, change or deletion of a block. was is nil for a creation, is is nil for a deletion.
type blockEdit struct{ was, is *reeve.PlanBlock }

// isNoop reports whether the block stays the same.
func (e blockEdit) isNoop() bool {
	return e.was != nil && e.is != nil && renderBlock(*e.was) == renderBlock(*e.is)
}

// renderBlock returns the content of a block as text.
func renderBlock(b reeve.PlanBlock) string {
	s := b.StartsAt.Format(time.RFC3339) + " – " + b.EndsAt.Format(time.RFC3339) + " in " + b.CategoryID
	if b.TaskID != "" {
		s += " for " + b.TaskID
	}
	if b.Note != "" {
		s += ": " + b.Note
	}
	return s
}

// PlanDraft is a drafted change of a day's blocks.
type PlanDraft struct {
	Draft
	plan  reeve.DayPlan
	edits []blockEdit
}

// render describes the change in the draft's lines and drops edits without effect.
func (p *PlanDraft) render() {
	p.edits = slices.DeleteFunc(p.edits, blockEdit.isNoop)
	for _, e := range p.edits {
		switch {
		case e.was == nil:
			p.addLine("+ %s", renderBlock(*e.is))
		case e.is == nil:
			p.addLine("- %s (%s)", renderBlock(*e.was), e.was.ID)
		default:
			p.addLine("- %s (%s)", renderBlock(*e.was), e.was.ID)
			p.addLine("+ %s (%s)", renderBlock(*e.is), e.was.ID)
		}
	}
}

// PlanBlocks drafts a change of some blocks of a day.
func (r *JournalReader) PlanBlocks(ctx context.Context, day string, in reeve.PlanChange) (p PlanDraft, err error) {
	if err := reeve.CheckDistinct("/deletes", in.Deletes); err != nil {
		return p, err
	}
	if len(in.Upserts)+len(in.Deletes) == 0 {
		return p, reeve.InvalidField("", "has no block", "upserts or deletes")
	}
	if p.plan, err = r.Plan(ctx, day); err != nil {
		return p, err
	}
	if p.edits, err = r.draftBlocks(ctx, p.plan, "/upserts", in.Upserts); err != nil {
		return p, err
	}
	for _, id := range in.Deletes {
		b, err := r.getBlock(ctx, p.plan, id)
		if err != nil {
			return p, err
		}
		if slices.ContainsFunc(in.Upserts, func(d reeve.BlockDraft) bool { return d.ID == id }) {
			return p, reeve.InvalidField("/deletes", "contains a block that is also in upserts", "each block once")
		}
		p.edits = append(p.edits, blockEdit{was: &b})
	}
	p.render()
	return p, nil
}

// Replan drafts a new plan of a day. It covers only the blocks in the scope.
func (r *JournalReader) Replan(ctx context.Context, day string, in reeve.PlanReplacement) (p PlanDraft, err error) {
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
		p.addBase(b.Record)
		named := slices.ContainsFunc(p.edits, func(e blockEdit) bool { return e.was != nil && e.was.ID == b.ID })
		if !named && !b.StartsAt.Before(from) {
			p.edits = append(p.edits, blockEdit{was: &b})
		}
	}
	p.render()
	return p, nil
}

// UpsertBlocks changes some blocks of a day.
func (w *JournalWriter) UpsertBlocks(ctx context.Context, day string, in reeve.PlanChange) (reeve.DayPlan, error) {
	p, err := w.PlanBlocks(ctx, day, in)
	if err != nil {
		return p.plan, err
	}
	return w.applyPlan(ctx, p)
}

// ApplyReplan replaces the blocks of a day. If base is not empty, it must be the base of the current draft.
func (w *JournalWriter) ApplyReplan(ctx context.Context, day string, in reeve.PlanReplacement,
	base string) (reeve.DayPlan, error) {
	p, err := w.Replan(ctx, day, in)
	if err == nil {
		err = p.CheckBase(base)
	}
	if err != nil {
		return p.plan, err
	}
	return w.applyPlan(ctx, p)
}

// applyPlan writes a drafted change of blocks.
func (w *JournalWriter) applyPlan(ctx context.Context, p PlanDraft) (reeve.DayPlan, error) {
	if len(p.edits) == 0 {
		return p.plan, nil
	}
	if err := w.putPlan(ctx, &p.plan); err != nil {
		return p.plan, err
	}
	for _, e := range p.edits {
		b := e.is
		if e.was != nil {
			w.emitChange(reeve.KeyDayPlan, e.was.CategoryID)
		}
		if b == nil {
			b = e.was
			w.markDeleted(&b.Record)
		} else if b.ID == "" {
			b.ID = w.newID(reeve.PrefixPlanBlock)
		}
		if err := w.putBlock(ctx, b); err != nil {
			return p.plan, err
		}
	}
	return w.Plan(ctx, p.plan.Day)
}
