package httpapi

import (
	"context"
	"strings"

	"reeve"
	"reeve/internal/store"
)

// subscriptionReach finds out whether subscriptions can wake their agents.
type subscriptionReach struct {
	openTokens bool // tools of the embedding program may announce tokens that no built-in tool announces
}

// whyNot returns why a subscription cannot wake its agent as things are, or an empty string if it can.
func (r subscriptionReach) whyNot(ctx context.Context, snap *store.Snap, s reeve.Subscription,
	a reeve.Agent) (string, error) {
	if why := a.WhyNotWoken(reeve.ReasonSubscription); why != "" || r.openTokens {
		return why, nil
	}
	if s.Token.Class == reeve.EntityID {
		exists, err := hasID(ctx, snap, reeve.Principal{Workspace: s.WorkspaceID, User: s.UserID, Role: reeve.Owner},
			s.Token.Name)
		if err != nil || !exists {
			return s.Token.Name + " does not exist any more", err
		}
	}
	if s.Predicate == "" {
		return "", nil
	}
	why, err := whyNoEntity(ctx, snap, s, a)
	if why != "" {
		why = "its predicate never holds, because " + why
	}
	return why, err
}

// whyNoEntity returns why the predicate of a subscription sees no entity, or an empty string if it can see one.
func whyNoEntity(ctx context.Context, snap *store.Snap, s reeve.Subscription, a reeve.Agent) (string, error) {
	switch {
	case !hasEntity(s.Token):
		return s.Token.Name + " has no entity", nil
	case s.Token.Class == reeve.EntityID:
		_, isVisible, err := snap.Journal(store.JournalScope{Workspace: s.WorkspaceID, User: s.UserID, Agent: a.ID,
			Categories: a.Categories}).Entity(ctx, s.Token.Name)
		if err != nil || isVisible {
			return "", err
		}
		return "the agent's categories do not include " + s.Token.Name, nil
	case len(a.Categories) == 0 && s.Token.Name != reeve.KeyLabel && s.Token.Name != reeve.KeyDayPlan:
		return "the agent has no categories, so it can see no entity", nil
	}
	return "", nil
}

// hasEntity reports whether a change with the token can have an entity that a predicate sees.
func hasEntity(t reeve.Token) bool {
	kind, _, _ := strings.Cut(t.Name, ".")
	switch t.Class {
	case reeve.SemanticKey:
		return reeve.IsJournalKey(t.Name)
	case reeve.Subtype:
		return kind == "task" || kind == "time_entry" || kind == "rating"
	case reeve.EntityID:
		prefix, _, _ := strings.Cut(t.Name, "_")
		return !strings.Contains(t.Name, "/") && prefix != reeve.PrefixAgent && prefix != reeve.PrefixSchedule &&
			prefix != reeve.PrefixConversation
	}
	return true
}

// hasID reports whether an entity that the caller may see has the id. A path has, whether or not the file exists.
func hasID(ctx context.Context, snap *store.Snap, who reeve.Principal, id string) (bool, error) {
	if strings.Contains(id, "/") {
		return true, nil
	}
	_, exists, err := snap.Journal(personScope(who)).Entity(ctx, id)
	if err != nil || exists || !reeve.IsID(id) { // an agent's name is no id
		return exists, err
	}
	for _, find := range []func() error{
		func() error { _, err := snap.Agents().GetAgent(ctx, who.Workspace, id); return err },
		func() error { _, err := getVisibleTimer(ctx, snap.Queue(), who, id); return err },
		func() error { _, err := getVisibleConversation(ctx, snap, who, id); return err },
	} {
		if err := find(); reeve.CodeOf(err) != reeve.NotFound {
			return err == nil, err
		}
	}
	return false, nil
}
