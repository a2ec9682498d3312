package store

import (
	"context"

	"reeve"
)

// nodeClock is this node's id and counter within a transaction.
type nodeClock struct {
	reeve.Stamp
	advanced bool // the transaction has incremented the counter
}

// lockNode reads this node's counter and locks it until the transaction ends, so that numbers follow the order of
// commits without gaps. It creates the node if there is none.
func (t *Tx) lockNode(ctx context.Context) error {
	if t.node != nil {
		return nil
	}
	const lock = `UPDATE nodes SET counter = counter WHERE self = 1 RETURNING id, counter`
	scan := func(r scanner) (n nodeClock, err error) { return n, r.Scan(&n.Node, &n.Counter) }
	n, ok, err := queryOne(ctx, &t.Snap, scan, lock)
	if err == nil && !ok {
		if err := t.exec(ctx, `INSERT INTO nodes (id, counter, self, created_at) VALUES ($1, 0, 1, $2) ON CONFLICT
			DO NOTHING`,
			t.NewID(reeve.PrefixNode), reeve.Millis(t.now)); err != nil {
			return err
		}
		n, _, err = queryOne(ctx, &t.Snap, scan, lock)
	}
	if err == nil {
		t.node = &n
	}
	return err
}

// Stamp returns the stamp of this transaction: the node and its next number. All changes of a transaction have the same
// stamp. A transaction that does not call Stamp uses no number.
func (t *Tx) Stamp(ctx context.Context) (reeve.Stamp, error) {
	if err := t.lockNode(ctx); err != nil {
		return reeve.Stamp{}, err
	}
	if !t.node.advanced {
		t.node.advanced = true
		t.node.Counter++
		t.node.Clock = map[string]int64{t.node.Node: t.node.Counter}
		if err := t.exec(ctx, `UPDATE nodes SET counter = $1 WHERE self = 1`, t.node.Counter); err != nil {
			return reeve.Stamp{}, err
		}
	}
	return t.node.Stamp, nil
}
