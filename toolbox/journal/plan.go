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
	reeve.PlanReplacement
}

type pinArgs struct {
	Day string `json:"plan_date" minLength:"10" maxLength:"10" doc:"YYYY-MM-DD"`
	reeve.PinChange
	Positions []int64 `json:"positions,omitempty" maxItems:"1000" doc:"Set by undo: positions of the tasks on the plan"`
	reeve.UndoGuard
}

func planResult(p reeve.DayPlan, err error) (writeResult, error) { return writeResult{Plan: &p}, err }

// touchBlocks records the current and the new categories of blocks.
func touchBlocks(ctx context.Context, r *store.JournalReader, drafts []reeve.BlockDraft, others []string) error {
	for _, d := range drafts {
		if err := r.RecordBlockCategories(ctx, d.ID); err != nil {
			return err
		}
		if err := r.RecordCategories(ctx, d.CategoryID); err != nil {
			return err
		}
		if err := r.RecordTaskCategories(ctx, d.TaskID); err != nil {
			return err
		}
	}
	return r.RecordBlockCategories(ctx, others...)
}

func (p *Pack) planTools() []reeve.Tool {
	one := []string{"plan_date"}
	return []reeve.Tool{
		newWriteTool(p, reeve.Tool{ID: "get_or_create_day_plan", Name: "Get or Create Day Plan",
			Capability: DayPlanRead,
			Identity:   one, Risk: reeve.LowRisk,
			Description: "Get the user's plan for a day: time blocks and pinned tasks in the categories that you may " +
				"access. Creates an empty plan if there is none."}, nil,
			func(ctx context.Context, w *store.JournalWriter, in planArgs, _ *reeve.Invocation) (writeResult, error) {
				return planResult(w.GetOrCreatePlan(ctx, in.Day))
			}),
		newWriteTool(p, reeve.Tool{ID: "upsert_day_plan_blocks", Name: "Upsert Day Plan Blocks",
			Capability: DayPlanWrite,
			Description: "Add, replace or remove time blocks in the user's plan for a day. Other blocks stay " +
				"unchanged."},
			func(ctx context.Context, r *store.JournalReader, in blockArgs) error {
				return touchBlocks(ctx, r, in.Upserts, in.Deletes)
			},
			func(ctx context.Context, w *store.JournalWriter, in blockArgs, _ *reeve.Invocation) (writeResult, error) {
				return planResult(w.UpsertBlocks(ctx, in.Day, in.PlanChange))
			}),
		newWriteTool(p, reeve.Tool{ID: "pin_day_plan_tasks", Name: "Pin Day Plan Tasks", Capability: DayPlanWrite,
			Undoable: true, Risk: reeve.LowRisk,
			Description: "Pin tasks to the user's plan for a day, or unpin them."},
			func(ctx context.Context, r *store.JournalReader, in pinArgs) error {
				return r.RecordTaskCategories(ctx, append(append([]string{}, in.Pin...), in.Unpin...)...)
			},
			func(ctx context.Context, w *store.JournalWriter, in pinArgs, inv *reeve.Invocation) (writeResult, error) {
				if len(in.Pin)+len(in.Unpin) == 0 {
					return writeResult{}, reeve.InvalidField("", "names no task", "task_ids or unpin_task_ids")
				}
				in.At = in.Positions
				plan, undo, err := w.PinTasks(ctx, in.Day, in.PinChange)
				if err == nil {
					err = in.Check(undo) // undo holds what was on the plan and what was not
				}
				if err == nil && len(undo.Pin)+len(undo.Unpin) > 0 {
					inv.UndoWith("pin_day_plan_tasks",
						pinArgs{in.Day, undo, undo.At,
							reeve.NewUndoGuard(reeve.PinChange{Pin: undo.Unpin, Unpin: undo.Pin})})
				}
				return planResult(plan, err)
			}),
		withPreview(p, newWriteTool(p, reeve.Tool{ID: "replan_day_blocks", Name: "Replan Day", Capability: DayPlanWrite,
			Identity: one,
			Description: "Replace all time blocks in the user's plan for a day that are in the categories you may " +
				"access. " +
				"Blocks that you do not name are removed."},
			func(ctx context.Context, r *store.JournalReader, in replanArgs) error {
				return touchBlocks(ctx, r, in.Blocks, nil)
			},
			func(ctx context.Context, w *store.JournalWriter, in replanArgs, inv *reeve.Invocation) (writeResult,
				error) {
				return planResult(w.ApplyReplan(ctx, in.Day, in.PlanReplacement, inv.Base))
			}),
			func(ctx context.Context, r *store.JournalReader, in replanArgs) (*store.Draft, error) {
				d, err := r.Replan(ctx, in.Day, in.PlanReplacement)
				return &d.Draft, err
			}),
	}
}
