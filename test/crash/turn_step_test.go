package crash_test

import (
	"context"
	"testing"

	"reeve"
)

const stepModel = `answers:
  - {when: {system: Assembled, said: go}, text: "All is done."}
`

var wrongSteps = []rowCount{
	{"turns that did not complete",
		`SELECT count(*) - 1 FROM runs WHERE reason = 'user_initiated' AND state = 'completed' AND output = 'All is done.'`},
	{"turns that are flagged", `SELECT count(*) FROM runs WHERE issues LIKE '%memory_extraction_failed%'`},
	{"runs without an end", `SELECT count(*) FROM runs WHERE state IN ('running', 'parked')`},
	{"answers other than the one expected", `SELECT count(*) - 1 FROM messages WHERE kind = 'thought'`},
	{"items other than the one expected that is done", `SELECT count(*) - 1 FROM items WHERE state = 'done'`},
	{"notes other than the one expected", `SELECT count(*) - 1 FROM calls WHERE operation_id IS NOT NULL AND tool = 'far_keyed'`},
	{"runs that took notes other than the one expected",
		`SELECT count(*) - 1 FROM runs r, agents a WHERE a.id = r.agent_id AND a.name = 'notes'`},
}

// TestW22_KillAtEveryCommitOfATurnWithSteps kills the real server before and after every commit of a turn whose request
// one automation assembles and of which another takes notes. The turn is answered once and its notes are taken once.
func TestW22_KillAtEveryCommitOfATurnWithSteps(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.useScript(stepModel)
	for _, e := range []*engine{sqliteEngine(t), postgresEngine(t)} {
		var talk reeve.Conversation
		var err error
		e.template, err = r.newWorld(t.Context(), e, func(c caller) error {
			ctx := t.Context()
			for _, made := range []struct {
				path string
				body any
				into any
			}{
				{"/api/tools", r.newWitnessTool("far_keyed", "keyed", "side_effecting"), nil},
				{"/api/automations", object{"name": "context",
					"source": `input.request.system = 'Assembled.'; input.request`, "tools": []string{"far_keyed"}},
					nil},
				{"/api/automations", object{"name": "notes", "tools": []string{"far_keyed"},
					"source": `await Items.withItem(input.turn_id, 'Notes', async (ctx) => { if (!ctx.item.isDone) await General.farKeyed({ lane: 'notes' }); })`}, nil},
				{"/api/agents", object{"name": "bot", "config": object{"assembly": "context", "extraction": "notes"}},
					nil},
				{"/api/conversations", object{"agent": "bot"}, &talk},
			} {
				if err := c.do(ctx, "POST", made.path, made.body, made.into); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		r.killAtEveryCommit(e, 20, func(ctx context.Context, w world, p *process) error {
			return r.driveTurn(ctx, w, p, talk.ID)
		},
			func(ctx context.Context, w world) error { return r.checkEnd(ctx, w, wrongSteps) })
	}
}
