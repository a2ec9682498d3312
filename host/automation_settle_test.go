package host_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"reeve"
	"reeve/api"
)

// TestK16_AnApprovalEndsWithItsItem: a call that waits for a person runs no more once a person has skipped its item, or
// begun it anew, and says why.
func TestK16_AnApprovalEndsWithItsItem(t *testing.T) {
	t.Parallel()
	a, d := automate(t, `for (const id of ['a', 'b']) await Items.withItem(id, id, async ({ item }) => { if (!item.isDone) await Mail.send({ to: id, text: String(item.attempt) }) })`)
	a.Want(200, nil, "PATCH", "/api/agents/mailer", call{"policy": call{"tools": call{"mail_send": "ask"}}})
	withdrawn := func(id, says string) {
		t.Helper()
		var p reeve.Approval
		a.Want(200, &p, "GET", "/api/approvals/"+id, nil)
		equal(t, spoken(p.State, p.Comment), "lapsed "+says, "the approval")
		a.Want(409, nil, "POST", "/api/approvals/"+id+"/decision", call{"decision": "approve"})
		var x reeve.Explanation
		a.Want(200, &x, "GET", "/api/calls/"+p.CallID+"/explanation", nil)
		if !strings.Contains(x.Outcome, says) || x.Operation.State != reeve.DeniedOp {
			t.Errorf("explained as %q, %s; want %q", x.Outcome, x.Operation.State, says)
		}
	}
	r := a.run()
	equal(t, r.Run.State, reeve.RunParked, "it waits for a")
	first := inbox(a.Host).Approvals[0]
	a.Want(200, nil, "POST", a.at("/items/skip"), call{"item": "a"})
	withdrawn(first.ID, `a person skipped the item "a"`)
	var second reeve.Approval
	eventually(t, "it waits for b", func() bool {
		if _, err := a.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		list := inbox(a.Host).Approvals
		if len(list) == 1 {
			second = list[0]
		}
		return len(list) == 1
	})
	a.Want(200, nil, "POST", a.at("/items/reprocess"), call{"item": "b"})
	withdrawn(second.ID, `a person restarted the item "b"`)
	eventually(t, "b is done, at its second attempt", func() bool {
		if _, err := a.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, p := range inbox(a.Host).Approvals {
			decide(a.Host, p.ID, "approve")
		}
		return a.state("b") == reeve.ItemDone
	})
	equal(t, spoken(a.state("a"), d), "skipped map[b2:1]", "what was done")
}

// TestK16_AnUnknownOfASettledItem: what may have happened is still for a person to say, but it is not run again for an
// item that was skipped.
func TestK16_AnUnknownOfASettledItem(t *testing.T) {
	t.Parallel()
	a, _ := lostInAScript(t)
	op := inbox(a.Host).Unknown[0]
	a.Want(200, nil, "POST", a.at("/items/skip"), call{"item": "a"})
	var why api.Problem
	a.Want(409, &why, "POST", "/api/operations/"+op.ID+"/resolve", call{"resolution": "retry"})
	if !strings.Contains(why.Detail, `skipped the item "a"`) {
		t.Errorf("it says %q", why.Detail)
	}
	a.Want(200, nil, "POST", "/api/operations/"+op.ID+"/resolve", call{"resolution": "skip"})
}

