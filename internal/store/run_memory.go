package store

import (
	"context"

	"reeve"
)

// RunMemory returns the thread id under which the runs of an agent for a user are summarized.
func RunMemory(agent, user string) string { return agent + ":runs:" + user }

// isRemembered selects the runs that later runs of the agent are told of. It is the condition of the index runs_memory.
const isRemembered = `reason IN ('subscription', 'timer', 'recovery_catchup', 'manual')`

const outcomeColumns = `id, reason, reason_id, state, input, output, code, message, started_at, finished_at`

func scanOutcome(r scanner) (v reeve.Run, err error) {
	defer wrapCorrupt("runs", &v.ID, &err)
	var started, finished int64
	err = r.Scan(&v.ID, &v.Reason, &v.ReasonID, &v.State, &v.Input, &v.Output, &v.Code, &v.Message, &started, &finished)
	v.StartedAt, v.FinishedAt = reeve.FromMillis(started), timeOrNil(finished)
	return v, err
}

// ListOutcomes returns the last ended runs of an agent for a user before one run, newest first. Turns and work on
// scripts are left out. Only the fields that tell the outcome are set.
func (s Runs) ListOutcomes(ctx context.Context, agent, user, before string, limit int) ([]reeve.Run, error) {
	return queryAll(ctx, s.Snap, scanOutcome, `SELECT `+outcomeColumns+` FROM runs WHERE agent_id = $1 AND user_id = $2
		AND `+isRemembered+` AND id < $3 AND state NOT IN ('running', 'parked') ORDER BY id DESC LIMIT $4`,
		agent, user, before, limit)
}

// ListTimerOutcomes is ListOutcomes for the runs of one timer.
func (s Runs) ListTimerOutcomes(ctx context.Context, timer, agent, user, before string,
	limit int) ([]reeve.Run, error) {
	return queryAll(ctx, s.Snap, scanOutcome, `SELECT `+outcomeColumns+` FROM runs WHERE reason_id = $1
		AND reason_id <> '' AND id < $2 AND agent_id = $3 AND user_id = $4 AND state NOT IN ('running', 'parked')
		ORDER BY id DESC LIMIT $5`, timer, before, agent, user, limit)
}

// RunsBetween returns the last ended runs of an agent for a user after one run and up to another, oldest first.
func (s Runs) RunsBetween(ctx context.Context, agent, user, after, upTo string, limit int) ([]reeve.Run, error) {
	return queryAll(ctx, s.Snap, scanOutcome, `SELECT `+outcomeColumns+` FROM (SELECT `+outcomeColumns+` FROM runs
		WHERE agent_id = $1 AND user_id = $2 AND `+isRemembered+` AND id > $3 AND id <= $4
		AND state NOT IN ('running', 'parked') ORDER BY id DESC LIMIT $5) r ORDER BY id`, agent, user, after, upTo,
		limit)
}
