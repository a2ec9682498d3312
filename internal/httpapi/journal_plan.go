package httpapi

import (
	"context"

	"reeve"
	"reeve/internal/store"
)

// DayPath is the input of routes with a day in the path.
type DayPath struct {
	Scoped
	Day string `path:"day" minLength:"10" maxLength:"10" doc:"Day, YYYY-MM-DD"`
}

// dayPlanHandlers serves the day plans of the journal.
type dayPlanHandlers struct {
	journal journal
}

func (h *dayPlanHandlers) get(ctx context.Context, who reeve.Principal, in *DayPath) (*body[reeve.DayPlan], error) {
	return readJournal(ctx, h.journal, who, func(r *store.JournalReader) (reeve.DayPlan, error) {
		return r.Plan(ctx, in.Day)
	})
}

func (h *dayPlanHandlers) changeBlocks(ctx context.Context, who reeve.Principal, in *struct {
	DayPath
	Body reeve.PlanChange
}) (*body[reeve.DayPlan], error) {
	return writeJournal(ctx, h.journal, who, func(w *store.JournalWriter) (reeve.DayPlan, error) {
		return w.UpsertBlocks(ctx, in.Day, in.Body)
	})
}

func (h *dayPlanHandlers) replan(ctx context.Context, who reeve.Principal, in *struct {
	DayPath
	Body reeve.PlanReplacement
}) (*body[reeve.DayPlan], error) {
	return writeJournal(ctx, h.journal, who, func(w *store.JournalWriter) (reeve.DayPlan, error) {
		return w.ApplyReplan(ctx, in.Day, in.Body, "")
	})
}

func (h *dayPlanHandlers) pinTasks(ctx context.Context, who reeve.Principal, in *struct {
	DayPath
	Body reeve.PinChange
}) (*body[reeve.DayPlan], error) {
	return writeJournal(ctx, h.journal, who, func(w *store.JournalWriter) (reeve.DayPlan, error) {
		p, _, err := w.PinTasks(ctx, in.Day, in.Body)
		return p, err
	})
}
