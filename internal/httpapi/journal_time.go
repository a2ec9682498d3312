package httpapi

import (
	"context"
	"time"

	"reeve"
	"reeve/internal/store"
)

// Span is embedded in the input of lists that can be limited to a time span.
type Span struct {
	From string `query:"from" maxLength:"40" doc:"Start of the span, RFC 3339 with an offset"`
	To   string `query:"to" maxLength:"40" doc:"End of the span, RFC 3339 with an offset"`
}

// times parses the span. A missing bound is the zero time.
func (s Span) times() (from, to time.Time, err error) {
	if s.From != "" {
		if from, err = reeve.ParseTimeWithOffset("query/from", s.From); err != nil {
			return from, to, err
		}
	}
	if s.To != "" {
		to, err = reeve.ParseTimeWithOffset("query/to", s.To)
	}
	return from, to, err
}

// timeEntryHandlers serves the time entries and the timer of a user.
type timeEntryHandlers struct {
	journal journal
}

func (h *timeEntryHandlers) list(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Page
	Span
	Task    string `query:"task" maxLength:"64" doc:"Only entries of this task"`
	Running bool   `query:"running" doc:"Only the running timer"`
}) (*body[reeve.TimeEntryList], error) {
	before, err := parseTimeCursor(in.Cursor)
	if err != nil {
		return nil, err
	}
	f := store.TimeFilter{Task: in.Task, Running: in.Running, Before: before, Limit: in.Limit}
	if f.From, f.To, err = in.times(); err != nil {
		return nil, err
	}
	return readJournal(ctx, h.journal, who, func(r *store.JournalReader) (l reeve.TimeEntryList, err error) {
		if f.Task != "" {
			if _, err := r.TaskView(ctx, f.Task); err != nil {
				return l, err
			}
		}
		l.TimeEntries, err = r.TimeEntries(ctx, f)
		if n := len(l.TimeEntries); n == in.Limit {
			l.Next = formatTimeCursor(l.TimeEntries[n-1].StartedAt.UnixMilli(), l.TimeEntries[n-1].ID)
		}
		return l, err
	})
}

func (h *timeEntryHandlers) create(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Body reeve.TimeDraft
}) (*body[reeve.TimeEntry], error) {
	return writeJournal(ctx, h.journal, who, func(w *store.JournalWriter) (reeve.TimeEntry, error) {
		return w.CreateTimeEntry(ctx, in.Body)
	})
}

func (h *timeEntryHandlers) get(ctx context.Context, who reeve.Principal, in *IDPath) (*body[reeve.TimeEntry], error) {
	return readJournal(ctx, h.journal, who, func(r *store.JournalReader) (reeve.TimeEntry, error) {
		e, _, err := r.TimeEntry(ctx, in.ID)
		return e, err
	})
}

func (h *timeEntryHandlers) update(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	Body reeve.TimeChange
}) (*body[reeve.TimeEntry], error) {
	return writeJournal(ctx, h.journal, who, func(w *store.JournalWriter) (reeve.TimeEntry, error) {
		return w.UpdateTimeEntry(ctx, in.ID, in.Body)
	})
}

func (h *timeEntryHandlers) remove(ctx context.Context, who reeve.Principal, in *IDPath) (*none, error) {
	return nil, h.journal.write(ctx, who, func(w *store.JournalWriter) error { return w.DeleteTimeEntry(ctx, in.ID) })
}

func (h *timeEntryHandlers) startTimer(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Body reeve.TimerStart
}) (*body[reeve.TimeEntry], error) {
	return writeJournal(ctx, h.journal, who, func(w *store.JournalWriter) (reeve.TimeEntry, error) {
		return w.StartTimer(ctx, in.Body)
	})
}

func (h *timeEntryHandlers) stopTimer(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Body reeve.TimerStop
}) (*body[reeve.TimeEntry], error) {
	return writeJournal(ctx, h.journal, who, func(w *store.JournalWriter) (reeve.TimeEntry, error) {
		return w.StopTimer(ctx, in.Body)
	})
}
