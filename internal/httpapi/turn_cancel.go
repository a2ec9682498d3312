package httpapi

import (
	"context"
	"time"

	"reeve"
	"reeve/internal/store"
	"reeve/internal/wake"
)

// turnCanceler cancels turns of conversations.
type turnCanceler struct {
	db        *store.DB
	scheduler *wake.Scheduler
	streams   *Streams
}

// abandon cancels a turn whose only client has disconnected or may no longer listen, as err shows. Other errors do not
// cancel the turn. Neither does a stopping server, which resumes the turn after the next start.
func (c turnCanceler) abandon(ctx context.Context, who reeve.Principal, turn string, err error) {
	why := ""
	switch reeve.CodeOf(err) {
	case reeve.Canceled:
		why = "its client disconnected"
	case reeve.Unauthenticated, reeve.NotFound:
		why = "its client may no longer listen"
	default:
	}
	if why == "" || c.streams.isStopping() {
		return
	}
	endCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	// a conflict means that the turn has just ended
	if _, err := c.scheduler.End(endCtx, who.Workspace, turn, reeve.Errorf(reeve.Canceled, "%s", why)); err != nil &&
		reeve.CodeOf(err) != reeve.Conflict {
		logFailure(ctx, err)
	}
}

// cancel cancels a turn that the caller may see. If conversation is set, the turn must belong to it.
func (c turnCanceler) cancel(ctx context.Context, who reeve.Principal, conversation, id string) (reeve.Turn, error) {
	err := c.db.View(ctx, func(snap *store.Snap) error {
		run, err := getVisibleTurn(ctx, snap, who, id)
		if err == nil && conversation != "" && run.SessionID != conversation {
			err = reeve.Errorf(reeve.NotFound, "turn %q not found in this conversation", id)
		}
		return err
	})
	if err != nil {
		return reeve.Turn{}, err
	}
	run, err := c.scheduler.Cancel(ctx, who.Workspace, id)
	return run.Turn(), err
}
