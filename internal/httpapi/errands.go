package httpapi

import (
	"context"

	"reeve"
	"reeve/internal/store"
)

func (s *server) planAutomation(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	Body reeve.PlanRequest
}) (*body[reeve.Errand], error) {
	k, err := s.Automations.Plan(ctx, who.Workspace, in.ID, who.User, in.Body)
	return &body[reeve.Errand]{k}, err
}

// mostErrands is how many errands of one automation are shown.
const mostErrands = 200

func (s *server) listErrands(ctx context.Context, who reeve.Principal, in *IDPath) (*body[reeve.ErrandList], error) {
	out := &body[reeve.ErrandList]{}
	return out, s.DB.View(ctx, func(snap *store.Snap) error {
		m, err := snap.GetAutomation(ctx, who.Workspace, in.ID)
		if err != nil {
			return err
		}
		out.Body.Errands, err = snap.ListErrands(ctx, m.AgentID, eyes(who), mostErrands)
		return err
	})
}

// errandFor reads an errand that the caller may see.
func errandFor(ctx context.Context, snap *store.Snap, who reeve.Principal, id string) (reeve.Errand, error) {
	k, err := snap.GetErrand(ctx, who.Workspace, id)
	if err == nil && !sees(who, k.UserID) {
		err = absent("errand", id)
	}
	return k, err
}

func (s *server) getErrand(ctx context.Context, who reeve.Principal, in *IDPath) (*body[reeve.Errand], error) {
	out := &body[reeve.Errand]{}
	return out, s.DB.View(ctx, func(snap *store.Snap) (err error) {
		out.Body, err = errandFor(ctx, snap, who, in.ID)
		return err
	})
}

func (s *server) answerErrand(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	Body reeve.AnswerRequest
}) (*body[reeve.Errand], error) {
	if err := s.DB.View(ctx, func(snap *store.Snap) error {
		_, err := errandFor(ctx, snap, who, in.ID)
		return err
	}); err != nil {
		return nil, err
	}
	k, err := s.Automations.Answer(ctx, who.Workspace, in.ID, in.Body.Answer)
	return &body[reeve.Errand]{k}, err
}
