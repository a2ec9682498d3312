package httpapi

import (
	"context"
	"slices"
	"strings"

	"reeve"
	"reeve/internal/store"
)

// watchedKeys are the keys that the built-in tools, schedules and notifications tell of.
func watchedKeys() []string {
	return []string{reeve.KeyTask, reeve.KeyCategory, reeve.KeyLabel, reeve.KeyChecklist, reeve.KeyTimeEntry, reeve.KeyDayPlan, reeve.KeyRating, reeve.KeyAgentState,
		"SCHEDULE", "FILE", "SESSION_FILE", "SCRATCHPAD", "MEDIA", "NOTIFICATION"}
}

// watchedSubtypes are the subtypes that the built-in tools tell of.
func watchedSubtypes() []string {
	list := []string{"time_entry.running", "time_entry.ended"}
	for _, target := range reeve.RatingTargets() {
		list = append(list, "rating."+string(target))
	}
	for _, status := range reeve.TaskStatuses() {
		list = append(list, "task."+string(status))
	}
	return list
}

// checkWatched refuses a subscription to what nothing can ever tell of. Where a program has tools of its own, which may tell of
// anything, it refuses only what is a known name in another case.
func (s *server) checkWatched(ctx context.Context, snap *store.Snap, who reeve.Principal, t reeve.Token) error {
	known := watchedKeys()
	switch t.Class {
	case reeve.EntityID:
		return s.checkWatchedID(ctx, snap, who, t.Name)
	case reeve.Subtype:
		known = watchedSubtypes()
	case reeve.SemanticKey:
	}
	if slices.Contains(known, t.Name) {
		return nil
	}
	slip := slices.ContainsFunc(known, func(name string) bool { return strings.EqualFold(name, t.Name) })
	if s.OpenTokens && !slip {
		return nil
	}
	return reeve.Wrong("/name", "is no "+string(t.Class)+" that anything tells of", "one of "+strings.Join(known, ", "))
}

// checkWatchedID refuses the id of a thing that is not there. Files are watched by their path, there or not.
func (s *server) checkWatchedID(ctx context.Context, snap *store.Snap, who reeve.Principal, id string) error {
	if s.OpenTokens || strings.Contains(id, "/") {
		return nil
	}
	_, there, err := snap.Journal(person(who)).Entity(ctx, id)
	if err != nil || there {
		return err
	}
	for _, look := range []func() error{
		func() error { _, err := snap.GetAgent(ctx, who.Workspace, id); return err },
		func() error { _, err := timerFor(ctx, snap, who, id); return err },
		func() error { _, err := see(ctx, snap, who, id); return err },
	} {
		if !reeve.IsID(id) { // an agent's name, say, is not told of
			break
		}
		if err := look(); reeve.CodeOf(err) != reeve.NotFound {
			return err
		}
	}
	return reeve.Wrong("/name", "is the id of nothing that there is", "the id of a thing of the journal, an agent, a schedule or a conversation, or the path of a file")
}
