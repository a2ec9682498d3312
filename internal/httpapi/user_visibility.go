package httpapi

import (
	"cmp"
	"context"

	"reeve"
	"reeve/internal/store"
)

// Schedules, and wakes, runs and notifications on behalf of a user, are visible to that user and to owners. For other
// callers they do not exist. Without a user they are visible to the whole workspace. Calls, operations and approvals
// are always visible to the whole workspace, because every member may approve calls.

// visibleUser returns the user to whose entries the caller is limited. Empty means no limit: owners see the entries of
// all users. Entries without a user are visible to every caller.
func visibleUser(who reeve.Principal) string {
	if who.Role == reeve.Owner {
		return ""
	}
	return callerID(who)
}

// callerID returns the caller's user, or the token's id if the token has no user.
func callerID(who reeve.Principal) string { return cmp.Or(who.User, who.TokenID) }

// canSee reports whether a caller may see the entries of a user.
func canSee(who reeve.Principal, user string) bool {
	return user == "" || visibleUser(who) == "" || visibleUser(who) == user
}

// newNotFound returns a NOT_FOUND error. Its text is the same for a missing entry and for one that the caller may not
// see.
func newNotFound(what, id string) error {
	return reeve.Errorf(reeve.NotFound, "%s %q not found", what, id)
}

// getVisibleRun returns a run. It fails with NOT_FOUND if the caller may not see it.
func getVisibleRun(ctx context.Context, snap *store.Snap, who reeve.Principal, id string) (reeve.Run, error) {
	r, err := snap.Runs().GetRun(ctx, who.Workspace, id)
	if err == nil && !canSee(who, r.UserID) {
		return reeve.Run{}, newNotFound("run", id)
	}
	return r, err
}

// timerReader reads schedules, from a snapshot or with a row lock from a transaction.
type timerReader interface {
	GetTimer(ctx context.Context, workspace, user, id string) (reeve.Timer, error)
}

// getVisibleTimer returns a schedule. It fails with NOT_FOUND if the caller may not see it.
func getVisibleTimer(ctx context.Context, s timerReader, who reeve.Principal, id string) (reeve.Timer, error) {
	t, err := s.GetTimer(ctx, who.Workspace, "", id)
	if err == nil && !canSee(who, t.UserID) {
		return reeve.Timer{}, newNotFound("schedule", id)
	}
	return t, err
}
