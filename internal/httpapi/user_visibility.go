package httpapi

import (
	"cmp"
	"context"

	"reeve"
	"reeve/internal/store"
)

// Schedules, and wakes, runs and notifications on behalf of a user, are visible to that user and to owners. For other
// callers they do not exist. Without a user they are visible to the whole workspace.
//
// Calls, operations, approvals and proposals are visible to the whole workspace, because every member may approve
// calls. Those of tools that work on a user's private data, such as notes, are visible to that user and to owners; see
// reeve.Tool.Private. Read them through visibleLedger, and check them before the gate changes them. Participants of a
// conversation see every call that is made in it, in its frames and messages.

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

// viewerOf returns the user to whose private calls the caller is limited, or nil for owners.
func viewerOf(who reeve.Principal) *string {
	if who.Role == reeve.Owner {
		return nil
	}
	return new(callerID(who))
}

// visibleLedger returns the ledger as the caller sees it, without the private calls of other users.
func visibleLedger(snap *store.Snap, who reeve.Principal) store.Ledger {
	return snap.Ledger().VisibleTo(viewerOf(who))
}

// checkOperation fails with NOT_FOUND if the caller does not see an operation.
func checkOperation(ctx context.Context, db *store.DB, who reeve.Principal, id string) error {
	return db.View(ctx, func(snap *store.Snap) error {
		_, err := visibleLedger(snap, who).GetOperation(ctx, who.Workspace, id)
		return err
	})
}

// checkApproval fails with NOT_FOUND if the caller does not see an approval.
func checkApproval(ctx context.Context, db *store.DB, who reeve.Principal, id string) error {
	return db.View(ctx, func(snap *store.Snap) error {
		_, err := visibleLedger(snap, who).GetApproval(ctx, who.Workspace, id)
		return err
	})
}

// checkProposal fails with NOT_FOUND if the caller does not see a proposal.
func checkProposal(ctx context.Context, db *store.DB, who reeve.Principal, id string) error {
	return db.View(ctx, func(snap *store.Snap) error {
		_, err := visibleLedger(snap, who).GetProposal(ctx, who.Workspace, id)
		return err
	})
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
