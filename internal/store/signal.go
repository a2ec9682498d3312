package store

import (
	"context"

	"reeve"
)

// Signal is something that happened and that agents can watch, such as the answer of a run or the firing of a schedule.
// It changes nothing, so it is recorded only in a workspace with subscriptions.
type Signal struct {
	Change
	User   string
	Entity reeve.EntityChange
}

// RecordSignals wakes the agents that watch one of the tokens, and records what they are told. It takes no round trip.
func (t QueueTx) RecordSignals(ctx context.Context, list []Signal) error {
	var wakes, changes [][]any
	for _, s := range list {
		wakes = append(wakes, s.wakeValues(t.now)...)
		changes = append(changes, changeValues(ChangeAuthor{Workspace: s.Workspace, Change: s.Operation, Agent: s.Agent,
			User: s.User, Run: s.Run}, s.Entity, 0, t.now))
	}
	if len(list) == 0 {
		return nil
	}
	if err := t.wakeSubscribers(ctx, wakes); err != nil {
		return err
	}
	return t.tx.execRows(ctx, `INSERT INTO changes (`+changeColumns+`)
		SELECT v.column1, v.column2, v.column3, v.column4, v.column5, v.column6, v.column7, v.column8, v.column9,
		v.column10, v.column11, v.column12, v.column13, v.column14 FROM (VALUES (?)) AS v
		WHERE EXISTS (SELECT 1 FROM subscriptions s WHERE s.workspace_id = v.column3)
		ON CONFLICT (change_id, entity_id) DO NOTHING`,
		[]string{"TEXT", "TEXT", "TEXT", "TEXT", "TEXT", "TEXT", "TEXT", "TEXT", "TEXT", "TEXT", "TEXT", "TEXT",
			"BIGINT", "BIGINT"}, changes)
}

// NewSignal returns a signal about one entity. The text becomes the new value of a field.
func NewSignal(c Change, user, field, text string, e reeve.EntityChange) Signal {
	e.Action = reeve.EntityCreated
	e.Fields = map[string][2]string{field: {"", cutText(text, maxStoredValue)}}
	return Signal{Change: c, User: user, Entity: e}
}
