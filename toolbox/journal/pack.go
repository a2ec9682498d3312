package journal

import (
	"context"
	"slices"

	"reeve"
	"reeve/internal/store"
)

// The capabilities of the pack. The profile of an agent's kind lists those that it has.
const (
	CategoryRead   = "category.read"
	TaskRead       = "task.read"
	TaskWrite      = "task.write"
	ChecklistWrite = "checklist.write"
	TimeRead       = "time.read"
	TimeWrite      = "time.write"
	DayPlanRead    = "dayplan.read"
	DayPlanWrite   = "dayplan.write"
	RatingRead     = "rating.read"
	RatingWrite    = "rating.write"
)

// Capabilities lists the capabilities of the pack.
func Capabilities() []string {
	return []string{CategoryRead, TaskRead, TaskWrite, ChecklistWrite, TimeRead, TimeWrite, DayPlanRead, DayPlanWrite,
		RatingRead, RatingWrite}
}

// userCapabilities are the capabilities over data that belongs to a user. A call that acts for no user has no such
// data, and no one could see or stop what it wrote.
var userCapabilities = []string{TimeRead, TimeWrite, DayPlanRead, DayPlanWrite, RatingRead, RatingWrite}

// Pack is the pack of journal tools.
type Pack struct{ DB *store.DB }

// Tools returns all journal tools.
func (p *Pack) Tools() []reeve.Tool {
	return slices.Concat(p.categoryTools(), p.taskTools(), p.conclusionTools(), p.checklistTools(), p.timeTools(),
		p.planTools(), p.ratingTools(), p.changeTools())
}

// writeResult is the result of a write: the ids that it changed and their new contents.
type writeResult struct {
	Changed    []string          `json:"changed_ids"`
	Task       *reeve.Task       `json:"task,omitempty"`
	Other      *reeve.Task       `json:"other_task,omitempty"`
	Moved      *int              `json:"moved_items,omitempty"`
	Links      []reeve.Link      `json:"links,omitempty"`
	Checklist  *reeve.Checklist  `json:"checklist,omitempty"`
	Checklists []reeve.Checklist `json:"checklists,omitempty"`
	TimeEntry  *reeve.TimeEntry  `json:"time_entry,omitempty"`
	Plan       *reeve.DayPlan    `json:"day_plan,omitempty"`
	Rating     *reeve.Rating     `json:"rating,omitempty"`
}

// touchFunc records the entities that the arguments of a call name, so that the gate can check their categories.
type touchFunc[In any] func(context.Context, *store.JournalReader, In) error

// readFunc performs a read.
type readFunc[In, Out any] func(context.Context, *store.JournalReader, In) (Out, error)

// writeFunc makes a change. It uses the invocation for the base and to set the undo call.
type writeFunc[In any] func(context.Context, *store.JournalWriter, In, *reeve.Invocation) (writeResult, error)

// draftFunc computes a change without making it.
type draftFunc[In any] func(context.Context, *store.JournalReader, In) (*store.Draft, error)

// scopeOf returns the caller and the categories that it may access.
func scopeOf(inv *reeve.Invocation) store.JournalScope {
	return store.JournalScope{Workspace: inv.Workspace, User: inv.User, Agent: inv.Agent, Operation: inv.Operation,
		Run: inv.Run, Categories: inv.Categories}
}

// withPack sets the fields that all tools of the pack share.
func withPack(t reeve.Tool) reeve.Tool {
	t.Category, t.Pack, t.TimeoutMS = "journal", "journal", 10_000
	return t
}

// newReadTool returns a tool that reads.
func newReadTool[In, Out any](p *Pack, t reeve.Tool, names touchFunc[In], do readFunc[In, Out]) reeve.Tool {
	t.Effect = reeve.Read
	t = reeve.MustTool(withPack(t), func(ctx context.Context, in In) (out Out, err error) {
		who := scopeOf(reeve.InvocationFrom(ctx))
		err = p.DB.View(ctx, func(s *store.Snap) error {
			out, err = do(ctx, s.Journal(who), in)
			return err
		})
		return out, err
	})
	t.Categories = newClassifier(p, t.Capability, names)
	return t
}

// newWriteTool returns a tool that makes a change in the transaction that records the call.
func newWriteTool[In any](p *Pack, t reeve.Tool, names touchFunc[In], do writeFunc[In]) reeve.Tool {
	t.Effect = reeve.Local
	t = reeve.MustTool(withPack(t), func(ctx context.Context, in In) (out writeResult, err error) {
		tx, err := store.TxFrom(ctx)
		if err != nil {
			return out, err
		}
		inv := reeve.InvocationFrom(ctx)
		if err := checkScope(inv, t.Capability); err != nil {
			return out, err
		}
		w, err := tx.JournalWriter(ctx, scopeOf(inv))
		if err != nil {
			return out, err
		}
		if out, err = do(ctx, w, in, inv); err != nil {
			return out, err
		}
		out.Changed = w.Changed()
		inv.EmitAll(w.Tokens())
		return out, w.Finish(ctx)
	})
	t.Categories = newClassifier(p, t.Capability, names)
	return t
}

// withPreview adds a preview to a tool and marks the tool as high risk.
func withPreview[In any](p *Pack, t reeve.Tool, draft draftFunc[In]) reeve.Tool {
	t.Risk, t.Previews = reeve.HighRisk, true
	t.Preview = func(ctx context.Context, inv *reeve.Invocation) (out reeve.Preview, err error) {
		in, err := reeve.Args[In](inv)
		if err != nil {
			return out, err
		}
		err = p.DB.View(ctx, func(s *store.Snap) error {
			d, err := draft(ctx, s.Journal(scopeOf(inv)), in)
			if err == nil {
				out = reeve.Preview{Change: d.Text(), Base: d.Base()}
			}
			return err
		})
		return out, err
	}
	return t
}

// checkScope refuses an agent without categories, and access to a user's data by a call that acts for no user.
func checkScope(inv *reeve.Invocation, capability string) error {
	if len(inv.Categories) > 0 && inv.User == "" && slices.Contains(userCapabilities, capability) {
		return reeve.Errorf(reeve.Denied,
			"time, plans and ratings belong to a user, and this call acts for no user").
			Hintf("conversations, manual wakes, schedules and subscriptions act for the user who made them")
	}
	if len(inv.Categories) > 0 {
		return nil
	}
	return reeve.Errorf(reeve.OutOfScope, "the agent has access to no category").
		Hintf("add categories: reeve agents update AGENT --category cat_...")
}

// newClassifier returns a function that lists the categories of everything that the arguments name, whether or not the
// agent may access them. The gate decides. Errors in the arguments are returned only if the agent may access all of
// these categories.
func newClassifier[In any](p *Pack, capability string, names touchFunc[In]) reeve.Classifier {
	return func(ctx context.Context, inv *reeve.Invocation) (seen []string, err error) {
		if err := checkScope(inv, capability); err != nil {
			return nil, err
		}
		in, err := reeve.Args[In](inv)
		if err != nil || names == nil {
			return nil, err
		}
		who := scopeOf(inv)
		who.All = true
		err = p.DB.View(ctx, func(s *store.Snap) error {
			r := s.Journal(who)
			err := names(ctx, r, in)
			seen = r.UsedCategories()
			return err
		})
		if slices.ContainsFunc(seen, func(c string) bool { return !slices.Contains(inv.Categories, c) }) {
			return seen, nil
		}
		return seen, err
	}
}
