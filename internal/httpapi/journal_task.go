package httpapi

import (
	"context"
	"slices"

	"reeve"
	"reeve/api"
	"reeve/internal/store"
)

// taskHandlers serves the tasks of the journal.
type taskHandlers struct {
	journal journal
}

func (h *taskHandlers) list(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Page
	Category  string   `query:"category" maxLength:"64" doc:"Only tasks of this category"`
	Status    []string `query:"status" maxItems:"7" doc:"open, groomed, in_progress, blocked, on_hold, done, rejected"`
	Open      bool     `query:"open" doc:"Leave out tasks that are done or rejected"`
	DueAfter  string   `query:"due_after" maxLength:"10" doc:"Due on this day or later, YYYY-MM-DD"`
	DueBefore string   `query:"due_before" maxLength:"10" doc:"Due on this day or earlier, YYYY-MM-DD"`
	Label     string   `query:"label" maxLength:"64" doc:"Only tasks with this label id"`
	Text      string   `query:"text" maxLength:"200" doc:"Part of the title, case ignored"`
}) (*body[api.TaskList], error) {
	before, err := parseTimeCursor(in.Cursor)
	if err != nil {
		return nil, err
	}
	f := store.TaskFilter{Category: in.Category, Open: in.Open, DueAfter: in.DueAfter, DueBefore: in.DueBefore,
		Label: in.Label, Text: in.Text, Before: before, Limit: in.Limit}
	for _, v := range in.Status {
		if !slices.Contains(reeve.TaskStatuses(), reeve.TaskStatus(v)) {
			return nil, reeve.InvalidField("query/status", "is not a status",
				"open, groomed, in_progress, blocked, on_hold, done or rejected")
		}
		f.Status = append(f.Status, reeve.TaskStatus(v))
	}
	for path, day := range map[string]string{"query/due_after": in.DueAfter, "query/due_before": in.DueBefore} {
		if day != "" {
			if err := reeve.CheckDay(path, day); err != nil {
				return nil, err
			}
		}
	}
	return readJournal(ctx, h.journal, who, func(r *store.JournalReader) (l api.TaskList, err error) {
		if f.Label != "" {
			labels, err := r.Labels(ctx)
			if err != nil {
				return l, err
			}
			if !slices.ContainsFunc(labels, func(v reeve.Label) bool { return v.ID == f.Label }) {
				return l, newNotFound("label", f.Label)
			}
		}
		l.Tasks, err = r.Tasks(ctx, f)
		if n := len(l.Tasks); n == in.Limit {
			l.Next = formatTimeCursor(reeve.Millis(l.Tasks[n-1].CreatedAt), l.Tasks[n-1].ID)
		}
		return l, err
	})
}

func (h *taskHandlers) create(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Body reeve.TaskDraft
}) (*body[reeve.Task], error) {
	return writeJournal(ctx, h.journal, who, func(w *store.JournalWriter) (reeve.Task, error) {
		return w.CreateTask(ctx, in.Body)
	})
}

func (h *taskHandlers) get(ctx context.Context, who reeve.Principal, in *IDPath) (*body[reeve.TaskView], error) {
	return readJournal(ctx, h.journal, who, func(r *store.JournalReader) (reeve.TaskView, error) {
		return r.TaskView(ctx, in.ID)
	})
}

func (h *taskHandlers) update(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	Body reeve.TaskChange
}) (*body[reeve.Task], error) {
	return writeJournal(ctx, h.journal, who, func(w *store.JournalWriter) (reeve.Task, error) {
		e, err := w.UpdateTask(ctx, in.ID, in.Body, "")
		return e.After, err
	})
}

func (h *taskHandlers) remove(ctx context.Context, who reeve.Principal, in *IDPath) (*none, error) {
	return nil, h.journal.write(ctx, who, func(w *store.JournalWriter) error { return w.DeleteTask(ctx, in.ID) })
}

func (h *taskHandlers) assignLabels(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	Body reeve.LabelAssignment
}) (*body[reeve.Task], error) {
	return writeJournal(ctx, h.journal, who, func(w *store.JournalWriter) (reeve.Task, error) {
		t, _, err := w.AssignLabels(ctx, in.ID, in.Body)
		return t, err
	})
}

func (h *taskHandlers) resolve(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Reference string `query:"reference" maxLength:"500" doc:"Words of the title, or an id. Default: latest changes"`
	Closed    bool   `query:"include_closed" doc:"Include tasks that are done or rejected"`
	Limit     int    `query:"limit" minimum:"1" maximum:"20" default:"5"`
}) (*body[reeve.TaskCandidates], error) {
	return readJournal(ctx, h.journal, who, func(r *store.JournalReader) (reeve.TaskCandidates, error) {
		return r.ResolveTask(ctx, in.Reference, in.Closed, in.Limit)
	})
}

func (h *taskHandlers) followUp(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Body reeve.FollowUp
}) (*body[reeve.TasksChanged], error) {
	return writeJournal(ctx, h.journal, who, func(w *store.JournalWriter) (reeve.TasksChanged, error) {
		return w.ApplyFollowUp(ctx, in.Body, "")
	})
}

func (h *taskHandlers) rollover(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Body reeve.Rollover
}) (*body[reeve.TasksChanged], error) {
	return writeJournal(ctx, h.journal, who, func(w *store.JournalWriter) (reeve.TasksChanged, error) {
		return w.ApplyRollover(ctx, in.Body, "")
	})
}

func (h *taskHandlers) listEffects(ctx context.Context, who reeve.Principal, in *IDPath) (*body[api.LinkList], error) {
	if err := checkOperation(ctx, h.journal.db, who, in.ID); err != nil {
		return nil, err
	}
	return readJournal(ctx, h.journal, who, func(r *store.JournalReader) (l api.LinkList, err error) {
		l.Links, err = r.Effects(ctx, in.ID)
		return l, err
	})
}
