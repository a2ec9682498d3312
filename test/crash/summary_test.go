package crash_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"reeve"
	"reeve/api"
)

const memoryModel = `answers:
  - {when: {system: /maintain the memory/}, text: "Three words long."}
  - {when: {said: /./}, text: "Heard."}
`

var wrongSummaries = []rowCount{
	{"summaries that are not made", `SELECT count(*) FROM summaries WHERE state <> 'done'`},
	{"summaries other than the one expected",
		`SELECT count(*) - 1 FROM messages WHERE kind = 'summary' AND content = 'Three words long.'`},
	{"turns that did not complete, or came twice", `SELECT count(*) - 3 FROM runs WHERE state = 'completed'`},
	{"answers other than the three expected", `SELECT count(*) - 3 FROM messages WHERE kind = 'thought'`},
}

// TestL13_KillAtEveryCommitOfASummary kills the real server before and after every commit of a turn that leads to a
// summary, and of the summary itself. The summary is made once.
func TestL13_KillAtEveryCommitOfASummary(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.useScript(memoryModel)
	for _, e := range []*engine{sqliteEngine(t), postgresEngine(t)} {
		var talk reeve.Conversation
		var err error
		e.template, err = r.newWorld(t.Context(), e, func(c caller) error {
			ctx := t.Context()
			if err := c.do(ctx, "POST", "/api/agents",
				object{"name": "bot", "config": object{"recent_turns": 1, "summaries": true}}, nil); err != nil {
				return err
			}
			if err := c.do(ctx, "POST", "/api/conversations", object{"agent": "bot"}, &talk); err != nil {
				return err
			}
			for i := range 2 {
				var turn reeve.Turn
				if err := c.do(ctx, "POST", "/api/conversations/"+talk.ID+"/turns",
					object{"content": fmt.Sprint("before ", i)}, &turn); err != nil {
					return err
				}
				if err := poll(ctx, "the turn to end", func() (bool, error) {
					err := c.do(ctx, "GET", "/api/turns/"+turn.ID, nil, &turn)
					return turn.State.IsFinal(), err
				}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		r.killAtEveryCommit(e, 6, func(ctx context.Context, w world, p *process) error {
			return r.driveSummary(ctx, w, p, talk.ID)
		}, r.checkSummary)
	}
}

// driveSummary sends a message and waits until the earlier ones are summarized.
func (r *rig) driveSummary(ctx context.Context, w world, p *process, conversation string) error {
	if err := r.driveTurn(ctx, w, p, conversation); err != nil {
		return err
	}
	c, err := w.owner(p, unlimited)
	if err != nil {
		return err
	}
	return poll(ctx, "the summary", func() (bool, error) {
		var page api.MessageList
		err := c.do(ctx, "GET", "/api/conversations/"+conversation+"/messages", nil, &page)
		return slices.ContainsFunc(page.Messages, func(m reeve.Message) bool { return m.Kind == reeve.Summary }), err
	})
}

// checkSummary checks that no forbidden rows exist.
func (r *rig) checkSummary(ctx context.Context, w world) error {
	return r.checkRows(ctx, w, slices.Concat(forbiddenRows, wrongSummaries))
}

// checkRows checks that queries count no rows.
func (r *rig) checkRows(ctx context.Context, w world, queries []rowCount) error {
	db, err := w.open()
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	var wrong []error
	for _, n := range queries {
		var rows int
		if err := db.QueryRowContext(ctx, n.query).Scan(&rows); err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", n.what, err))
		} else if rows != 0 {
			wrong = append(wrong, fmt.Errorf("%d %s", rows, n.what))
		}
	}
	return errors.Join(wrong...)
}
