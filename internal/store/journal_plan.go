package store

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"reeve"
)

const (
	planColumns = `user_id, day`
	pinColumns  = `plan_id, task_id, position`
)

func scanPlan(r scanner) (p reeve.DayPlan, err error) {
	defer wrapCorrupt("day_plans", &p.ID, &err)
	h := recordScanner{record: &p.Record}
	p.Blocks, p.Pinned = []reeve.PlanBlock{}, []string{}
	return p, h.scan(r, &p.UserID, &p.Day)
}

func scanPin(r scanner) (p reeve.PlanPin, err error) {
	defer wrapCorrupt("plan_pins", &p.ID, &err)
	h := recordScanner{record: &p.Record}
	return p, h.scan(r, &p.PlanID, &p.TaskID, &p.Position)
}

// planID derives the id of a plan from its user and day, so that it is the same on every node.
func (r *JournalReader) planID(day string) string {
	return derivedID(reeve.PrefixDayPlan, r.scope.Workspace, r.scope.User, day)
}

// Plan returns the user's plan of a day, with the blocks and pinned tasks in the scope. If there is none, it returns an
// empty plan with a zero CreatedAt.
func (r *JournalReader) Plan(ctx context.Context, day string) (p reeve.DayPlan, err error) {
	if err := reeve.CheckDay("/plan_date", day); err != nil {
		return p, err
	}
	id := r.planID(day)
	p, ok, err := findRecord(ctx, r, scanPlan, "day_plans", planColumns, id, true)
	if err != nil {
		return p, err
	}
	if !ok {
		p = reeve.DayPlan{Record: reeve.Record{ID: id, WorkspaceID: r.scope.Workspace}, UserID: r.scope.User, Day: day,
			Blocks: []reeve.PlanBlock{}, Pinned: []string{}}
		return p, nil
	}
	if p.Blocks, err = r.listBlocks(ctx, id); err != nil {
		return p, err
	}
	pins, err := r.listPins(ctx, id)
	for _, pin := range pins {
		p.Pinned = append(p.Pinned, pin.TaskID)
	}
	return p, err
}

// listPins returns the pinned tasks of a plan that are in the scope, in order.
func (r *JournalReader) listPins(ctx context.Context, plan string) ([]reeve.PlanPin, error) {
	var c whereClause
	c.add("plan_id = ? AND deleted_at = 0", plan)
	in := whereClause{args: c.args, parts: []string{"t.id = plan_pins.task_id AND t.deleted_at = 0"}}
	r.addScope(&in, "t.category_id")
	return queryAll(ctx, r.snap, scanPin, `SELECT `+recordColumns+pinColumns+` FROM plan_pins WHERE `+c.String()+
		` AND EXISTS (SELECT 1 FROM tasks t WHERE `+in.String()+`) ORDER BY position, task_id`, in.args...)
}

func (w *JournalWriter) putPlan(ctx context.Context, p *reeve.DayPlan) error {
	w.emitChange(reeve.KeyDayPlan)
	p.DeletedAt = nil
	return w.putRecord(ctx, "day_plans", planColumns, &p.Record, p.UserID, p.Day)
}

// GetOrCreatePlan returns the user's plan of a day. It creates the plan if there is none.
func (w *JournalWriter) GetOrCreatePlan(ctx context.Context, day string) (reeve.DayPlan, error) {
	p, err := w.Plan(ctx, day)
	if err == nil && p.CreatedAt.IsZero() {
		err = w.putPlan(ctx, &p)
	}
	return p, err
}

// PinTasks pins tasks at the end of a day's plan, or at in.At, and unpins others. It returns the change that undoes
// this, with the old positions of unpinned tasks.
func (w *JournalWriter) PinTasks(ctx context.Context, day string,
	in reeve.PinChange) (p reeve.DayPlan, undo reeve.PinChange, err error) {
	if err := reeve.CheckDistinct("/task_ids", slices.Concat(in.Pin, in.Unpin)); err != nil {
		return p, undo, err
	}
	if len(in.At) > 0 && (len(in.At) != len(in.Pin) || slices.Min(in.At) < 1) {
		return p, undo, reeve.InvalidField("/positions", "does not match task_ids", "one number from 1 for each task")
	}
	if p, err = w.Plan(ctx, day); err != nil {
		return p, undo, err
	}
	for _, id := range slices.Concat(in.Pin, in.Unpin) {
		if _, err := w.Task(ctx, id); err != nil {
			return p, undo, err
		}
	}
	last, _, err := queryOne(ctx, w.snap, scanValue[int64],
		`SELECT COALESCE(max(position), 0) FROM plan_pins WHERE plan_id = $1 AND deleted_at = 0`, p.ID)
	if err != nil {
		return p, undo, err
	}
	for i, id := range in.Pin {
		if slices.Contains(p.Pinned, id) {
			continue
		}
		last++
		at := last
		if len(in.At) > 0 {
			at = in.At[i]
		}
		if _, err := w.setPin(ctx, p.ID, id, at); err != nil {
			return p, undo, err
		}
		undo.Unpin = append(undo.Unpin, id)
	}
	for _, id := range in.Unpin {
		if !slices.Contains(p.Pinned, id) {
			continue
		}
		was, err := w.setPin(ctx, p.ID, id, 0)
		if err != nil {
			return p, undo, err
		}
		undo.Pin, undo.At = append(undo.Pin, id), append(undo.At, was)
	}
	if len(undo.Pin)+len(undo.Unpin) == 0 {
		return p, undo, nil
	}
	if err := w.putPlan(ctx, &p); err != nil {
		return p, undo, err
	}
	was := p.Pinned
	if p, err = w.Plan(ctx, day); err == nil {
		w.addField(p.ID, "pinned", strings.Join(was, ", "), strings.Join(p.Pinned, ", "))
	}
	return p, undo, err
}

