package journal

import (
	"context"

	"reeve"
	"reeve/internal/store"
)

type planArgs struct {
	Day string `json:"plan_date" minLength:"10" maxLength:"10" doc:"YYYY-MM-DD"`
}

type blockArgs struct {
	Day string `json:"plan_date" minLength:"10" maxLength:"10" doc:"YYYY-MM-DD"`
	reeve.PlanChange
}

type replanArgs struct {
	Day string `json:"plan_date" minLength:"10" maxLength:"10" doc:"YYYY-MM-DD"`
	reeve.Replan
}

type pinArgs struct {
	Day string `json:"plan_date" minLength:"10" maxLength:"10" doc:"YYYY-MM-DD"`
	reeve.PinChange
	Positions []int64 `json:"positions,omitempty" maxItems:"1000" doc:"Undo uses it: where on the plan the tasks were"`
	reeve.UndoGuard
}

func planAnswer(p reeve.DayPlan, err error) (answer, error) { return answer{Plan: &p}, err }

// touchBlocks notes the categories of blocks as they are and as they shall be.
func touchBlocks(ctx context.Context, r *store.JournalReader, drafts []reeve.BlockDraft, others []string) error {
	for _, d := range drafts {
		if err := r.TouchBlock(ctx, d.ID); err != nil {
			return err
		}
		if err := r.TouchCategory(ctx, d.CategoryID); err != nil {
			return err
		}
		if err := r.TouchTask(ctx, d.TaskID); err != nil {
			return err
		}
	}
	return r.TouchBlock(ctx, others...)
}

func (p *Pack) planTools() []reeve.Tool {
	one := []string{"plan_date"}
	return []reeve.Tool{
		write(p, reeve.Tool{ID: "get_or_create_day_plan", Name: "Get or Create Day Plan", Capability: DayPlanRead,
			Identity: one, Risk: reeve.LowRisk,
			Description: "Get the user's plan of a day: blocks of time and pinned tasks, of the categories you may " +
				"touch. An empty one is made if there is none."}, nil,
			func(ctx context.Context, w *store.JournalWriter, in planArgs, _ *reeve.Invocation) (answer, error) {
				return planAnswer(w.OpenPlan(ctx, in.Day))
			}),
		write(p, reeve.Tool{ID: "upsert_day_plan_blocks", Name: "Upsert Day Plan Blocks", Capability: DayPlanWrite,
			Description: "Add blocks of time to the user's plan of a day, replace some and remove others. The rest " +
				"stays."},
			func(ctx context.Context, r *store.JournalReader, in blockArgs) error {
				return touchBlocks(ctx, r, in.Upserts, in.Deletes)
			},
			func(ctx context.Context, w *store.JournalWriter, in blockArgs, _ *reeve.Invocation) (answer, error) {
				return planAnswer(w.UpsertBlocks(ctx, in.Day, in.PlanChange))
			}),
		write(p, reeve.Tool{ID: "pin_day_plan_tasks", Name: "Pin Day Plan Tasks", Capability: DayPlanWrite,
			Risk:        reeve.LowRisk,
			Description: "Put tasks on the user's plan of a day, and take others off."},
			func(ctx context.Context, r *store.JournalReader, in pinArgs) error {
				return r.TouchTask(ctx, append(append([]string{}, in.Pin...), in.Unpin...)...)
			},
			func(ctx context.Context, w *store.JournalWriter, in pinArgs, inv *reeve.Invocation) (answer, error) {
				if len(in.Pin)+len(in.Unpin) == 0 {
					return answer{}, reeve.InvalidField("", "names no task", "task_ids or unpin_task_ids")
				}
				in.At = in.Positions
				plan, undo, err := w.PinTasks(ctx, in.Day, in.PinChange)
				if err == nil {
					err = in.Check(undo) // which names what was on the plan, and what was not
				}
				if err == nil && len(undo.Pin)+len(undo.Unpin) > 0 {
					inv.UndoWith("pin_day_plan_tasks",
						pinArgs{in.Day, undo, undo.At,
							reeve.NewUndoGuard(reeve.PinChange{Pin: undo.Unpin, Unpin: undo.Pin})})
				}
				return planAnswer(plan, err)
			}),
		previewed(p, write(p, reeve.Tool{ID: "replan_day_blocks", Name: "Replan Day", Capability: DayPlanWrite,
			Identity: one,
			Description: "Replace the blocks of the user's plan of a day, as far as they are of the categories you " +
				"may touch: those you do not name are removed."},
			func(ctx context.Context, r *store.JournalReader, in replanArgs) error {
				return touchBlocks(ctx, r, in.Blocks, nil)
			},
			func(ctx context.Context, w *store.JournalWriter, in replanArgs, inv *reeve.Invocation) (answer, error) {
				return planAnswer(w.ApplyReplan(ctx, in.Day, in.Replan, inv.Base))
			}),
			func(ctx context.Context, r *store.JournalReader, in replanArgs) (*store.Draft, error) {
				d, err := r.Replan(ctx, in.Day, in.Replan)
				return &d.Draft, err
			}),
	}
}
