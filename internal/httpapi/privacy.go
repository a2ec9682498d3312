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

// eyes is whose things a caller sees beside nobody's; empty means everybody's.
func eyes(who reeve.Principal) string {
	if who.Role == reeve.Owner {
		return ""
	}
	return self(who)
}

// self is who a caller is.
func self(who reeve.Principal) string { return cmp.Or(who.User, who.TokenID) }

// sees tells whether a caller sees what belongs to a user.
func sees(who reeve.Principal, user string) bool {
	return user == "" || eyes(who) == "" || eyes(who) == user
}

// absent is the answer for what is another's: the very words for what never was.
func absent(what, id string) error { return reeve.Errorf(reeve.NotFound, "%s %q not found", what, id) }

// runFor reads a run that the caller may see.
func runFor(ctx context.Context, snap *store.Snap, who reeve.Principal, id string) (reeve.Run, error) {
	r, err := snap.Runs().GetRun(ctx, who.Workspace, id)
	if err == nil && !sees(who, r.UserID) {
		return reeve.Run{}, absent("run", id)
	}
	return r, err
}

// timers is where a schedule is read from: a snapshot, or a transaction that will change it.
type timers interface {
	GetTimer(ctx context.Context, workspace, user, id string) (reeve.Timer, error)
}

// timerFor reads a schedule that the caller may see.
func timerFor(ctx context.Context, s timers, who reeve.Principal, id string) (reeve.Timer, error) {
	t, err := s.GetTimer(ctx, who.Workspace, "", id)
	if err == nil && !sees(who, t.UserID) {
		return reeve.Timer{}, absent("schedule", id)
	}
	return t, err
}
