package journal

import (
	"context"
	"slices"

	"reeve"
	"reeve/internal/store"
)

// The capabilities of the pack. An agent's kind has those that its profile lists.
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

// personal lists the capabilities over what is a user's own. On nobody's behalf there is no such thing, and nobody
// could see or stop what was written.
var personal = []string{TimeRead, TimeWrite, DayPlanRead, DayPlanWrite, RatingRead, RatingWrite}

// Pack is the tools of the journal.
type Pack struct{ DB *store.DB }

// Tools gives all of them.
func (p *Pack) Tools() []reeve.Tool {
	return slices.Concat(p.categoryTools(), p.taskTools(), p.conclusionTools(), p.checklistTools(), p.timeTools(),
		p.planTools(), p.ratingTools())
}

// answer is what a write says: the ids it changed, and what they are now.
type answer struct {
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

// toucher notes what a call's arguments name, for the gate to judge it by.
type toucher[In any] func(context.Context, *store.JournalReader, In) error

// reader does a read.
type reader[In, Out any] func(context.Context, *store.JournalReader, In) (Out, error)

// writer makes a change. The invocation is there for its base and for the way back.
type writer[In any] func(context.Context, *store.JournalWriter, In, *reeve.Invocation) (answer, error)

// drafter works a change out without making it.
type drafter[In any] func(context.Context, *store.JournalReader, In) (*store.Draft, error)

// hand is who calls, with what it may touch.
func hand(inv *reeve.Invocation) store.JournalScope {
	return store.JournalScope{Workspace: inv.Workspace, User: inv.User, Agent: inv.Agent, Operation: inv.Operation,
		Categories: inv.Categories}
}

// common is what all tools of the pack are.
func common(t reeve.Tool) reeve.Tool {
	t.Category, t.Pack, t.TimeoutMS = "journal", "journal", 10_000
	return t
}

// read makes a tool that reads.
func read[In, Out any](p *Pack, t reeve.Tool, names toucher[In], do reader[In, Out]) reeve.Tool {
	t.Effect = reeve.Read
	t = reeve.MustTool(common(t), func(ctx context.Context, in In) (out Out, err error) {
		who := hand(reeve.InvocationFrom(ctx))
		err = p.DB.View(ctx, func(s *store.Snap) error {
			out, err = do(ctx, s.Journal(who), in)
			return err
		})
		return out, err
	})
	t.Categories = categories(p, t.Capability, names)
	return t
}

// write makes a tool that changes something, in the transaction that records it.
func write[In any](p *Pack, t reeve.Tool, names toucher[In], do writer[In]) reeve.Tool {
	t.Effect = reeve.Local
	t = reeve.MustTool(common(t), func(ctx context.Context, in In) (out answer, err error) {
		tx, err := store.TxFrom(ctx)
		if err != nil {
			return out, err
		}
		inv := reeve.InvocationFrom(ctx)
		if err := scoped(inv, t.Capability); err != nil {
			return out, err
		}
		w, err := tx.JournalWriter(ctx, hand(inv))
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
	t.Categories = categories(p, t.Capability, names)
	return t
}

// previewed gives a tool its preview. A tool with one is of high risk.
func previewed[In any](p *Pack, t reeve.Tool, draft drafter[In]) reeve.Tool {
	t.Risk, t.Previews = reeve.HighRisk, true
	t.Preview = func(ctx context.Context, inv *reeve.Invocation) (out reeve.Preview, err error) {
		in, err := reeve.Args[In](inv)
		if err != nil {
			return out, err
		}
		err = p.DB.View(ctx, func(s *store.Snap) error {
			d, err := draft(ctx, s.Journal(hand(inv)), in)
			if err == nil {
				out = reeve.Preview{Change: d.Text(), Base: d.Base()}
			}
			return err
		})
		return out, err
	}
	return t
}

// scoped refuses an agent that was given no category, and what is a user's own where there is no user.
func scoped(inv *reeve.Invocation, capability string) error {
	if len(inv.Categories) > 0 && inv.User == "" && slices.Contains(personal, capability) {
		return reeve.Errorf(reeve.Denied,
			"time, plans and ratings belong to a user, and this call is on nobody's behalf").
			Hintf("a schedule, a conversation and a wake by hand are on somebody's behalf; a change that wakes an " +
				"agent is not")
	}
	if len(inv.Categories) > 0 {
		return nil
	}
	return reeve.Errorf(reeve.OutOfScope, "the agent may touch no category").
		Hintf("give it the ids of categories: reeve agents update AGENT --category cat_...")
}

// categories judges by all that the arguments name, whether or not the agent may touch it: to refuse is the gate's.
// What is wrong with one of them is said only if the agent may touch the others.
func categories[In any](p *Pack, capability string, names toucher[In]) reeve.Classifier {
	return func(ctx context.Context, inv *reeve.Invocation) (seen []string, err error) {
		if err := scoped(inv, capability); err != nil {
			return nil, err
		}
		in, err := reeve.Args[In](inv)
		if err != nil || names == nil {
			return nil, err
		}
		who := hand(inv)
		who.All = true
		err = p.DB.View(ctx, func(s *store.Snap) error {
			r := s.Journal(who)
			err := names(ctx, r, in)
			seen = r.SeenCategories()
			return err
		})
		if slices.ContainsFunc(seen, func(c string) bool { return !slices.Contains(inv.Categories, c) }) {
			return seen, nil
		}
		return seen, err
	}
}
