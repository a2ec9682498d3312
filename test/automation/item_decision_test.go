package automation_test

import (
	"strings"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/test/kit"
)

// A call that waits for approval does not run after a person skipped or restarted its item, and says why.
func TestK16_AnApprovalEndsWithItsItem(t *testing.T) {
	t.Parallel()
	a, d := newMailer(t, `for (const id of ['a', 'b']) await Items.withItem(id, id, async ({ item }) => { if (!item.isDone) await Mail.send({ to: id, text: String(item.attempt) }) })`)
	a.Want(200, nil, "PATCH", "/api/agents/mailer", kit.Call{"policy": kit.Call{"tools": kit.Call{"mail_send": "ask"}}})
	withdrawn := func(id, says string) {
		t.Helper()
		var p reeve.Approval
		a.Want(200, &p, "GET", "/api/approvals/"+id, nil)
		kit.Equal(t, kit.JoinValues(p.State, p.Comment), "lapsed "+says, "the approval")
		a.Want(409, nil, "POST", "/api/approvals/"+id+"/decision", kit.Call{"decision": "approve"})
		var x reeve.Explanation
		a.Want(200, &x, "GET", "/api/calls/"+p.CallID+"/explanation", nil)
		if !strings.Contains(x.Outcome, says) || x.Operation.State != reeve.DeniedOp {
			t.Errorf("explained as %q, %s; want %q", x.Outcome, x.Operation.State, says)
		}
	}
	r := a.RunOnce()
	kit.Equal(t, r.Run.State, reeve.RunParked, "it waits for a")
	first := kit.GetInbox(a.Host).Approvals[0]
	a.Want(200, nil, "POST", a.Path("/items/skip"), kit.Call{"item": "a"})
	withdrawn(first.ID, `a person skipped the item "a"`)
	var second reeve.Approval
	kit.Eventually(t, "it waits for b", func() bool {
		if _, err := a.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		list := kit.GetInbox(a.Host).Approvals
		if len(list) == 1 {
			second = list[0]
		}
		return len(list) == 1
	})
	a.Want(200, nil, "POST", a.Path("/items/reprocess"), kit.Call{"item": "b"})
	withdrawn(second.ID, `a person restarted the item "b"`)
	kit.Eventually(t, "b is done, at its second attempt", func() bool {
		if _, err := a.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, p := range kit.GetInbox(a.Host).Approvals {
			kit.Decide(a.Host, p.ID, "approve")
		}
		return a.ItemState("b") == reeve.ItemDone
	})
	kit.Equal(t, kit.JoinValues(a.ItemState("a"), d), "skipped map[b2:1]", "what was done")
}

// An unknown outcome of a skipped item still waits for a person, but it is not run again.
func TestK16_UnknownOutcomeOfASkippedItem(t *testing.T) {
	t.Parallel()
	a, _ := runWithUnknownOutcome(t)
	op := kit.GetInbox(a.Host).Unknown[0]
	a.Want(200, nil, "POST", a.Path("/items/skip"), kit.Call{"item": "a"})
	var why api.Problem
	a.Want(409, &why, "POST", "/api/operations/"+op.ID+"/resolve", kit.Call{"resolution": "retry"})
	if !strings.Contains(why.Detail, `skipped the item "a"`) {
		t.Errorf("it says %q", why.Detail)
	}
	a.Want(200, nil, "POST", "/api/operations/"+op.ID+"/resolve", kit.Call{"resolution": "skip"})
}

// A person asks for a finished item to be processed again during a run. The run processes it if it has not passed it
// yet; otherwise the next run does.
func TestK16_ReprocessDuringARun(t *testing.T) {
	t.Parallel()
	a, d := newMailer(t, `for (let i = 10; i < input.to; i++) await Items.withItem('i' + i, 'x', async ({ item }) => { if (!item.isDone) await Mail.send({ to: item.id }); else if (i === 20) await Mail.list() }); input.to`)
	kit.Equal(t, a.StartRun(kit.Call{"input": kit.Call{"to": 40}}).Run.State, reeve.RunCompleted, "the first run")
	a.SaveVersion(`await Items.withItem('i00', 'x', async () => {}); await Items.withItem('i01', 'x', async () => {});
for (let i = 10; i < 40; i++) await Items.withItem('i' + i, 'x', async ({ item }) => { if (!item.isDone || i === 20) await Mail.send({ to: item.id + (i === 20 ? '!' : '') }) })`, true)
	a.Want(200, nil, "POST", a.Path("/items/reprocess"), kit.Call{"item": "i20"})
	d.hook = func(what string) {
		if what == "i20!" { // the run has read of all of them
			a.Want(200, nil, "POST", a.Path("/items/reprocess"), kit.Call{"item": "i15"})
			a.Want(200, nil, "POST", a.Path("/items/reprocess"), kit.Call{"item": "i30"})
		}
	}
	a.MustComplete()
	kit.Equal(t, kit.JoinValues(d.done["i15"], d.done["i30"], a.ItemState("i15"), a.ItemState("i30"), a.GetItem("i30").
		Attempt),
		"1 2 processing done 2", "in that run")
	d.hook = nil
	a.SaveVersion(`for (let i = 10; i < 40; i++) await Items.withItem('i' + i, 'x', async ({ item }) => { if (!item.isDone) await Mail.send({ to: item.id }) })`, true)
	a.MustComplete()
	kit.Equal(t, kit.JoinValues(d.done["i15"], d.done["i30"], d.done["i20!"], a.ListItems("status=done").Total),
		"2 2 1 32",
		"after the next")
}