// setPin pins a task to a plan at a position, or unpins it if the position is 0. It returns the old position.
func (w *JournalWriter) setPin(ctx context.Context, plan, task string, position int64) (was int64, err error) {
	id := derivedID(reeve.PrefixPlanPin, w.scope.Workspace, plan, task)
	p, _, err := findRecord(ctx, w.JournalReader, scanPin, "plan_pins", pinColumns, id, true)
	if err != nil {
		return 0, err
	}
	was = p.Position
	p.ID, p.PlanID, p.TaskID, p.DeletedAt = id, plan, task, nil
	if position == 0 {
		w.markDeleted(&p.Record)
	} else {
		p.Position = position
	}
	w.emit(reeve.EntityID, task)
	return was, w.putRecord(ctx, "plan_pins", pinColumns, &p.Record, p.PlanID, p.TaskID, p.Position)
}

// maxBlockDuration is the maximum duration of a block.
const maxBlockDuration = 24 * time.Hour

// draftBlock checks a block and returns it. If the block exists, it also returns the old one, which must be in the
// scope.
func (r *JournalReader) draftBlock(ctx context.Context, plan reeve.DayPlan, path string,
	in reeve.BlockDraft) (b reeve.PlanBlock, was *reeve.PlanBlock, err error) {
	if in.ID != "" {
		old, err := r.getBlock(ctx, plan, in.ID)
		if err != nil {
			return b, nil, err
		}
		b, was = old, &old
	}
	if _, err := r.Category(ctx, in.CategoryID); err != nil {
		return b, was, err
	}
	if in.TaskID != "" {
		t, err := r.Task(ctx, in.TaskID)
		if err != nil {
			return b, was, err
		}
		if t.CategoryID != in.CategoryID {
			return b, was, reeve.InvalidField(path+"/task_id", "is a task of another category",
				"a task of the block's category")
		}
	}
	if b.StartsAt, err = reeve.ParseTimeWithOffset(path+"/start_time", in.StartsAt); err != nil {
		return b, was, err
	}
	if b.EndsAt, err = reeve.ParseTimeWithOffset(path+"/end_time", in.EndsAt); err != nil {
		return b, was, err
	}
	switch {
	case b.StartsAt.Format(time.DateOnly) != plan.Day:
		return b, was, reeve.InvalidField(path+"/start_time", "is not on the plan's day", "a time on "+plan.Day+
			", by its own offset")
	case !b.EndsAt.After(b.StartsAt):
		return b, was, reeve.InvalidField(path+"/end_time", "is not after start_time", "a time after start_time")
	case b.EndsAt.Sub(b.StartsAt) > maxBlockDuration:
		return b, was, reeve.InvalidField(path+"/end_time", "makes the block too long",
			"at most 24 hours after start_time")
	}
	b.PlanID, b.CategoryID, b.TaskID, b.Note = plan.ID, in.CategoryID, in.TaskID, in.Note
	return b, was, reeve.CheckText(path+"/note", in.Note)
}

// draftBlocks checks a list of blocks, in which each id may occur once.
func (r *JournalReader) draftBlocks(ctx context.Context, plan reeve.DayPlan, path string,
	in []reeve.BlockDraft) (out []blockEdit, err error) {
	if err := reeve.CheckCount(path, len(in)); err != nil {
		return nil, err
	}
	var named []string
	for i, d := range in {
		at := path + "/" + strconv.Itoa(i)
		if d.ID != "" && slices.Contains(named, d.ID) {
			return nil, reeve.InvalidField(at+"/id", "occurs twice", "each id once")
		}
		named = append(named, d.ID)
		b, was, err := r.draftBlock(ctx, plan, at, d)
		if err != nil {
			return nil, err
		}
		out = append(out, blockEdit{was: was, is: &b})
	}
	return out, nil
}
