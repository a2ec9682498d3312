package httpapi

import (
	"context"

	"reeve"
	"reeve/internal/store"
)

func (s *server) listRuns(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Page
	Agent string         `query:"agent" maxLength:"128" doc:"Id or name"`
	State reeve.RunState `query:"state" enum:"running,parked,completed,failed,skipped,cancelled,paused"`
}) (*body[reeve.RunList], error) {
	if err := checkCursor(in.Cursor); err != nil {
		return nil, err
	}
	out := &body[reeve.RunList]{}
	err := s.DB.View(ctx, func(snap *store.Snap) error {
		f := store.RunFilter{State: in.State, For: eyes(who), Before: in.Cursor, Limit: in.Limit}
		var err error
		if f.Agent, err = agentID(ctx, snap, who.Workspace, in.Agent); err != nil {
			return err
		}
		out.Body.Runs, err = snap.ListRuns(ctx, who.Workspace, f)
		return err
	})
	if n := len(out.Body.Runs); n == in.Limit {
		out.Body.Next = out.Body.Runs[n-1].ID
	}
	return out, err
}

func (s *server) getRun(ctx context.Context, who reeve.Principal, in *IDPath) (*body[reeve.Run], error) {
	out := &body[reeve.Run]{}
	return out, s.DB.View(ctx, func(snap *store.Snap) (err error) {
		if out.Body, err = runFor(ctx, snap, who, in.ID); err == nil {
			out.Body.GoesOn, err = snap.GoesOn(ctx, out.Body)
		}
		return err
	})
}

func (s *server) cancelRun(ctx context.Context, who reeve.Principal, in *IDPath) (*body[reeve.Run], error) {
	out, err := s.getRun(ctx, who, in)
	if err == nil {
		out.Body, err = s.Wake.Cancel(ctx, who.Workspace, in.ID)
	}
	return out, err
}

func (s *server) listRunWakes(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	Page
}) (*body[reeve.WakeList], error) {
	return s.listWakes(ctx, who, in.Page, func(snap *store.Snap) (store.WakeFilter, error) {
		r, err := runFor(ctx, snap, who, in.ID)
		return store.WakeFilter{Run: r.ID}, err
	})
}

// listWakes reads a page of the wakes that of chooses. A page ends with a wake, whose key is the cursor.
func (s *server) listWakes(ctx context.Context, who reeve.Principal, p Page, of func(*store.Snap) (store.WakeFilter, error)) (*body[reeve.WakeList], error) {
	out := &body[reeve.WakeList]{}
	err := s.DB.View(ctx, func(snap *store.Snap) error {
		f, err := of(snap)
		if err != nil {
			return err
		}
		f.For, f.After, f.Limit = eyes(who), p.Cursor, p.Limit
		if out.Body.Wakes, err = snap.ListWakes(ctx, who.Workspace, f); reeve.CodeOf(err) == reeve.NotFound {
			err = badCursor()
		}
		return err
	})
	if n := len(out.Body.Wakes); n == p.Limit {
		out.Body.Next = out.Body.Wakes[n-1].RunKey
	}
	return out, err
}

func (s *server) getWake(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Key string `path:"runKey" maxLength:"256" doc:"The run key; a slash in it is written %2F"`
}) (*body[reeve.Wake], error) {
	out := &body[reeve.Wake]{}
	return out, s.DB.View(ctx, func(snap *store.Snap) (err error) {
		if out.Body, err = snap.GetWake(ctx, in.Key); err == nil && (out.Body.WorkspaceID != who.Workspace || !sees(who, out.Body.UserID)) {
			err = absent("wake", in.Key)
		}
		return err
	})
}

func (s *server) wakeAgent(ctx context.Context, who reeve.Principal, in *struct {
	AgentPath
	Key  string `header:"Idempotency-Key" maxLength:"255" doc:"The same key wakes once"`
	Body reeve.WakeRequest
}) (*body[reeve.Wake], error) {
	w, err := s.Wake.Wake(ctx, who.Workspace, in.Agent, who.User, in.Key, in.Body.Input)
	return &body[reeve.Wake]{w}, err
}

func (s *server) listAgentWakes(ctx context.Context, who reeve.Principal, in *struct {
	AgentPath
	Page
}) (*body[reeve.WakeList], error) {
	return s.listWakes(ctx, who, in.Page, func(snap *store.Snap) (store.WakeFilter, error) {
		a, err := snap.GetAgent(ctx, who.Workspace, in.Agent)
		return store.WakeFilter{Agent: a.ID}, err
	})
}

func (s *server) listSubscriptions(ctx context.Context, who reeve.Principal, in *AgentPath) (*body[reeve.SubscriptionList], error) {
	out := &body[reeve.SubscriptionList]{}
	return out, s.DB.View(ctx, func(snap *store.Snap) error {
		a, err := snap.GetAgent(ctx, who.Workspace, in.Agent)
		if err != nil {
			return err
		}
		out.Body.Subscriptions, err = snap.ListSubscriptions(ctx, who.Workspace, a.ID)
		return err
	})
}

func (s *server) createSubscription(ctx context.Context, who reeve.Principal, in *struct {
	AgentPath
	Body reeve.SubscriptionRequest
}) (*body[reeve.Subscription], error) {
	if err := s.Wake.Check(in.Body.Predicate); err != nil {
		return nil, err
	}
	out := &body[reeve.Subscription]{}
	return out, s.DB.Update(ctx, func(tx *store.Tx) error {
		a, err := tx.GetAgent(ctx, who.Workspace, in.Agent)
		if err != nil {
			return err
		}
		if a.Lifecycle == reeve.AgentDestroyed {
			return reeve.Errorf(reeve.Conflict, "the agent is destroyed")
		}
		watched := reeve.Token{Class: in.Body.Class, Name: in.Body.Name}
		if err := s.checkWatched(ctx, &tx.Snap, who, watched); err != nil {
			return err
		}
		out.Body = reeve.Subscription{ID: tx.NewID(reeve.PrefixSubscription), WorkspaceID: who.Workspace, AgentID: a.ID, UserID: who.User, Token: watched,
			Predicate: in.Body.Predicate, CreatedAt: tx.Now()}
		if err := tx.InsertSubscription(ctx, out.Body); err != nil {
			return err
		}
		return tx.Answer(ctx, out.Body)
	})
}

func (s *server) deleteSubscription(ctx context.Context, who reeve.Principal, in *IDPath) (*none, error) {
	return nil, s.DB.Update(ctx, func(tx *store.Tx) error { return tx.DeleteSubscription(ctx, who.Workspace, in.ID) })
}
