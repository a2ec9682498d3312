package httpapi

import (
	"cmp"
	"context"

	"reeve"
	"reeve/internal/store"
)

// Schedules, and the wakes, runs and notifications that are on a user's behalf, are that user's: for others they do not
// exist. What is on nobody's behalf is everybody's, and owners see all. The ledger of calls and what waits for an
// approval are the workspace's: anybody who may approve must see what.

// visibleUser is whose things a caller sees beside nobody's; empty means everybody's.
func visibleUser(who reeve.Principal) string {
	if who.Role == reeve.Owner {
		return ""
	}
	return callerID(who)
}

// callerID is who a caller is.
func callerID(who reeve.Principal) string { return cmp.Or(who.User, who.TokenID) }

// canSee tells whether a caller sees what belongs to a user.
func canSee(who reeve.Principal, user string) bool {
	return user == "" || visibleUser(who) == "" || visibleUser(who) == user
}

// newNotFound is the answer for what is another's: the very words for what never was.
func newNotFound(what, id string) error { return reeve.Errorf(reeve.NotFound, "%s %q not found", what, id) }

// getVisibleRun reads a run that the caller may see.
func getVisibleRun(ctx context.Context, snap *store.Snap, who reeve.Principal, id string) (reeve.Run, error) {
	r, err := snap.Runs().GetRun(ctx, who.Workspace, id)
	if err == nil && !canSee(who, r.UserID) {
		return reeve.Run{}, newNotFound("run", id)
	}
	return r, err
}

// timerReader is where a schedule is read from: a snapshot, or a transaction that will change it.
type timerReader interface {
	GetTimer(ctx context.Context, workspace, user, id string) (reeve.Timer, error)
}

// getVisibleTimer reads a schedule that the caller may see.
func getVisibleTimer(ctx context.Context, s timerReader, who reeve.Principal, id string) (reeve.Timer, error) {
	t, err := s.GetTimer(ctx, who.Workspace, "", id)
	if err == nil && !canSee(who, t.UserID) {
		return reeve.Timer{}, newNotFound("schedule", id)
	}
	return t, err
}
