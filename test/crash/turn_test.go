package crash_test

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

// turnScript is a model script that writes a file and calls the witness in one answer, and then reports the end. Each
// answer depends only on the messages, so that the turn continues after a restart.
const turnScript = `answers:
  - {when: {said: go}, text: "I begin.", calls: [{name: write_file, args: {path: /a, content: "1"}}, {name: far_keyed, args: {lane: turn}}, {name: read_file, args: {path: /a}}]}
  - {when: {tool: far_keyed}, text: "All is done."}
`

// wrongTurns are queries that count rows that must not exist when the turn has ended.
var wrongTurns = []rowCount{
	{"turns that did not complete",
		`SELECT count(*) FROM runs WHERE state <> 'completed' OR output <> 'All is done.' OR moves <> 2`},
	{"wakes that still wait", `SELECT count(*) FROM wakes WHERE state <> 'taken'`},
	{"answers other than the two expected", `SELECT count(*) - 2 FROM messages WHERE kind = 'thought'`},
	{"messages other than the one expected that was said", `SELECT count(*) - 1 FROM messages WHERE kind = 'user'`},
	{"calls other than the three expected", `SELECT count(*) - 3 FROM calls`},
	// started, 2 messages, 3 calls, 3 results, complete
	{"frames beside those that tell it", `SELECT count(*) - 10 FROM frames WHERE body NOT LIKE '%"discard":true%'`},
	{"frames with a hole before them",
		`SELECT count(*) FROM frames f WHERE f.n > 1 AND NOT EXISTS (SELECT 1 FROM frames g WHERE g.conversation_id = f.conversation_id AND g.n = f.n - 1)`},
}

// TestW11_KillAtEveryCommitOfATurn kills the real server before and after every commit of a turn. The client repeats
// its message with its key after every crash. The turn finishes as without a crash: the stored answer of the model is
// used again, every effect happens once, and clients get every frame once.
func TestW11_KillAtEveryCommitOfATurn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.useScript(turnScript)
	for _, e := range []*engine{sqliteEngine(t), postgresEngine(t)} {
		var talk reeve.Conversation
		var err error
		e.template, err = r.newWorld(t.Context(), e, func(c caller) error {
			ctx := t.Context()
			if err := c.do(ctx, "POST", "/api/tools", r.newWitnessTool("far_keyed", "keyed", "side_effecting"), nil); err != nil {
				return err
			}
			if err := c.do(ctx, "POST", "/api/agents", object{"name": "bot"}, nil); err != nil {
				return err
			}
			if err := attachTools(ctx, c, "bot", "write_file", "read_file", "far_keyed"); err != nil {
				return err
			}
			return c.do(ctx, "POST", "/api/conversations", object{"agent": "bot"}, &talk)
		})
		if err != nil {
			t.Fatal(err)
		}
		r.killAtEveryCommit(e, 16, func(ctx context.Context, w world, p *process) error {
			return r.driveTurn(ctx, w, p, talk.ID)
		}, r.checkTurn)
	}
}

// useScript makes the model of the servers follow a script.
func (r *rig) useScript(script string) {
	r.t.Helper()
	file := filepath.Join(r.t.TempDir(), "script.yaml")
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		r.t.Fatal(err)
	}
	r.env = []string{"REEVE_MODEL=rehearsal", "REEVE_MODEL_SCRIPT=" + file}
}

// driveTurn plays the client: it sends one message with its key and waits until the turn has ended.
func (r *rig) driveTurn(ctx context.Context, w world, p *process, conversation string) error {
	c, err := w.owner(p, unlimited)
	if err != nil {
		return err
	}
	var turn reeve.Turn
	if err := c.do(ctx, "POST", "/api/conversations/"+conversation+"/turns", object{"content": "go"}, &turn,
		"Idempotency-Key", "the-one"); err != nil {
		return err
	}
	return poll(ctx, "the turn to end", func() (bool, error) {
		err := c.do(ctx, "GET", "/api/turns/"+turn.ID, nil, &turn)
		return turn.State.IsFinal(), err
	})
}

// rowCount is a query that counts rows that must not exist.
type rowCount struct{ what, query string }

// checkTurn compares the ledger with the witness.
func (r *rig) checkTurn(ctx context.Context, w world) error { return r.checkEnd(ctx, w, wrongTurns) }

// checkEnd checks that no forbidden rows exist at the end, and that far_keyed had one effect at the witness.
func (r *rig) checkEnd(ctx context.Context, w world, also []rowCount) error {
	db, err := w.open()
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	wrong := checkRows(ctx, db, also)
	var far string
	if err := db.QueryRowContext(ctx,
		`SELECT operation_id FROM calls WHERE tool = 'far_keyed' AND operation_id IS NOT NULL`).Scan(&far); err != nil {
		return errors.Join(append(wrong, err)...)
	}
	n, err := r.countEffects(ctx, far)
	if err == nil && n != 1 {
		err = fmt.Errorf("the witness saw %d effects", n)
	}
	return errors.Join(append(wrong, err)...)
}

// checkRows returns an error for every forbidden row of a database.
func checkRows(ctx context.Context, db *sql.DB, also []rowCount) (wrong []error) {
	for _, n := range slices.Concat(forbiddenRows, also) {
		var rows int
		if err := db.QueryRowContext(ctx, n.query).Scan(&rows); err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", n.what, err))
		} else if rows != 0 {
			wrong = append(wrong, fmt.Errorf("%d %s", rows, n.what))
		}
	}
	return wrong
}
