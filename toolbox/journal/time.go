package journal

import (
	"cmp"
	"context"

	"reeve"
	"reeve/internal/store"
)

type annotateArgs struct {
	TimeEntryID string `json:"time_entry_id" maxLength:"64" pattern:"^[a-z]+_[0-9a-z]+$"`
	Note        string `json:"description" maxLength:"102400" doc:"New note; empty clears it"`
	reeve.UndoGuard
}

type listTimeArgs struct {
	TaskID  string `json:"task_id,omitempty" maxLength:"64" pattern:"^[a-z]+_[0-9a-z]+$" doc:"One task only"`
	From    string `json:"from,omitempty" maxLength:"40" doc:"Entries that end after this time, RFC 3339 with an offset"`
	To      string `json:"to,omitempty" maxLength:"40" doc:"Entries that start before this time, RFC 3339 with an offset"`
	Running bool   `json:"running,omitempty" doc:"True for the running timer only"`
	Cursor  string `json:"cursor,omitempty" maxLength:"128" doc:"next_cursor of the previous page"`
	Limit   int    `json:"limit,omitempty" minimum:"1" maximum:"100" default:"20"`
}

func findTime(ctx context.Context, r *store.JournalReader, in listTimeArgs) (out reeve.TimeEntryList, err error) {
	f := store.TimeFilter{Task: in.TaskID, Running: in.Running, Limit: cmp.Or(in.Limit, 20)}
	if f.Before, err = parseCursor(in.Cursor); err != nil {
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
	return reeve.LongestPage(reeve.InvocationFrom(ctx), len(out.TimeEntries), func(n int) (reeve.TimeEntryList, error) {
		page := out
		if page.TimeEntries = out.TimeEntries[:n]; n > 0 && (n < len(out.TimeEntries) || n == f.Limit) {
			page.Next = formatCursor(page.TimeEntries[n-1].StartedAt, page.TimeEntries[n-1].ID)
		}
		return page, nil
	})
}

func timeResult(e reeve.TimeEntry, err error) (writeResult, error) {
	return writeResult{TimeEntry: &e}, err
}

func (p *Pack) timeTools() []reeve.Tool {
	return []reeve.Tool{
		newReadTool(p, reeve.Tool{ID: "list_time_entries", Name: "List Time Entries", Capability: TimeRead,
			Description: "List the user's time entries on tasks in the categories that you may access, latest start " +
				"first. An entry without an end is the running timer."},
			func(ctx context.Context, r *store.JournalReader, in listTimeArgs) error {
				return r.RecordTaskCategories(ctx, in.TaskID)
			}, findTime),
		newWriteTool(p, reeve.Tool{ID: "create_retrospective_time_entry", Name: "Create Retrospective Time Entry",
			Capability: TimeWrite, Identity: []string{"task_id", "started_at"},
			Description: "Record time that the user spent on a task in the past. It must not overlap another time " +
				"entry of " +
				"the user. Times need an offset from UTC and may cross midnight."},
			func(ctx context.Context, r *store.JournalReader, in reeve.TimeDraft) error {
				return r.RecordTaskCategories(ctx, in.TaskID)
			},
			func(ctx context.Context, w *store.JournalWriter, in reeve.TimeDraft, _ *reeve.Invocation) (writeResult,
				error) {
				return timeResult(w.CreateTimeEntry(ctx, in))
			}),
		newWriteTool(p, reeve.Tool{ID: "start_task_timer", Name: "Start Task Timer", Capability: TimeWrite,
			Risk:        reeve.LowRisk,
			Description: "Start a timer on a task now. A user can have one running timer."},
			func(ctx context.Context, r *store.JournalReader, in reeve.TimerStart) error {
				return r.RecordTaskCategories(ctx, in.TaskID)
			},
			func(ctx context.Context, w *store.JournalWriter, in reeve.TimerStart, _ *reeve.Invocation) (writeResult,
				error) {
				return timeResult(w.StartTimer(ctx, in))
			}),
		newWriteTool(p, reeve.Tool{ID: "stop_task_timer", Name: "Stop Task Timer", Capability: TimeWrite,
			Risk:        reeve.LowRisk,
			Description: "Stop the user's running timer, now."},
			func(ctx context.Context, r *store.JournalReader, in reeve.TimerStop) error {
				if in.TimeEntryID == "" {
					e, _, err := r.RunningTimer(ctx) // no timer is not an error here: the call may be a repetition
					if err != nil {
						return err
					}
					in.TimeEntryID = e.ID
				}
				return r.RecordTimeEntryCategories(ctx, in.TimeEntryID)
			},
			func(ctx context.Context, w *store.JournalWriter, in reeve.TimerStop, _ *reeve.Invocation) (writeResult,
				error) {
				return timeResult(w.StopTimer(ctx, in))
			}),
		newWriteTool(p, reeve.Tool{ID: "annotate_time_entry", Name: "Annotate Time Entry", Capability: TimeWrite,
			Undoable: true, Risk: reeve.LowRisk, Identity: []string{"time_entry_id"},
			Description: "Set the note of a time entry."},
			func(ctx context.Context, r *store.JournalReader, in annotateArgs) error {
				return r.RecordTimeEntryCategories(ctx, in.TimeEntryID)
			},
			func(ctx context.Context, w *store.JournalWriter, in annotateArgs, inv *reeve.Invocation) (writeResult,
				error) {
				was, _, err := w.TimeEntry(ctx, in.TimeEntryID)
				if err != nil {
					return writeResult{}, err
				}
				e, err := w.UpdateTimeEntry(ctx, in.TimeEntryID, reeve.TimeChange{Note: &in.Note})
				if err == nil {
					err = in.Check(was.Note)
				}
				if err == nil && e.Note != was.Note {
					inv.UndoWith("annotate_time_entry", annotateArgs{in.TimeEntryID, was.Note,
						reeve.NewUndoGuard(e.Note)})
				}
				return timeResult(e, err)
			}),
	}
}
