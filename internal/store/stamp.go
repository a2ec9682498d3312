package store

import (
	"context"
	"maps"

	"reeve"
)

// shared is a table whose rows nodes that do not share a database will have in common.
type shared string

// Tables whose rows carry a stamp of their own. Journal rows and agents' states are stamped where they are written.
// Messages are not numbered when they are written: every call writes some, and would have to wait for every other. They
// never change, so that their ids say all that a merge asks; whoever sends them numbers them then.
const (
	SharedAgents        shared = "agents"
	SharedSubscriptions shared = "subscriptions"
	SharedTimers        shared = "timers"
)

// stamp notes who changed a row, for later sync.
func (t *Tx) stamp(ctx context.Context, in shared, id string) error {
	stamp, err := t.next(ctx, in, id)
	if err != nil {
		return err
	}
	return t.exec(ctx, `UPDATE `+string(in)+` SET node = $2, counter = $3, clock = $4 WHERE id = $1`, id, stamp.Node,
		stamp.Counter, text(stamp.Clock))
}

// bury notes who removed a row, so that a node that still has it can be told. It comes before the removal.
func (t *Tx) bury(ctx context.Context, in shared, workspace, id string) error {
	stamp, err := t.next(ctx, in, id)
	if err != nil {
		return err
	}
	return t.exec(ctx, `INSERT INTO removals (kind, id, workspace_id, node, counter, clock, removed_at)
		SELECT $1, id, workspace_id, $4, $5, $6, $7 FROM `+string(in)+` WHERE workspace_id = $2 AND id = $3 ON CONFLICT (kind, id) DO NOTHING`,
		string(in), workspace, id, stamp.Node, stamp.Counter, text(stamp.Clock), reeve.Millis(t.now))
}

// next is this transaction's stamp for what has one already: who wrote it knew of all that came before.
func (t *Tx) next(ctx context.Context, in shared, id string) (reeve.Stamp, error) {
	stamp, err := t.Stamp(ctx)
	if err != nil {
		return stamp, err
	}
	was, _, err := one(ctx, &t.Snap, scanStamp(string(in), id), `SELECT node, counter, clock FROM `+string(in)+
		` WHERE id = $1`, id)
	clock := maps.Clone(was.Clock)
	if clock == nil {
		clock = map[string]int64{}
	}
	maps.Copy(clock, stamp.Clock)
	stamp.Clock = clock
	return stamp, err
}

// scanStamp reads the stamp of a row of a table.
func scanStamp(table, id string) func(scanner) (reeve.Stamp, error) {
	return func(r scanner) (v reeve.Stamp, err error) {
		defer wrapCorrupt(table, &id, &err)
		var clock string
		if err := r.Scan(&v.Node, &v.Counter, &clock); err != nil {
			return v, err
		}
		return v, decode("clock", clock, &v.Clock)
	}
}

// StampOf reads who changed a row last. A row that was removed has the stamp of that.
func (s *Snap) StampOf(ctx context.Context, in shared, id string) (reeve.Stamp, error) {
	v, ok, err := one(ctx, s, scanStamp(string(in), id), `SELECT node, counter, clock FROM `+string(in)+
		` WHERE id = $1`, id)
	if err == nil && !ok {
		v, _, err = one(ctx, s, scanStamp("removals", id),
			`SELECT node, counter, clock FROM removals WHERE kind = $1 AND id = $2`, string(in), id)
	}
	return v, err
}
