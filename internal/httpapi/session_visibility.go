package httpapi

import (
	"context"
	"strings"

	"reeve"
	"reeve/internal/chat"
	"reeve/internal/store"
)

// A conversation is visible to its participants and to owners. For other callers its session and its runs do not exist,
// wherever a request names them. A session that a user names belongs to that user, unless its name begins with
// reeve.SharedSessionPrefix.

// resolveSession returns the session that a caller means by a name: a conversation, a shared session, or else a session
// of the caller's own. For owners, who see every session, it means the session that is stored under that name.
func resolveSession(ctx context.Context, snap *store.Snap, who reeve.Principal, name string) (string, error) {
	switch {
	case name == "" || chat.VisibleTo(who) == "":
		return name, nil
	case name == reeve.SharedDefaultSession:
		return reeve.DefaultSession(who.User), nil
	case reeve.IsDefaultSession(name), strings.HasPrefix(name, reeve.SharedSessionPrefix),
		strings.HasPrefix(name, reeve.OwnSessionPrefix), name == reeve.AutomationSession:
		return name, nil
	}
	_, err := snap.Chat().GetConversation(ctx, who.Workspace, "", name)
	if reeve.CodeOf(err) == reeve.NotFound {
		return reeve.PrivateSessionPrefix(who.User) + name, nil
	}
	return name, err
}

// isSessionHidden reports whether a session belongs to another user, or is a conversation that the caller may not see.
func isSessionHidden(ctx context.Context, snap *store.Snap, who reeve.Principal, session string) (bool, error) {
	if session == "" || chat.VisibleTo(who) == "" {
		return false, nil
	}
	if reeve.IsDefaultSession(session) {
		return session != reeve.DefaultSession(who.User), nil
	}
	if strings.HasPrefix(session, reeve.OwnSessionPrefix) {
		return !strings.HasPrefix(session, reeve.PrivateSessionPrefix(who.User)), nil
	}
	if _, err := snap.Chat().GetConversation(ctx, who.Workspace, "", session); err != nil {
		if reeve.CodeOf(err) == reeve.NotFound {
			return false, nil // a shared session, or one of the owner
		}
		return false, err
	}
	_, err := getVisibleConversation(ctx, snap, who, session)
	if reeve.CodeOf(err) == reeve.NotFound {
		return true, nil
	}
	return false, err
}

// isRunHidden reports whether a run belongs to another user, or is a turn of a conversation that the caller may not
// see.
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

// checkSessionAccess returns an error if the caller may not see the session or the run.
func checkSessionAccess(ctx context.Context, snap *store.Snap, who reeve.Principal, session, run string) error {
	isHidden, err := isSessionHidden(ctx, snap, who, session)
	if err == nil && isHidden {
		return reeve.Errorf(reeve.NotFound, "session %q not found", session)
	}
	if err == nil {
		isHidden, err = isRunHidden(ctx, snap, who, run)
	}
	if err == nil && isHidden {
		err = reeve.Errorf(reeve.NotFound, "run %q not found", run)
	}
	return err
}
