package journal

import (
	"cmp"
	"context"

	"reeve"
	"reeve/internal/store"
)

type annotateArgs struct {
	TimeEntryID string `json:"time_entry_id" maxLength:"64" pattern:"^[a-z]+_[0-9a-z]+$"`
	Note        string `json:"description" maxLength:"102400" doc:"Replaces the note; empty takes it away"`
	reeve.UndoGuard
}

type listTime struct {
	TaskID  string `json:"task_id,omitempty" maxLength:"64" pattern:"^[a-z]+_[0-9a-z]+$" doc:"On one task only"`
	From    string `json:"from,omitempty" maxLength:"40" doc:"That end after this: RFC 3339 with an offset"`
	To      string `json:"to,omitempty" maxLength:"40" doc:"That start before this: RFC 3339 with an offset"`
	Running bool   `json:"running,omitempty" doc:"The running timer only"`
	Cursor  string `json:"cursor,omitempty" maxLength:"128" doc:"next_cursor of the page before"`
	Limit   int    `json:"limit,omitempty" minimum:"1" maximum:"100" default:"20"`
}

func findTime(ctx context.Context, r *store.JournalReader, in listTime) (out reeve.TimeEntryList, err error) {
	f := store.TimeFilter{Task: in.TaskID, Running: in.Running, Limit: cmp.Or(in.Limit, 20)}
	if f.Before, err = after(in.Cursor); err != nil {
		return out, err
	}
	if in.From != "" {
		if f.From, err = reeve.ParseTimeWithOffset("/from", in.From); err != nil {
			return out, err
		}
	}
	if in.To != "" {
		if f.To, err = reeve.ParseTimeWithOffset("/to", in.To); err != nil {
			return out, err
		}
	}
	out.TimeEntries, err = r.TimeEntries(ctx, f)
	if err != nil {
		return out, err
	}
	return reeve.Page(reeve.InvocationFrom(ctx), len(out.TimeEntries), func(n int) (reeve.TimeEntryList, error) {
		page := out
		if page.TimeEntries = out.TimeEntries[:n]; n > 0 && (n < len(out.TimeEntries) || n == f.Limit) {
			page.Next = cursor(page.TimeEntries[n-1].StartedAt, page.TimeEntries[n-1].ID)
		}
		return page, nil
	})
}

func timeAnswer(e reeve.TimeEntry, err error) (answer, error) { return answer{TimeEntry: &e}, err }

func (p *Pack) timeTools() []reeve.Tool {
	return []reeve.Tool{
		read(p, reeve.Tool{ID: "list_time_entries", Name: "List Time Entries", Capability: TimeRead,
			Description: "List the user's time on tasks of the categories you may touch, the last begun first. One " +
				"without an end is the running timer."},
			func(ctx context.Context, r *store.JournalReader, in listTime) error {
				return r.TouchTask(ctx, in.TaskID)
			}, findTime),
		write(p, reeve.Tool{ID: "create_retrospective_time_entry", Name: "Create Retrospective Time Entry",
			Capability: TimeWrite, Identity: []string{"task_id", "started_at"},
			Description: "Record time the user spent on a task in the past. It must not overlap other time of " +
				"theirs. Times carry an offset from UTC; they may cross midnight."},
			func(ctx context.Context, r *store.JournalReader, in reeve.TimeDraft) error {
				return r.TouchTask(ctx, in.TaskID)
			},
			func(ctx context.Context, w *store.JournalWriter, in reeve.TimeDraft, _ *reeve.Invocation) (answer, error) {
				return timeAnswer(w.CreateTimeEntry(ctx, in))
			}),
		write(p, reeve.Tool{ID: "start_task_timer", Name: "Start Task Timer", Capability: TimeWrite,
			Risk:        reeve.LowRisk,
			Description: "Start a timer on a task, now. A user has one running timer at a time."},
			func(ctx context.Context, r *store.JournalReader, in reeve.TimerStart) error {
				return r.TouchTask(ctx, in.TaskID)
			},
			func(ctx context.Context, w *store.JournalWriter, in reeve.TimerStart, _ *reeve.Invocation) (answer,
				error) {
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
		write(p, reeve.Tool{ID: "annotate_time_entry", Name: "Annotate Time Entry", Capability: TimeWrite,
			Risk: reeve.LowRisk, Identity: []string{"time_entry_id"},
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
				if err == nil {
					err = in.Check(was.Note)
				}
				if err == nil && e.Note != was.Note {
					inv.UndoWith("annotate_time_entry", annotateArgs{in.TimeEntryID, was.Note,
						reeve.NewUndoGuard(e.Note)})
				}
				return timeAnswer(e, err)
			}),
	}
}
