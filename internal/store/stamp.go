package store

import (
	"context"
	"maps"

	"reeve"
)

// sharedTable is a table whose rows are synchronized between nodes with separate databases.
type sharedTable string

// Tables whose rows have a stamp that this file writes. Journal rows and agent states are stamped where they are
// written. Messages have no stamp, because stamping would serialize all calls. They never change, so their ids suffice
// for a merge.
const (
	SharedAgents        sharedTable = "agents"
	SharedSubscriptions sharedTable = "subscriptions"
	SharedTimers        sharedTable = "timers"
)

// stamp writes this transaction's stamp to a row, for synchronization.
func (t *Tx) stamp(ctx context.Context, in sharedTable, id string) error {
	stamp, err := t.nextStamp(ctx, in, id)
	if err != nil {
		return err
	}
	return t.exec(ctx, `UPDATE `+string(in)+` SET node = $2, counter = $3, clock = $4 WHERE id = $1`, id, stamp.Node,
		stamp.Counter, encodeJSON(stamp.Clock))
}

// recordRemoval stores which node deletes a row, so that nodes that still have the row can delete it. Call it before
// the deletion.
func (t *Tx) recordRemoval(ctx context.Context, in sharedTable, workspace, id string) error {
	stamp, err := t.nextStamp(ctx, in, id)
	if err != nil {
		return err
	}
	return t.exec(ctx, `INSERT INTO deletions (kind, id, workspace_id, node, counter, clock, removed_at)
		SELECT $1, id, workspace_id, $4, $5, $6, $7 FROM `+string(in)+` WHERE workspace_id = $2 AND id = $3
		ON CONFLICT (kind, id) DO NOTHING`,
		string(in), workspace, id, stamp.Node, stamp.Counter, encodeJSON(stamp.Clock), reeve.Millis(t.now))
}

// nextStamp returns this transaction's stamp for an existing row. Its clock includes the clock of the row's last stamp.
func (t *Tx) nextStamp(ctx context.Context, in sharedTable, id string) (reeve.Stamp, error) {
	stamp, err := t.Stamp(ctx)
	if err != nil {
		return stamp, err
	}
	was, _, err := queryOne(ctx, &t.Snap, scanStamp(string(in), id), `SELECT node, counter, clock FROM `+string(in)+
		` WHERE id = $1`, id)
	clock := maps.Clone(was.Clock)
	if clock == nil {
		clock = map[string]int64{}
	}
	maps.Copy(clock, stamp.Clock)
	stamp.Clock = clock
	return stamp, err
}

// scanStamp returns a function that scans the stamp of a row.
func scanStamp(table, id string) func(scanner) (reeve.Stamp, error) {
	return func(r scanner) (v reeve.Stamp, err error) {
		defer wrapCorrupt(table, &id, &err)
		var clock string
		if err := r.Scan(&v.Node, &v.Counter, &clock); err != nil {
			return v, err
		}
		return v, decodeJSON("clock", clock, &v.Clock)
	}
}

// StampOf returns the last stamp of a row, or the stamp of its removal if it was deleted.
func (s *Snap) StampOf(ctx context.Context, in sharedTable, id string) (reeve.Stamp, error) {
	v, ok, err := queryOne(ctx, s, scanStamp(string(in), id), `SELECT node, counter, clock FROM `+string(in)+
		` WHERE id = $1`, id)
	if err == nil && !ok {
		v, _, err = queryOne(ctx, s, scanStamp("deletions", id),
			`SELECT node, counter, clock FROM deletions WHERE kind = $1 AND id = $2`, string(in), id)
	}
	return v, err
}