// TestK16_DoneAndAskedForAgainMeanwhile: an item that is done, and that a person wants done again while a run is under
// way, is done by that run when it comes to it, though the run had read of it before; one that it has passed over is
// the next run's.
func TestK16_DoneAndAskedForAgainMeanwhile(t *testing.T) {
	t.Parallel()
	a, d := automate(t, `for (let i = 10; i < input.to; i++) await Items.withItem('i' + i, 'x', async ({ item }) => { if (!item.isDone) await Mail.send({ to: item.id }); else if (i === 20) await Mail.list() }); input.to`)
	equal(t, a.start(call{"input": call{"to": 40}}).Run.State, reeve.RunCompleted, "the first run")
	a.save(`await Items.withItem('i00', 'x', async () => {}); await Items.withItem('i01', 'x', async () => {});
for (let i = 10; i < 40; i++) await Items.withItem('i' + i, 'x', async ({ item }) => { if (!item.isDone || i === 20) await Mail.send({ to: item.id + (i === 20 ? '!' : '') }) })`, true)
	a.Want(200, nil, "POST", a.at("/items/reprocess"), call{"item": "i20"})
	d.hook = func(what string) {
		if what == "i20!" { // the run has read of all of them
			a.Want(200, nil, "POST", a.at("/items/reprocess"), call{"item": "i15"})
			a.Want(200, nil, "POST", a.at("/items/reprocess"), call{"item": "i30"})
		}
	}
	a.completes()
	equal(t, spoken(d.done["i15"], d.done["i30"], a.state("i15"), a.state("i30"), a.item("i30").Attempt),
		"1 2 processing done 2", "in that run")
	d.hook = nil
	a.save(`for (let i = 10; i < 40; i++) await Items.withItem('i' + i, 'x', async ({ item }) => { if (!item.isDone) await Mail.send({ to: item.id }) })`, true)
	a.completes()
	equal(t, spoken(d.done["i15"], d.done["i30"], d.done["i20!"], a.items("status=done").Total), "2 2 1 32",
		"after the next")
}

// TestK14_RunsSideBySide: runs that are steps of turns go side by side. An item that one of them is at is not worked on
// by another.
func TestK14_RunsSideBySide(t *testing.T) {
	t.Parallel()
	h, _, d := stepper(t, object{"assembly": "context"}, map[string]string{"context": `
await Items.withItem('shared', 'x', async ({ item }) => { if (!item.isDone) await Mail.send({ to: 'x', text: input.session_id || String(Math.random()) }) });
input.request`})
	at, goOn := make(chan struct{}), make(chan struct{})
	d.hook = func(string) { close(at); <-goOn }
	first, second := h.StartConversation("bot"), h.StartConversation("bot")
	one := speak(h, first.ID, "first").ID
	<-at
	two := over(h, speak(h, second.ID, "second").ID)
	if two.State != reeve.RunFailed || !strings.Contains(two.Message, "is being processed by another run") {
		t.Errorf("the second turn is %s: %s", two.State, two.Message)
	}
	close(goOn)
	if got := over(h, one); got.State != reeve.RunCompleted {
		t.Errorf("the first turn is %s: %s", got.State, got.Message)
	}
	equal(t, len(d.done), 1, "deeds")
	d.hook = nil
	if got := over(h, speak(h, second.ID, "again").ID); got.State != reeve.RunCompleted {
		t.Errorf("the next turn is %s: %s", got.State, got.Message)
	}
	equal(t, len(d.done), 1, "deeds")
}

// TestK28_ItemsWithoutAChange: an item that a script is done with without changing anything is part of the plan, and is
// done when the plan is applied.
func TestK28_ItemsWithoutAChange(t *testing.T) {
	t.Parallel()
	a, d := automate(t, `for (const id of ['a', 'b', 'c']) await Items.withItem(id, 'Letter ' + id, async ({ item }) => { if (!item.isDone && id === 'b') await Mail.send({ to: id }) })`)
	r := a.start(call{"type": "dry"})
	equal(t, spoken(r.Run.State, r.Script.Progress.Planned, a.items("").Total), "completed 1 0", "the dry run")
	var plan api.Plan
	a.Want(http.StatusOK, &plan, "GET", "/api/plans/"+r.Run.ID, nil)
	got := ""
	for _, c := range plan.Calls {
		got += fmt.Sprintf("%s:%s:%s ", c.ItemID, c.Title, c.Tool)
	}
	equal(t, got, "a:Letter a: b:Letter b:mail_send c:Letter c: ", "the plan")
	var asked reeve.AutomationRun
	a.Want(http.StatusCreated, &asked, "POST", "/api/plans/"+r.Run.ID+"/apply", nil)
	done := a.served(asked)
	equal(t, spoken(done.Run.State, done.Script.Progress.Done, done.Script.Progress.Total, a.items("status=done").
		Total, d), "completed 3 3 3 map[b:1]", "applied")
	a.completes()
	equal(t, d.String(), "map[b:1]", "there is nothing left to do")
}
