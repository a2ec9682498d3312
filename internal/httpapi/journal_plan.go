package httpapi

import (
	"context"

	"reeve"
	"reeve/internal/store"
)

// DayPath names a day.
type DayPath struct {
	Scoped
	Day string `path:"day" minLength:"10" maxLength:"10" doc:"YYYY-MM-DD"`
}

func (s *server) getPlan(ctx context.Context, who reeve.Principal, in *DayPath) (*body[reeve.DayPlan], error) {
	return read(ctx, s, who, func(r *store.JournalReader) (reeve.DayPlan, error) { return r.Plan(ctx, in.Day) })
}

func (s *server) changeBlocks(ctx context.Context, who reeve.Principal, in *struct {
	DayPath
	Body reeve.PlanChange
}) (*body[reeve.DayPlan], error) {
	return wrote(ctx, s, who, func(w *store.JournalWriter) (reeve.DayPlan, error) { return w.UpsertBlocks(ctx, in.Day, in.Body) })
}

func (s *server) replan(ctx context.Context, who reeve.Principal, in *struct {
	DayPath
	Body reeve.Replan
}) (*body[reeve.DayPlan], error) {
	return wrote(ctx, s, who, func(w *store.JournalWriter) (reeve.DayPlan, error) { return w.ApplyReplan(ctx, in.Day, in.Body, "") })
}

func (s *server) pinTasks(ctx context.Context, who reeve.Principal, in *struct {
	DayPath
	Body reeve.PinChange
}) (*body[reeve.DayPlan], error) {
	return wrote(ctx, s, who, func(w *store.JournalWriter) (reeve.DayPlan, error) {
		p, _, err := w.PinTasks(ctx, in.Day, in.Body)
		return p, err
	})
}
