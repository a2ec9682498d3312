package main_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"reeve"
)

// turnScript is a model that writes a file and reaches out in one answer, and then says that all is done. It knows by
// what it is told where it is, so that it goes on after a restart.
const turnScript = `answers:
  - {when: {said: go}, text: "I begin.", calls: [{name: write_file, args: {path: /a, content: "1"}}, {name: far_keyed, args: {lane: turn}}, {name: read_file, args: {path: /a}}]}
  - {when: {tool: far_keyed}, text: "All is done."}
`

// wrongTurns lists what must not be when the turn has come to its end.
var wrongTurns = []count{
	{"turns that did not complete",
		`SELECT count(*) FROM runs WHERE state <> 'completed' OR output <> 'All is done.' OR moves <> 2`},
	{"wakes that still wait", `SELECT count(*) FROM wakes WHERE state <> 'taken'`},
	{"answers beside the two", `SELECT count(*) - 2 FROM messages WHERE kind = 'thought'`},
	{"messages beside the one that was said", `SELECT count(*) - 1 FROM messages WHERE kind = 'user'`},
	{"calls beside the three", `SELECT count(*) - 3 FROM calls`},
	// started, 2 messages, 3 calls, 3 results, complete
	{"frames beside those that tell it", `SELECT count(*) - 10 FROM frames WHERE body NOT LIKE '%"discard":true%'`},
	{"frames with a hole before them",
		`SELECT count(*) FROM frames f WHERE f.n > 1 AND NOT EXISTS (SELECT 1 FROM frames g WHERE g.conversation_id = f.conversation_id AND g.n = f.n - 1)`},
}

// TestW11_KillAtEveryCommitOfATurn kills the real server before and after every commit of a turn: begun, answered, each
// effect and its result, told, ended. The client says the same again with its key after every crash. Whatever dies
// where, the turn finishes as if nothing had happened: the model's stored answer is followed and not asked for again,
// every effect happened once, and clients are told everything once.
func TestW11_KillAtEveryCommitOfATurn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.follow(turnScript)
	for _, e := range []*engine{sqliteEngine(t), postgresEngine(t)} {
		var talk reeve.Conversation
		var err error
		e.template, err = r.furnish(t.Context(), e, func(c caller) error {
			ctx := t.Context()
			if err := c.do(ctx, "POST", "/api/tools", r.farTool("far_keyed", "keyed", "side_effecting"),
				nil); err != nil {
				return err
			}
			if err := c.do(ctx, "POST", "/api/agents", thing{"name": "bot"}, nil); err != nil {
				return err
			}
			if err := attach(ctx, c, "bot", "write_file", "read_file", "far_keyed"); err != nil {
				return err
			}
			return c.do(ctx, "POST", "/api/conversations", thing{"agent": "bot"}, &talk)
		})
		if err != nil {
			t.Fatal(err)
		}
		r.everyCommit(e, 16, func(ctx context.Context, w world, p *process) error {
			return r.driveTurn(ctx, w, p,
				talk.ID)
		}, r.checkTurn)
	}
}

// follow has the servers' model follow a script.
func (r *rig) follow(script string) {
	r.t.Helper()
	file := filepath.Join(r.t.TempDir(), "script.yaml")
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		r.t.Fatal(err)
	}
	r.env = []string{"REEVE_MODEL=rehearsal", "REEVE_MODEL_SCRIPT=" + file}
}

// driveTurn is the client: it says one thing, with its key, and waits until the turn has come to its end.
func (r *rig) driveTurn(ctx context.Context, w world, p *process, conversation string) error {
	c, err := w.owner(p, unlimited)
	if err != nil {
		return err
	}
	var turn reeve.Turn
	if err := c.do(ctx, "POST", "/api/conversations/"+conversation+"/turns", thing{"content": "go"}, &turn,
		"Idempotency-Key", "the-one"); err != nil {
		return err
	}
	return poll(ctx, "the turn to end", func() (bool, error) {
		err := c.do(ctx, "GET", "/api/turns/"+turn.ID, nil, &turn)
		return turn.State.IsFinal(), err
	})
}

// count is a number of rows, all of which are wrong.
type count struct{ what, query string }

// checkTurn compares the ledger with the witness.
func (r *rig) checkTurn(ctx context.Context, w world) error { return r.checkEnd(ctx, w, wrongTurns) }

// checkEnd looks for rows that must not be when everything has come to its end, and for the one effect of far_keyed at
// the witness.
func (r *rig) checkEnd(ctx context.Context, w world, also []count) error {
	db, err := w.open()
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	wrong := counted(ctx, db, also)
	var far string
	if err := db.QueryRowContext(ctx,
		`SELECT operation_id FROM calls WHERE tool = 'far_keyed' AND operation_id IS NOT NULL`).Scan(&far); err != nil {
		return errors.Join(append(wrong, err)...)
	}
	n, err := r.effects(ctx, far)
	if err == nil && n != 1 {
		err = fmt.Errorf("the witness saw %d effects", n)
	}
	return errors.Join(append(wrong, err)...)
}

// counted says what of a database is wrong, by what must never be, and by what must not be here.
func counted(ctx context.Context, db *sql.DB, also []count) (wrong []error) {
	for _, n := range slices.Concat(never, also) {
		var rows int
		if err := db.QueryRowContext(ctx, n.query).Scan(&rows); err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", n.what, err))
		} else if rows != 0 {
			wrong = append(wrong, fmt.Errorf("%d %s", rows, n.what))
		}
	}
	return wrong
}
