package httpapi

import (
	"context"
	"time"

	"reeve"
	"reeve/internal/store"
	"reeve/internal/wake"
)

// turnCanceler ends turns of conversations.
type turnCanceler struct {
	db        *store.DB
	scheduler *wake.Scheduler
	streams   *Streams
}

// abandon ends a turn whose only follower went away or lost its right to listen. An error of the store ends no turn,
// and neither does a server that stops: the turn goes on after the next start.
func (c turnCanceler) abandon(ctx context.Context, who reeve.Principal, turn string, err error) {
	why := ""
	switch reeve.CodeOf(err) {
	case reeve.Canceled:
		why = "its client went away"
	case reeve.Unauthenticated, reeve.NotFound:
		why = "its client may not listen any more"
	default:
	}
	if why == "" || c.streams.isStopping() {
		return
	}
	keep, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	// which means that it has just ended
	if _, err := c.scheduler.End(keep, who.Workspace, turn, reeve.Errorf(reeve.Canceled, "%s", why)); err != nil &&
		reeve.CodeOf(err) != reeve.Conflict {
		logFailure(ctx, err)
	}
}

// cancel ends a turn, of any conversation or of one.
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
