package crash_test

import (
	"context"
	"testing"

	"reeve"
)

// acceptTwice accepts a proposal twice, as a client that repeats its request, and returns the operation that applies
// it.
func acceptTwice(ctx context.Context, c caller, id string) (string, error) {
	var p reeve.Proposal
	for range 2 {
		if err := c.do(ctx, "POST", "/api/proposals/"+id+"/accept", map[string]string{}, &p); err != nil {
			return "", err
		}
	}
	return p.OperationID, nil
}

// TestL27_KillAtEveryCommitOfAnAcceptance kills the real server before and after every commit of a call that is
// proposed, accepted and applied, and while its request is at the witness. The client repeats call and acceptance.
// There is one item, one operation and one effect.
func TestL27_KillAtEveryCommitOfAnAcceptance(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var jobs []func()
	for _, e := range []*engine{sqliteEngine(t), postgresEngine(t)} {
		var err error
		e.template, err = r.newWorld(t.Context(), e, func(c caller) error {
			ctx := t.Context()
			if err := c.do(ctx, "POST", "/api/tools", r.newWitnessTool("far_keyed", "keyed", "side_effecting"), nil); err != nil {
				return err
			}
			if err := c.do(ctx, "POST", "/api/agents",
				object{"name": "careful", "policy": object{"tiers": object{"side_effecting": "propose"}}},
				nil); err != nil {
				return err
			}
			for _, tool := range []string{"write_file", "read_file", "far_keyed"} {
				if err := c.do(ctx, "POST", "/api/agents/careful/tools", object{"tool_id": tool}, nil); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []scenario{{"accepted local", reeve.Local, unlimited, "careful", "write_file"},
			{"accepted keyed", reeve.Keyed, unlimited, "careful", "far_keyed"}} {
			if e.server != nil && s.class == reeve.Keyed && !*crashFull {
				continue
			}
			for _, when := range []string{"before", "after"} {
				jobs = append(jobs, func() { r.killAtCommits(e, s, fault{commit: 1, when: when}) })
			}
			if s.class == reeve.Keyed {
				jobs = append(jobs, func() {
					for _, when := range []string{"before", "counted", "answered"} {
						if _, err := r.runTrial(e, s, false, fault{plans: []witnessPlan{{Do: "kill", When: when}}}); err != nil {
							t.Errorf("%s, %s, killed %s: %v", e.name, s.name, when, err)
						}
					}
				})
			}
		}
	}
	runJobs(pointSlots, jobs)
	r.report()
	for _, l := range r.table {
		if l.kills < 6 {
			t.Errorf("%s, %s: only %d kills; the sweep did not reach the acceptance", l.engine, l.name, l.kills)
		}
	}
}
