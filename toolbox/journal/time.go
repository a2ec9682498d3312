package journal

import (
	"context"

	"reeve"
	"reeve/internal/store"
)

type annotateArgs struct {
	TimeEntryID string `json:"time_entry_id" maxLength:"64" pattern:"^[a-z]+_[0-9a-z]+$"`
	Note        string `json:"description" maxLength:"102400" doc:"Replaces the note; empty takes it away"`
}

func timeAnswer(e reeve.TimeEntry, err error) (answer, error) { return answer{TimeEntry: &e}, err }

func (p *Pack) timeTools() []reeve.Tool {
	return []reeve.Tool{
		write(p, reeve.Tool{ID: "create_retrospective_time_entry", Name: "Create Retrospective Time Entry", Capability: TimeWrite, Identity: []string{"task_id", "started_at"},
			Description: "Record time the user spent on a task in the past. It must not overlap other time of theirs. Times carry an offset from UTC; they may cross midnight."},
			func(ctx context.Context, r *store.JournalReader, in reeve.TimeDraft) error {
				return r.TouchTask(ctx, in.TaskID)
			},
			func(ctx context.Context, w *store.JournalWriter, in reeve.TimeDraft, _ *reeve.Invocation) (answer, error) {
				return timeAnswer(w.CreateTimeEntry(ctx, in))
			}),
		write(p, reeve.Tool{ID: "start_task_timer", Name: "Start Task Timer", Capability: TimeWrite, Risk: reeve.LowRisk,
			Description: "Start a timer on a task, now. A user has one running timer at a time."},
			func(ctx context.Context, r *store.JournalReader, in reeve.TimerStart) error {
				return r.TouchTask(ctx, in.TaskID)
			},
			func(ctx context.Context, w *store.JournalWriter, in reeve.TimerStart, _ *reeve.Invocation) (answer, error) {
				return timeAnswer(w.StartTimer(ctx, in))
			}),
		write(p, reeve.Tool{ID: "stop_task_timer", Name: "Stop Task Timer", Capability: TimeWrite, Risk: reeve.LowRisk,
			Description: "Stop the user's running timer, now."},
			func(ctx context.Context, r *store.JournalReader, in reeve.TimerStop) error {
				if in.TimeEntryID == "" {
					e, _, err := r.Running(ctx) // none is no reason to refuse: the call may be one made again
					if err != nil {
						return err
					}
					in.TimeEntryID = e.ID
				}
				return r.TouchTimeEntry(ctx, in.TimeEntryID)
			},
			func(ctx context.Context, w *store.JournalWriter, in reeve.TimerStop, _ *reeve.Invocation) (answer, error) {
				return timeAnswer(w.StopTimer(ctx, in))
			}),
		write(p, reeve.Tool{ID: "annotate_time_entry", Name: "Annotate Time Entry", Capability: TimeWrite, Risk: reeve.LowRisk, Identity: []string{"time_entry_id"},
			Description: "Say what time was spent on."},
			func(ctx context.Context, r *store.JournalReader, in annotateArgs) error {
				return r.TouchTimeEntry(ctx, in.TimeEntryID)
			},
			func(ctx context.Context, w *store.JournalWriter, in annotateArgs, inv *reeve.Invocation) (answer, error) {
				was, _, err := w.TimeEntry(ctx, in.TimeEntryID)
				if err != nil {
					return answer{}, err
				}
				e, err := w.UpdateTimeEntry(ctx, in.TimeEntryID, reeve.TimeChange{Note: &in.Note})
				if err == nil && e.Note != was.Note {
					inv.UndoWith("annotate_time_entry", annotateArgs{in.TimeEntryID, was.Note})
				}
				return timeAnswer(e, err)
			}),
	}
}
