package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"reeve/internal/store"
	"reeve/internal/store/sqlite"
)

// long asks whether a long conversation costs anything: a turn in one of 1,000,000 messages against one in one of 1,000.
func long(ctx context.Context, c config, t *table) error {
	dir := filepath.Join(c.dir, "long")
	many := pick(c, 1_000_000, 50_000)
	s, w, err := talkTo(ctx, dir)
	if err != nil {
		return err
	}
	ids := make([]string, 2)
	err = w.post(ctx, "/api/agents", map[string]any{"name": "bench"}, nil)
	for i := range ids {
		if err == nil {
			ids[i], err = w.conversation(ctx)
		}
	}
	if err := errors.Join(err, s.stop()); err != nil {
		return err
	}
	for i, n := range []int{1000, many} {
		if err := lengthen(ctx, filepath.Join(dir, "reeve.db"), ids[i], n); err != nil {
			return err
		}
	}
	if s, w, err = talkTo(ctx, dir); err != nil {
		return err
	}
	var short, tall []float64
	for i := range pick(c, 300, 60) + 10 {
		for k, into := range []*[]float64{&short, &tall} {
			_, whole, err := w.turn(ctx, ids[k], "speak")
			if err != nil {
				return errors.Join(err, s.stop())
			}
			if i >= 10 {
				*into = append(*into, ms(whole))
			}
		}
	}
	t.add(row{Section: "talk", Name: fmt.Sprintf("a turn in a conversation of %d messages", many), Unit: "ms", Ours: least(tall), OursMedian: median(tall), Against: "of 1000",
		Peer: least(short), PeerMedian: median(short), Ratio: median(tall) / median(short), BestRatio: least(tall) / least(short), Target: 1.2, AtMost: true})
	return s.stop()
}

// talkTo starts a server and reads its token.
func talkTo(ctx context.Context, dir string) (*server, *talker, error) {
	s, err := startTalk(ctx, dir)
	if err != nil {
		return nil, nil, err
	}
	token, err := os.ReadFile(filepath.Join(dir, "owner.token"))
	if err != nil {
		return nil, nil, errors.Join(err, s.stop())
	}
	return s, newTalker(s, strings.TrimSpace(string(token))), nil
}

// lengthen writes turns of two messages each into a conversation, older than all that are there.
func lengthen(ctx context.Context, file, conversation string, messages int) error {
	e, err := sqlite.Open(ctx, sqlite.Config{File: file})
	if err != nil {
		return err
	}
	db, err := store.Open(ctx, e, make([]byte, 32))
	if err != nil {
		return errors.Join(err, e.Close())
	}
	if err := db.Close(); err != nil { // its schema is there, and nobody has it open
		return err
	}
	raw, err := sql.Open("sqlite", file)
	if err != nil {
		return err
	}
	defer raw.Close()
	const answer = `{"type":"answer","move":1,"answer":{"provider":"bench","model":"instant","parts":[{"type":"text","text":"What was said then."}],"stop":"end","usage":{"input_tokens":1,"output_tokens":1,"micros":0}}}`
	const counted = `WITH RECURSIVE k(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM k WHERE i < ?1) `
	for _, q := range []string{
		counted + `INSERT INTO runs (id, run_key, workspace_id, agent_id, reason, reason_id, session_id, user_id, input, origins, thread_id, state, output, code, message, wakes, attempts, spent, owner, scheduled_at, started_at, finished_at)
			SELECT 'run_' || printf('%018d', i) || substr(?2, 24, 8), ?2 || printf('%d', i), c.workspace_id, c.agent_id, 'user_initiated', '', c.id, 'owner', 'speak', '', c.agent_id || ':session:' || c.id, 'completed', 'x', '', '', 1, 1, '', '', 0, i, i
			FROM k, conversations c WHERE c.id = ?2`,
		counted + `INSERT INTO messages (id, workspace_id, thread_id, agent_id, kind, content, metadata, created_at, run_id)
			SELECT 'msg_' || printf('%017d', i) || p.n || substr(?2, 24, 8), c.workspace_id, c.agent_id || ':session:' || c.id, c.agent_id, p.kind, 'What was said then.', p.meta, i, 'run_' || printf('%018d', i) || substr(?2, 24, 8)
			FROM k, conversations c, (SELECT '0' AS n, 'user' AS kind, '{"type":"said"}' AS meta UNION ALL SELECT '1', 'thought', '` + answer + `') p WHERE c.id = ?2`,
	} {
		if _, err := raw.ExecContext(ctx, q, messages/2, conversation); err != nil {
			return err
		}
	}
	return nil
}
