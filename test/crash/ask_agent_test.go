package crash_test

import (
	"context"
	"testing"
)

const askModel = `answers:
  - {when: {system: I am helper, said: reach out}, calls: [{name: far_keyed, args: {lane: script}}]}
  - {when: {system: I am helper, tool: far_keyed}, text: "It is reached."}
`

// askScript asks an agent in one item and writes its answer to a file.
const askScript = `
await Items.withItem('one', 'One', async (ctx) => {
  if (ctx.item.isDone) return;
  const answer = await Agents.delegate({ agent: 'helper', input: 'reach out' });
  await Session.writeFile({ path: '/answer', content: answer });
});
'over'`

var wrongAsks = []rowCount{
	{"runs other than the script's and the helper's", `SELECT count(*) - 2 FROM runs`},
	{"runs that did not complete", `SELECT count(*) FROM runs WHERE state <> 'completed'`},
	{"items that are not done", `SELECT count(*) FROM items WHERE state <> 'done'`},
	{"questions other than the one expected", `SELECT count(*) - 1 FROM calls WHERE operation_id IS NOT NULL AND tool = 'delegate'`},
	{"answers that were lost, or came twice",
		`SELECT count(*) - 1 FROM calls o WHERE o.tool = 'delegate' AND o.state = 'committed' AND o.result = 'It is reached.'`},
	{"files other than the one expected", `SELECT count(*) - 1 FROM session_files`},
	{"answers of the model other than the two expected", `SELECT count(*) - 2 FROM messages WHERE kind = 'thought'`},
}

// TestW19_KillAtEveryCommitOfAScriptThatAsks kills the real server before and after every commit of a script that asks
// an agent and waits. The agent is asked once, its effect happens once, and the script continues with its answer.
func TestW19_KillAtEveryCommitOfAScriptThatAsks(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.useScript(askModel)
	for _, e := range []*engine{sqliteEngine(t), postgresEngine(t)} {
		var err error
		e.template, err = r.newWorld(t.Context(), e, func(c caller) error {
			ctx := t.Context()
			if err := c.do(ctx, "POST", "/api/tools", r.newWitnessTool("far_keyed", "keyed", "side_effecting"), nil); err != nil {
				return err
			}
			if err := c.do(ctx, "POST", "/api/agents",
				object{"name": "helper", "config": object{"instructions": "I am helper."}}, nil); err != nil {
				return err
			}
			if err := attachTools(ctx, c, "helper", "far_keyed"); err != nil {
				return err
			}
			return c.do(ctx, "POST", "/api/automations", object{"name": "asker", "source": askScript,
				"tools": []string{"delegate", "far_keyed", "write_file"}}, nil)
		})
		if err != nil {
			t.Fatal(err)
		}
		r.killAtEveryCommit(e, 12, func(ctx context.Context, w world, p *process) error {
			return r.driveAutomation(ctx, w, p, "asker", "go")
		},
			func(ctx context.Context, w world) error { return r.checkEnd(ctx, w, wrongAsks) })
	}
}
