package httpapi

import (
	"context"

	"reeve"
	"reeve/internal/chat"
	"reeve/internal/store"
)

// Conversations belong to those who take part. Wherever a session or a run can be named, one that somebody does not
// take part in does not exist for them.

// resolveSession is the session that a caller means by a name. By "default" everybody means their own, but owners, who see
// all, mean the one that is stored under that name: everybody's once, and the server owner's now.
func resolveSession(who reeve.Principal, name string) string {
	if name == reeve.SharedDefault && chat.VisibleTo(who) != "" {
		return reeve.DefaultSession(who.User)
	}
	return name
}

// isSessionHidden tells whether a session is another user's default session, or a conversation that somebody does not see.
func isSessionHidden(ctx context.Context, snap *store.Snap, who reeve.Principal, session string) (bool, error) {
	if session == "" || chat.VisibleTo(who) == "" {
		return false, nil
	}
	if reeve.IsDefaultSession(session) {
		return session != reeve.DefaultSession(who.User), nil
	}
	if _, err := snap.Chat().GetConversation(ctx, who.Workspace, "", session); err != nil {
		if reeve.CodeOf(err) == reeve.NotFound {
			return false, nil // a session that is no conversation is the workspace's
		}
		return false, err
	}
	_, err := getVisibleConversation(ctx, snap, who, session)
	if reeve.CodeOf(err) == reeve.NotFound {
		return true, nil
	}
	return false, err
}

// isRunHidden tells whether a run is another user's, or a turn of a conversation that somebody does not see.
func isRunHidden(ctx context.Context, snap *store.Snap, who reeve.Principal, id string) (bool, error) {
	if id == "" || chat.VisibleTo(who) == "" {
		return false, nil
	}
	run, err := snap.Runs().GetRun(ctx, who.Workspace, id)
	switch {
	case reeve.CodeOf(err) == reeve.NotFound:
		return false, nil
	case err != nil:
		return false, err
	case run.Reason == reeve.ReasonUser:
		return isSessionHidden(ctx, snap, who, run.SessionID)
	}
	return !canSee(who, run.UserID), nil
}

// checkSessionAccess refuses calls in a session or run that somebody does not see.
func checkSessionAccess(ctx context.Context, snap *store.Snap, who reeve.Principal, session, run string) error {
	no, err := isSessionHidden(ctx, snap, who, session)
	if err == nil && no {
		return reeve.Errorf(reeve.NotFound, "session %q not found", session)
	}
	if err == nil {
		no, err = isRunHidden(ctx, snap, who, run)
	}
	if err == nil && no {
		err = reeve.Errorf(reeve.NotFound, "run %q not found", run)
	}
	return err
}
