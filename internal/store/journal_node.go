package store

import (
	"context"

	"reeve"
)

// nodeClock is this node's id and counter within a transaction.
type nodeClock struct {
	reeve.Stamp
	taken bool // whether the transaction has taken a number of its own
}

// lockNode reads this node's counter and keeps it from everybody else until the transaction ends, so that numbers are
// taken in the order in which they are committed and none is left out.
func (t *Tx) lockNode(ctx context.Context) error {
	if t.node != nil {
		return nil
	}
	const lock = `UPDATE nodes SET counter = counter WHERE self = 1 RETURNING id, counter`
	scan := func(r scanner) (n nodeClock, err error) { return n, r.Scan(&n.Node, &n.Counter) }
	n, ok, err := one(ctx, &t.Snap, scan, lock)
	if err == nil && !ok {
		if err := t.exec(ctx, `INSERT INTO nodes (id, counter, self, created_at) VALUES ($1, 0, 1, $2) ON CONFLICT DO NOTHING`,
			t.NewID(reeve.PrefixNode), reeve.Millis(t.now)); err != nil {
			return err
		}
		n, _, err = one(ctx, &t.Snap, scan, lock)
	}
	if err == nil {
		t.node = &n
	}
	return err
}

// Stamp gives the stamp of this transaction's changes: this node and its next number, the same for all of them. A
// transaction that changes nothing shared takes no number.
func (t *Tx) Stamp(ctx context.Context) (reeve.Stamp, error) {
	if err := t.lockNode(ctx); err != nil {
		return reeve.Stamp{}, err
	}
	if !t.node.taken {
		t.node.taken = true
		t.node.Counter++
		t.node.Clock = map[string]int64{t.node.Node: t.node.Counter}
		if err := t.exec(ctx, `UPDATE nodes SET counter = $1 WHERE self = 1`, t.node.Counter); err != nil {
			return reeve.Stamp{}, err
		}
	}
	return t.node.Stamp, nil
}
