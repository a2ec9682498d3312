package httpapi

import (
	"context"
	"slices"
	"strings"

	"reeve"
	"reeve/api"
	"reeve/internal/store"
	"reeve/internal/wake"
)

// subscriptionHandlers serves the subscriptions of agents.
type subscriptionHandlers struct {
	subscriptionReach
	db        *store.DB
	changes   *changeHandlers
	scheduler *wake.Scheduler
}

func (h *subscriptionHandlers) list(ctx context.Context, who reeve.Principal,
	in *AgentPath) (*body[api.SubscriptionList], error) {
	out := &body[api.SubscriptionList]{}
	return out, h.db.View(ctx, func(snap *store.Snap) error {
		a, err := snap.Agents().GetAgent(ctx, who.Workspace, in.Agent)
		if err != nil {
			return err
		}
		list, err := snap.Queue().ListSubscriptions(ctx, who.Workspace, a.ID)
		out.Body.Subscriptions = []api.ListedSubscription{}
		if err != nil {
			return err
		}
		for _, s := range list {
			why, err := h.whyNot(ctx, snap, s, a)
			if err != nil {
				return err
			}
			out.Body.Subscriptions = append(out.Body.Subscriptions,
				api.ListedSubscription{Subscription: s, Reach: api.Reach{CanFire: why == "", WhyNot: why}})
		}
		return nil
	})
}

func (h *subscriptionHandlers) create(ctx context.Context, who reeve.Principal, in *struct {
	AgentPath
	Body api.SubscriptionRequest
}) (*body[reeve.Subscription], error) {
	if err := h.scheduler.CheckPredicate(in.Body.Predicate); err != nil {
		return nil, err
	}
	out := &body[reeve.Subscription]{}
	return out, h.db.Update(ctx, func(tx *store.Tx) error {
		a, err := tx.Agents().GetAgent(ctx, who.Workspace, in.Agent)
		if err != nil {
			return err
		}
		if err := a.CheckWakes(reeve.ReasonSubscription); err != nil {
			return err
		}
		watched := reeve.Token{Class: in.Body.Class, Name: in.Body.Name}
		if err := h.checkToken(ctx, &tx.Snap, who, watched); err != nil {
			return err
		}
		if in.Body.Predicate != "" && !h.openTokens && !hasEntity(watched) {
			return reeve.InvalidField("/predicate", "never holds, because "+watched.Name+" has no entity",
				"no predicate, or a key of the journal such as TASK")
		}
		out.Body = reeve.Subscription{ID: tx.NewID(reeve.PrefixSubscription), WorkspaceID: who.Workspace, AgentID: a.ID,
			UserID: who.User, Token: watched,
			Predicate: in.Body.Predicate, CreatedAt: tx.Now()}
		if err := tx.Queue().InsertSubscription(ctx, out.Body); err != nil {
			return err
		}
		return tx.Ledger().SaveResponse(ctx, out.Body)
	})
}

// try evaluates a predicate on past changes. It leaves out changes that the caller may not see.
func (h *subscriptionHandlers) try(ctx context.Context, who reeve.Principal, in *struct {
	AgentPath
	Class     reeve.TokenClass `query:"class" required:"true" enum:"key,subtype,id"`
	Name      string           `query:"name" required:"true" minLength:"1" maxLength:"256" doc:"For example TASK"`
	Predicate string           `query:"predicate" maxLength:"4000" doc:"CEL over entity. Default: every change counts"`
	Limit     int              `query:"limit" minimum:"1" maximum:"100" default:"20" doc:"Number of past changes"`
}) (*body[api.PredicateTrialList], error) {
	out := &body[api.PredicateTrialList]{Body: api.PredicateTrialList{Trials: []reeve.PredicateTrial{}}}
	return out, h.db.View(ctx, func(snap *store.Snap) error {
		a, err := snap.Agents().GetAgent(ctx, who.Workspace, in.Agent)
		if err != nil {
			return err
		}
		watched := reeve.Token{Class: in.Class, Name: in.Name}
		if err := h.checkToken(ctx, snap, who, watched); err != nil {
			return err
		}
		trials, err := h.scheduler.TryPredicate(ctx, snap, reeve.Subscription{WorkspaceID: who.Workspace,
			AgentID: a.ID, UserID: who.User, Token: watched, Predicate: in.Predicate}, in.Limit)
		for _, t := range trials {
			shown, isVisible, err := h.changes.show(ctx, snap, who, t.Change)
			if err != nil {
				return err
			}
			if t.Change = shown; isVisible {
				out.Body.Trials = append(out.Body.Trials, t)
			}
		}
		return err
	})
}

func (h *subscriptionHandlers) remove(ctx context.Context, who reeve.Principal, in *IDPath) (*none, error) {
	return nil, h.db.Update(ctx, func(tx *store.Tx) error {
		return tx.Queue().DeleteSubscription(ctx, who.Workspace, in.ID)
	})
}

// knownKeys returns the semantic keys that built-in tools, schedules and notifications announce.
func knownKeys() []string {
	return []string{reeve.KeyTask, reeve.KeyCategory, reeve.KeyLabel, reeve.KeyChecklist, reeve.KeyTimeEntry,
		reeve.KeyDayPlan, reeve.KeyRating, reeve.KeyAgentState,
		reeve.KeyAgent, reeve.KeyAgentMessage, reeve.KeySchedule, reeve.KeyScheduleFired, reeve.KeyScheduleEnded,
		"FILE", "SESSION_FILE", "SCRATCHPAD", "MEDIA", "NOTIFICATION"}
}

// knownSubtypes returns the subtypes that built-in tools announce.
func knownSubtypes() []string {
	list := append([]string{"time_entry.running", "time_entry.ended"}, reeve.WatchSubtypes()...)
	for _, target := range reeve.RatingTargets() {
		list = append(list, "rating."+string(target))
	}
	for _, status := range reeve.TaskStatuses() {
		list = append(list, "task."+string(status))
	}
	return list
}

// checkToken returns an error for a token that is never announced. If the embedding program has tools of its own, which
// may announce any token, it fails only for a known name in the wrong case.
func (h *subscriptionHandlers) checkToken(ctx context.Context, snap *store.Snap, who reeve.Principal,
	t reeve.Token) error {
	known := knownKeys()
	switch t.Class {
	case reeve.EntityID:
		return h.checkID(ctx, snap, who, t.Name)
	case reeve.Subtype:
		known = knownSubtypes()
	case reeve.SemanticKey:
	}
	if slices.Contains(known, t.Name) {
		return nil
	}
	differsInCase := slices.ContainsFunc(known, func(name string) bool { return strings.EqualFold(name, t.Name) })
	if h.openTokens && !differsInCase {
		return nil
	}
	return reeve.InvalidField("/name", "is not a known "+string(t.Class), "one of "+strings.Join(known, ", "))
}

// checkID returns an error if no entity has the id. A path is accepted whether or not the file exists.
func (h *subscriptionHandlers) checkID(ctx context.Context, snap *store.Snap, who reeve.Principal, id string) error {
	if h.openTokens {
		return nil
	}
	exists, err := hasID(ctx, snap, who, id)
	if err != nil || exists {
		return err
	}
	return reeve.InvalidField("/name", "does not exist",
		"the id of a journal entry, an agent, a schedule or a conversation, or the path of a file")
}
