package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"reeve"
	"reeve/internal/store"
)

// wakes asks what it costs to find out whom a change concerns, to start what is due, and to append to a long thread.
func wakes(ctx context.Context, c config, t *table) error {
	parts := []struct {
		name string
		run  func(context.Context, config, opener, *table) error
	}{{"matching", matching}, {"firing", firing}, {"starting", starting}, {"claiming", claiming}, {"appending", appending}}
	for _, e := range engines {
		for _, part := range parts {
			if part.name != "claiming" && !c.only.MatchString(e.name+" "+part.name) { // which looks by itself, for each number at once
				continue
			}
			if err := part.run(ctx, c, opener{e.name, e.open}, t); err != nil {
				return err
			}
		}
	}
	return nil
}

// opener opens databases of one kind.
type opener struct {
	name string
	open func(ctx context.Context, c config, name string) (store.Engine, error)
}

// world opens a database and makes a world of it.
func (o opener) world(ctx context.Context, c config, name string) (*world, error) {
	e, err := o.open(ctx, c, name)
	if err != nil {
		return nil, err
	}
	return newWorld(ctx, e)
}

// fill runs a statement that adds rows for $1 <= i <= $2, in plain SQL: through the store it would take ten times as long, and
// the rows would be the same. The rows are those of i in n.
func (w *world) fill(ctx context.Context, n int, insert string) (err error) {
	db, _, err := w.engine.Migrator(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	if w.db.Alone() {
		if _, err := db.ExecContext(ctx, "PRAGMA foreign_keys = OFF"); err != nil {
			return err
		}
	}
	insert = `WITH RECURSIVE n(i) AS (SELECT CAST($1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < $2) ` + insert
	for from := 0; from < n; from += 20_000 {
		if _, err := db.ExecContext(ctx, insert, from, min(n, from+20_000)-1); err != nil {
			return err
		}
	}
	settle := "ANALYZE"
	if w.db.Alone() {
		settle = "PRAGMA wal_checkpoint(TRUNCATE)"
	}
	_, err = db.ExecContext(ctx, settle)
	return err
}

// costs lets the lanes take turns of some calls each, and gives what a call cost, in microseconds, by turn.
func costs(ctx context.Context, c config, calls int, do ...func(i int) error) ([]series, error) {
	lanes := make([]lane, len(do))
	for k, f := range do {
		i := 0
		lanes[k] = func(context.Context, time.Duration) (float64, error) {
			start := time.Now()
			for range calls {
				if err := f(i); err != nil {
					return 0, err
				}
				i++
			}
			return float64(time.Since(start).Microseconds()) / float64(calls), nil
		}
	}
	c.rounds *= 4
	return turns(ctx, c, lanes...)
}

// matchLimit is how long it may take to find out whom 100 tokens concern, in microseconds.
const matchLimit = 2000

// matching tells of a change with 100 tokens, ten of which somebody watches, where there are few subscriptions and where there
// are many. What it costs beyond writing the hundred events is the matching, and the ten wakes it queues.
func matching(ctx context.Context, c config, o opener, t *table) error {
	many := 100_000
	var do []func(int) error
	for _, n := range []int{many, 1000} {
		w, err := o.world(ctx, c, fmt.Sprint("match_", n))
		if err != nil {
			return err
		}
		defer w.close()
		if err := w.fill(ctx, n, `INSERT INTO subscriptions (id, workspace_id, agent_id, class, name, predicate, created_at)
			SELECT 'sub_' || CAST(i AS TEXT), '`+workspace+`', '`+w.agent+`', 'id', 'thing-' || CAST(i AS TEXT), '', 0 FROM n`); err != nil {
			return err
		}
		batch := func() []reeve.Token {
			tokens := make([]reeve.Token, 100)
			for i := range tokens {
				tokens[i] = reeve.Token{Class: reeve.EntityID, Name: fmt.Sprint("other-", rand.IntN(1_000_000))}
				if i%10 == 0 {
					tokens[i].Name = fmt.Sprint("thing-", rand.IntN(n))
				}
			}
			return tokens
		}
		tell := func(i int) error {
			return w.db.Update(ctx, func(tx *store.Tx) error {
				return tx.Notify(ctx, store.Change{Workspace: workspace, Operation: fmt.Sprint("op_", i), Tokens: batch(), Window: time.Hour})
			})
		}
		write := func(i int) error {
			return w.db.Update(ctx, func(tx *store.Tx) error {
				return tx.InsertEvents(ctx, workspace, "", fmt.Sprint("op_", i), batch())
			})
		}
		do = append(do, tell, write)
	}
	got, err := costs(ctx, c, 20, do...)
	if err != nil {
		return err
	}
	match := make([]float64, len(got[0].rates))
	for i := range match {
		match[i] = got[0].rates[i] - got[1].rates[i]
	}
	t.add(row{Section: "wakes", Name: fmt.Sprintf("%s, 100 tokens matched with %d subscriptions", o.name, many), Unit: "µs", Ours: least(match), OursMedian: median(match),
		Against: "limit", Peer: matchLimit, Ratio: median(match) / matchLimit, Target: 1, AtMost: true})
	t.add(row{Section: "wakes", Name: o.name + ", matched, events written and committed", Unit: "µs", Ours: least(got[0].rates), OursMedian: median(got[0].rates),
		Against: "limit", Peer: matchLimit, Ratio: median(got[0].rates) / matchLimit, AtMost: true})
	t.add(compareCosts(row{Section: "wakes", Name: fmt.Sprintf("%s, the whole with %d subscriptions", o.name, many), Unit: "µs", Against: "with 1000", Target: 1.2}, got[0], got[2]))
	return nil
}

// appending adds to one long thread and to one short one.
func appending(ctx context.Context, c config, o opener, t *table) error {
	many := pick(c, 1_000_000, 100_000)
	var do []func(int) error
	for _, n := range []int{many, 1000} {
		w, err := o.world(ctx, c, fmt.Sprint("append_", n))
		if err != nil {
			return err
		}
		defer w.close()
		if err := w.fill(ctx, n, `INSERT INTO messages (id, workspace_id, thread_id, agent_id, run_id, kind, content, metadata, created_at)
			SELECT 'msg_01a000000000000' || CAST(10000000000 + i AS TEXT), '`+workspace+`', 'long', '`+w.agent+`', '', 'thought', '`+content+`', '{}', i FROM n`); err != nil {
			return err
		}
		do = append(do, func(int) error {
			return w.db.Update(ctx, func(tx *store.Tx) error {
				return tx.AppendMessage(ctx, reeve.Message{ID: tx.NewID(reeve.PrefixMessage), WorkspaceID: workspace, ThreadID: "long", AgentID: w.agent, Kind: reeve.Thought,
					Content: content, Metadata: []byte("{}")})
			})
		})
	}
	got, err := costs(ctx, c, 50, do...)
	if err != nil {
		return err
	}
	t.add(compareCosts(row{Section: "wakes", Name: fmt.Sprintf("%s, append to a thread of %d messages", o.name, many), Unit: "µs", Against: "of 1000", Target: 1.2}, got[0], got[1]))
	return nil
}
