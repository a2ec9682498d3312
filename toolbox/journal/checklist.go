package journal

import (
	"context"

	"reeve"
	"reeve/internal/store"
)

type addItemsArgs struct {
	ChecklistID string `json:"checklist_id" maxLength:"64" pattern:"^[a-z]+_[0-9a-z]+$"`
	reeve.ChecklistItemsDraft
}

type changeItemsArgs struct {
	ChecklistID string `json:"checklist_id" maxLength:"64" pattern:"^[a-z]+_[0-9a-z]+$"`
	reeve.ChecklistItemsChange
	reeve.UndoGuard
}

func (p *Pack) checklistTools() []reeve.Tool {
	return []reeve.Tool{
		newWriteTool(p, reeve.Tool{ID: "create_checklist", Name: "Create Checklist", Capability: ChecklistWrite,
			Risk:        reeve.LowRisk,
			Description: "Create a checklist on a task, with its first items."},
			func(ctx context.Context, r *store.JournalReader, in reeve.ChecklistDraft) error {
				return r.RecordTaskCategories(ctx, in.TaskID)
			},
			func(ctx context.Context, w *store.JournalWriter, in reeve.ChecklistDraft,
				_ *reeve.Invocation) (writeResult,
				error) {
				c, err := w.CreateChecklist(ctx, in)
				return writeResult{Checklist: &c}, err
			}),
		newWriteTool(p, reeve.Tool{ID: "add_multiple_checklist_items", Name: "Add Checklist Items",
			Capability:  ChecklistWrite,
			Risk:        reeve.LowRisk,
			Description: "Add items at the end of a checklist, in order."},
			func(ctx context.Context, r *store.JournalReader, in addItemsArgs) error {
				return r.RecordChecklistCategories(ctx, in.ChecklistID)
			},
			func(ctx context.Context, w *store.JournalWriter, in addItemsArgs, _ *reeve.Invocation) (writeResult,
				error) {
				c, err := w.AddItems(ctx, in.ChecklistID, in.ChecklistItemsDraft)
				return writeResult{Checklist: &c}, err
			}),
		newWriteTool(p, reeve.Tool{ID: "update_checklist_items", Name: "Update Checklist Items",
			Undoable: true, Capability: ChecklistWrite,
			Risk: reeve.LowRisk, Identity: []string{"checklist_id"},
			Description: "Rename items of a checklist, check them off or uncheck them."},
			func(ctx context.Context, r *store.JournalReader, in changeItemsArgs) error {
				return r.RecordChecklistCategories(ctx, in.ChecklistID)
			},
			func(ctx context.Context, w *store.JournalWriter, in changeItemsArgs, inv *reeve.Invocation) (writeResult,
				error) {
				c, e, err := w.UpdateItems(ctx, in.ChecklistID, in.ChecklistItemsChange)
				if err == nil {
					err = in.Check(e.Undo)
				}
				if err == nil && len(e.Changes) > 0 {
					inv.UndoWith("update_checklist_items",
						changeItemsArgs{in.ChecklistID, reeve.ChecklistItemsChange{Items: e.Undo},
							reeve.NewUndoGuard(e.Changes)})
				}
				return writeResult{Checklist: &c}, err
			}),
		withPreview(p, newWriteTool(p, reeve.Tool{ID: "move_checklist_items", Name: "Move Checklist Items",
			Capability: ChecklistWrite, Identity: []string{"item_ids", "from_checklist_id"},
			Description: "Move items to the end of another checklist. The items keep their order. Both checklists " +
				"must be in your categories."},
			func(ctx context.Context, r *store.JournalReader, in reeve.ChecklistItemMove) error {
				return r.RecordChecklistCategories(ctx, in.FromID, in.ToID)
			},
			func(ctx context.Context, w *store.JournalWriter, in reeve.ChecklistItemMove,
				inv *reeve.Invocation) (writeResult,
				error) {
				lists, err := w.ApplyMove(ctx, in, inv.Base)
				n := len(in.ItemIDs)
				return writeResult{Checklists: lists, Moved: &n}, err
			}),
			func(ctx context.Context, r *store.JournalReader, in reeve.ChecklistItemMove) (*store.Draft, error) {
				m, err := r.MoveItems(ctx, in)
				return &m.Draft, err
			}),
		withPreview(p, newWriteTool(p, reeve.Tool{ID: "move_checklist_items_to_new_task",
			Name: "Move Checklist Items to New Task", Capability: TaskWrite,
			Identity: []string{"item_ids", "from_checklist_id"},
			Description: "Create a task and move items of a checklist to it. The items keep their order, and the two " +
				"tasks are linked in both directions."},
			func(ctx context.Context, r *store.JournalReader, in reeve.ChecklistItemSplit) error {
				if err := r.RecordChecklistCategories(ctx, in.FromID); err != nil {
					return err
				}
				return r.RecordCategories(ctx, in.CategoryID)
			},
			func(ctx context.Context, w *store.JournalWriter, in reeve.ChecklistItemSplit,
				inv *reeve.Invocation) (writeResult,
				error) {
				c, err := w.ApplySplit(ctx, in, inv.Base)
				return tasksResult(c), err
			}),
			func(ctx context.Context, r *store.JournalReader, in reeve.ChecklistItemSplit) (*store.Draft, error) {
				m, err := r.SplitItems(ctx, in)
				return &m.Draft, err
			}),
	}
}
