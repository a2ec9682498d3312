package crash_test

import (
	"context"
	"testing"

	"reeve"
)

// delegateScript is a model script: boss delegates a task to helper, which has an effect and answers; then boss loops
// it in. Each answer depends only on the messages, so that the work continues after a restart.
const delegateScript = `answers:
  - {when: {system: I am boss, said: go}, text: "I ask.", calls: [{name: delegate, args: {agent: helper, input: "reach out"}}]}
  - {when: {system: I am boss, tool: delegate}, text: "Come in.", calls: [{name: loop_in, args: {agent: helper, input: "tell them"}}]}
  - {when: {system: I am boss, tool: loop_in}, text: "All is done."}
  - {when: {system: I am helper, said: reach out}, calls: [{name: far_keyed, args: {lane: turn}}]}
  - {when: {system: I am helper, tool: far_keyed}, text: "It is reached."}
  - {when: {system: I am helper, said: tell them}, text: "I reached it."}
`

// wrongDelegations are queries that count rows that must not exist when the turn of the boss has ended.
var wrongDelegations = []rowCount{
	{"runs other than the boss's and the helper's two", `SELECT count(*) - 3 FROM runs`},
	{"runs that did not complete", `SELECT count(*) FROM runs WHERE state <> 'completed'`},
	{"wakes that still wait", `SELECT count(*) FROM wakes WHERE state <> 'taken'`},
	{"conversations other than the two expected", `SELECT count(*) - 2 FROM conversations`},
	{"answers other than the six expected", `SELECT count(*) - 6 FROM messages WHERE kind = 'thought'`},
	{"questions other than the three expected", `SELECT count(*) - 3 FROM messages WHERE kind = 'user'`},
	{"calls other than the three expected", `SELECT count(*) - 3 FROM calls`},
	{"delegations without the one answer",
		`SELECT count(*) - 1 FROM calls o WHERE o.tool = 'delegate' AND o.state = 'committed' AND o.result = 'It is reached.'`},
	{"loop-ins without the one answer",
		`SELECT count(*) - 1 FROM calls o WHERE o.tool = 'loop_in' AND o.state = 'committed' AND o.result = 'I reached it.'`},
	// the person and the helper in one; the person, the boss and the helper in the other
	{"participants other than the five expected", `SELECT count(*) - 5 FROM participants`},
	{"frames with a hole before them",
		`SELECT count(*) FROM frames f WHERE f.n > 1 AND NOT EXISTS (SELECT 1 FROM frames g WHERE g.conversation_id = f.conversation_id AND g.n = f.n - 1)`},
	{"ends that were told other than the three expected", `SELECT count(*) - 3 FROM frames WHERE body LIKE '%"turn_complete"%'`},
	{"results that were told other than the three expected", `SELECT count(*) - 3 FROM frames WHERE body LIKE '%"tool_result"%'`},
}

// TestW17_KillAtEveryCommitOfADelegation kills the real server before and after every commit of a turn that delegates
// and then loops the other agent in. The other agent is asked once each time, its effect happens once, its answer is
// delivered once, and both runs end.
func TestW17_KillAtEveryCommitOfADelegation(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.useScript(delegateScript)
	for _, e := range []*engine{sqliteEngine(t), postgresEngine(t)} {
		var talk reeve.Conversation
		var err error
		e.template, err = r.newWorld(t.Context(), e, func(c caller) error {
			ctx := t.Context()
			if err := c.do(ctx, "POST", "/api/tools", r.newWitnessTool("far_keyed", "keyed", "side_effecting"), nil); err != nil {
				return err
			}
			for _, name := range []string{"boss", "helper"} {
				if err := c.do(ctx, "POST", "/api/agents",
					object{"name": name, "config": object{"instructions": "I am " + name + "."}}, nil); err != nil {
					return err
				}
			}
			if err := attachTools(ctx, c, "boss", "delegate", "loop_in", "far_keyed"); err != nil {
				return err
			}
			if err := attachTools(ctx, c, "helper", "far_keyed"); err != nil {
				return err
			}
			return c.do(ctx, "POST", "/api/conversations", object{"agent": "boss"}, &talk)
		})
		if err != nil {
			t.Fatal(err)
		}
		r.killAtEveryCommit(e, 24, func(ctx context.Context, w world, p *process) error {
			return r.driveTurn(ctx, w, p, talk.ID)
		},
			func(ctx context.Context, w world) error { return r.checkEnd(ctx, w, wrongDelegations) })
	}
}
