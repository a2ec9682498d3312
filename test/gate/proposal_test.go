package gate_test

import (
	"encoding/json"
	"net/http"
	std "slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
	"reeve/test/kit"
)

// Equal proposals on behalf of two people are two items, each decided by itself.
func TestL27_ProposalsOfTwoPeopleAreTwo(t *testing.T) {
	t.Parallel()
	kit.StartOnBothDatabases(t, func(t *testing.T, start func(...reeve.Tool) *reevetest.Host) {
		h := start()
		ann, bob := kit.NewTokenFor(h, "ann", "member"), kit.NewTokenFor(h, "bob", "member")
		a, task := newRater(h)
		kit.UpdateAgent(h, a, kit.Object{
			"policy": kit.Object{"tools": kit.Object{"create_or_update_rating": "propose"}}})
		rate := kit.Object{"target_kind": "task", "target_id": task, "scores": kit.Object{"energy": 20}}
		hers, his := h.Call(a.ID, "create_or_update_rating", rate, ann...), h.Call(a.ID, "create_or_update_rating",
			rate, bob...)
		if p, q := kit.GetProposal(h, hers.ProposalID), kit.GetProposal(h, his.ProposalID); p.ID == q.ID ||
			p.UserID != "ann" ||
			q.UserID != "bob" || p.Round != 1 || q.Round != 2 {
			t.Fatalf("one item for two people: %+v, %+v", p, q)
		}
		for who, first := range map[*[]string]reeve.Result{&ann: hers, &bob: his} {
			if again := h.Call(a.ID, "create_or_update_rating", rate, *who...); again.ProposalID != first.ProposalID {
				t.Errorf("the same again: %+v", again)
			}
		}
		kit.DecideProposal(h, hers.ProposalID, "reject", "")
		if _, p, status := kit.TryCall(h, a.ID, kit.Call{"tool": "create_or_update_rating", "args": rate}, ann...); status != http.StatusForbidden || !strings.Contains(p.Detail, "rejected this") {
			t.Errorf("hers, after it was rejected: %d %+v", status, p)
		}
		kit.DecideProposal(h, his.ProposalID, "accept", "")
		h.RunUntilIdle(t.Context())
		h.Want(http.StatusOK, nil, "GET", "/api/journal/ratings/task/"+task, nil, bob...)
		h.Want(http.StatusNotFound, nil, "GET", "/api/journal/ratings/task/"+task, nil, ann...)
		if next := h.Call(a.ID, "create_or_update_rating", rate, bob...); kit.GetProposal(h, next.ProposalID).
			Round != 3 {
			t.Errorf("his, after it was applied: %+v", next)
		}
	})
}

// A person who asks for an undo again after its proposal was rejected gets a new proposal. An equal call stays
// rejected.
func TestL27_RejectedUndoCanBeProposedAgain(t *testing.T) {
	t.Parallel()
	kit.StartOnBothDatabases(t, func(t *testing.T, start func(...reeve.Tool) *reevetest.Host) {
		h := start()
		a, task := newRater(h)
		day := func(key string) kit.Object { return kit.Object{"plan_date": "2026-03-02", key: []string{task}} }
		op := h.Call(a.ID, "pin_day_plan_tasks", day("task_ids")).OperationID
		kit.UpdateAgent(h, a, kit.Object{"policy": kit.Object{"tools": kit.Object{"pin_day_plan_tasks": "propose"}}})
		undo := func() (res reeve.Result) {
			t.Helper()
			h.Want(http.StatusAccepted, &res, "POST", "/api/operations/"+op+"/undo", nil)
			return res
		}
		first := undo()
		args := json.RawMessage(kit.GetProposal(h, first.ProposalID).Args)
		rejected := func(when string) {
			t.Helper()
			_, p, status := kit.TryCall(h, a.ID, kit.Call{"tool": "pin_day_plan_tasks", "args": args})
			if status != http.StatusForbidden || p.Code != reeve.Denied ||
				!strings.Contains(p.Detail, first.ProposalID) {
				t.Errorf("an equal call, %s: %d %+v", when, status, p)
			}
		}
		kit.DecideProposal(h, first.ProposalID, "reject", "not yet")
		rejected("after the undo was rejected")
		second := undo()
		if second.Replayed || second.ProposalID == first.ProposalID || kit.GetProposal(h, second.ProposalID).
			State != reeve.ProposalPending {
			t.Fatalf("asked for again: %+v", second)
		}
		if again := undo(); !again.Replayed || again.ProposalID != second.ProposalID {
			t.Errorf("while it waits: %+v", again)
		}
		rejected("while the next undo waits")
		kit.DecideProposal(h, second.ProposalID, "accept", "")
		h.RunUntilIdle(t.Context())
		if p := kit.GetProposal(h, second.ProposalID); p.State != reeve.ProposalApplied {
			t.Errorf("accepted: %+v", p)
		}
		rejected("after the next undo was made")
		kit.DecideProposal(h, first.ProposalID, "reopen", "")
		if res, p, status := kit.TryCall(h, a.ID, kit.Call{"tool": "pin_day_plan_tasks", "args": args}); status != http.StatusAccepted ||
			res.ProposalID != first.ProposalID {
			t.Errorf("an equal call, after a person reopened it: %d %+v %+v", status, res, p)
		}
	})
}

// A run whose writes are proposals ends and leaves a change set. A person accepts one item and rejects the other. Each
// applied item has its own action and result in the thread, and nothing is done twice.
func TestL27_ARunLeavesAChangeSet(t *testing.T) {
	t.Parallel()
	kit.StartOnBothDatabases(t, func(t *testing.T, start func(...reeve.Tool) *reevetest.Host) {
		h := start()
		var gym reeve.Category
		h.Want(201, &gym, "POST", "/api/journal/categories", kit.Object{"name": "Gym"})
		a := newProposer(h, "coach", "create_task", "list_tasks_in_scope", "write_file")
		kit.UpdateAgent(h, a, kit.Object{"kind": "planner", "categories": []string{gym.ID}})
		task := func(title string) kit.Object {
			return kit.Object{"tool": "create_task", "must": true, "args": kit.Object{"category_id": gym.ID,
				"title": title}}
		}
		kit.SetRehearsal(h, a.ID, "two ideas", task("Squats"), kit.Object{"tool": "list_tasks_in_scope", "must": true,
			"args": kit.Object{}}, task("Rows"))
		h.Want(201, nil, "POST", "/api/agents/coach/wake", kit.Object{})
		kit.WaitUntilIdle(h)
		run := kit.ListRuns(h, "")[0]
		if run.State != reeve.RunCompleted || run.Output != "two ideas" || run.Spent.Calls != 3 {
			t.Fatalf("the run: %+v", run)
		}
		var sets api.ChangeSetList
		h.Want(200, &sets, "GET", "/api/change-sets?pending=true&agent=coach", nil)
		if len(sets.ChangeSets) != 1 || sets.ChangeSets[0].RunID != run.ID ||
			sets.ChangeSets[0].Counts[reeve.ProposalPending] != 2 {
			t.Fatalf("%+v", sets)
		}
		set := getChangeSet(h, sets.ChangeSets[0].ID)
		if len(set.Items) != 2 || set.Items[0].Ordinal != 1 || set.Items[1].Ordinal != 2 ||
			!strings.Contains(set.Items[0].Args, "Squats") {
			t.Fatalf("%+v", set)
		}
		tasks := func() (titles []string) {
			var list api.TaskList
			h.Want(200, &list, "GET", "/api/journal/tasks", nil)
			for _, v := range list.Tasks {
				titles = append(titles, v.Title)
			}
			return titles
		}
		if n := tasks(); len(n) != 0 || len(kit.GetInbox(h).Proposals) != 2 {
			t.Fatalf("tasks %v; the inbox has %+v", n, kit.GetInbox(h).Proposals)
		}
		squats, rows := set.Items[0], set.Items[1]
		for range 2 {
			if p, problem, status := kit.DecideProposal(h, squats.ID, "accept", "good"); status != 200 ||
				p.DecidedBy == "" ||
				p.OperationID != reeve.ProposalKey(squats.ID) {
				t.Fatalf("%d %+v %+v", status, p, problem)
			}
			if p, problem, status := kit.DecideProposal(h, rows.ID, "reject", "bad back"); status != 200 ||
				p.State != reeve.ProposalRejected || p.Comment != "bad back" {
				t.Fatalf("%d %+v %+v", status, p, problem)
			}
			h.RunUntilIdle(t.Context())
		}
		if got := tasks(); !std.Equal(got, []string{"Squats"}) {
			t.Errorf("tasks: %v", got)
		}
		if p := kit.GetProposal(h, squats.ID); p.State != reeve.ProposalApplied || p.Comment != "good" {
			t.Errorf("%+v", p)
		}
		if _, p, status := kit.DecideProposal(h, rows.ID, "accept", ""); status != 409 || p.Code != reeve.Conflict ||
			!strings.Contains(p.Detail, "rejected") {
			t.Errorf("accepted after it was rejected: %d %+v", status, p)
		}
		if _, p, status := kit.DecideProposal(h, squats.ID, "reject", ""); status != 409 || p.Code != reeve.Conflict {
			t.Errorf("rejected after it was accepted: %d %+v", status, p)
		}
		set = getChangeSet(h, set.ID)
		if set.Counts[reeve.ProposalApplied] != 1 || set.Counts[reeve.ProposalRejected] != 1 || len(set.Counts) != 2 {
			t.Errorf("%+v", set.Counts)
		}

		// In the thread: three calls of the run and the one that was applied, each with its result.
		pairs := kit.PairRunCalls(h, a.ID, run.ID)
		if len(pairs) != 4 {
			t.Errorf("%d calls in the thread", len(pairs))
		}
		proposed, applied := pairs[squats.CallID], pairs[kit.GetOperation(h, reeve.ProposalKey(squats.ID)).CallID]
		if info := kit.ResultInfo(t, proposed[1]); info.Status != "success" || info.ProposalID != squats.ID ||
			!strings.Contains(proposed[1].Content, "item 1 of change set "+set.ID) {
			t.Errorf("the proposal's result: %q %+v", proposed[1].Content, info)
		}
		if info := kit.ActionInfo(t, applied[0]); info.ProposalID != squats.ID || info.Via != reeve.ViaProposal ||
			applied[0].Content != proposed[0].Content || kit.ResultInfo(t, applied[1]).Status != "success" {
			t.Errorf("what was applied: %+v", applied)
		}
		var x reeve.Explanation
		h.Want(200, &x, "GET", "/api/calls/"+applied[0].ID+"/explanation", nil)
		step := x.Steps[std.IndexFunc(x.Steps, func(s reeve.Step) bool { return s.Name == "approval" })]
		if !strings.HasPrefix(step.Why, "accepted by owner") || x.Proposal == nil || x.Proposal.ID != squats.ID ||
			x.Proposal.State != reeve.ProposalApplied || x.Outcome != "The call ran and succeeded." {
			t.Errorf("%+v", x)
		}
		h.Want(200, &x, "GET", "/api/calls/"+squats.CallID+"/explanation", nil)
		if x.Operation == nil || x.Operation.State != reeve.ProposedOp ||
			!strings.HasPrefix(x.Outcome, "Proposed as item 1") {
			t.Errorf("%+v", x)
		}

		// The same run again: what was rejected stays rejected, what was applied is a new item.
		h.Want(201, nil, "POST", "/api/agents/coach/wake", kit.Object{})
		kit.WaitUntilIdle(h)
		again := kit.ListRuns(h, "")[0]
		if again.ID == run.ID || again.State != reeve.RunFailed || !strings.Contains(again.Message, "rejected") ||
			!strings.Contains(again.Message, "bad back") {
			t.Errorf("the second run: %+v", again)
		}
		if list := kit.ListProposals(h, "state=pending"); len(list) != 1 || list[0].Round != 2 ||
			list[0].RunID != again.ID ||
			list[0].SetID == set.ID {
			t.Errorf("%+v", list)
		}
		if n := len(tasks()); n != 1 || len(kit.ListProposals(h, "")) != 3 {
			t.Errorf("%d tasks, %d proposals", n, len(kit.ListProposals(h, "")))
		}
	})
}

// The same call by its key is the same item. Another call with equal arguments is the same item while one is open, is
// refused while it is rejected, and is a new item after it was applied.
func TestL27_EqualProposalsAreOneItem(t *testing.T) {
	t.Parallel()
	kit.StartOnBothDatabases(t, func(t *testing.T, start func(...reeve.Tool) *reevetest.Host) {
		var ran kit.Counter
		h := start(kit.Tool("send", reeve.Keyed, ran.Handle), kit.Tool("look", reeve.Read, ran.Handle))
		a := newProposer(h, "a", "send", "look")
		// what changes nothing passes
		if res := h.Call(a.ID, "look", kit.Object{}); res.ProposalID != "" || ran.Count() != 1 {
			t.Errorf("%+v", res)
		}
		ran.N.Store(0)
		ask := kit.Call{"tool": "send", "args": kit.Object{"to": "x"}}
		first, _, status := kit.TryCall(h, a.ID, ask.With("reason", "because"), "Idempotency-Key", "k")
		if status != http.StatusAccepted || first.State != reeve.ProposedOp || first.ProposalID == "" ||
			first.IsError || !strings.HasPrefix(first.Content, "Proposed as item 1 of change set cs_") {
			t.Fatalf("%d %+v", status, first)
		}
		if p := kit.GetProposal(h, first.ProposalID); p.Reason != "because" || p.UserID != "owner" ||
			p.State != reeve.ProposalPending || p.OperationID != "" {
			t.Errorf("%+v", p)
		}
		if again, _, _ := kit.TryCall(h, a.ID, ask, "Idempotency-Key", "k"); !again.Replayed ||
			again.ProposalID != first.ProposalID || again.Content != first.Content || again.State != first.State {
			t.Errorf("the same call: %+v", again)
		}
		if _, p, status := kit.TryCall(h, a.ID, ask.With("args", kit.Object{"to": "y"}), "Idempotency-Key", "k"); status != http.StatusConflict {
			t.Errorf("another call by the same key: %d %+v", status, p)
		}
		same := h.Call(a.ID, "send", kit.Object{"to": "x"})
		if same.ProposalID != first.ProposalID || same.CallID == first.CallID ||
			!strings.HasPrefix(same.Content, "This is already item 1") {
			t.Errorf("another call that says the same: %+v", same)
		}
		if other := h.Call(a.ID, "send", kit.Object{"to": "z"}); kit.GetProposal(h, other.ProposalID).Ordinal != 2 {
			t.Errorf("%+v", other)
		}
		b := newProposer(h, "b", "send")
		if other := h.Call(b.ID, "send", kit.Object{"to": "x"}); other.ProposalID == first.ProposalID {
			t.Errorf("another agent's: %+v", other)
		}
		kit.DecideProposal(h, first.ProposalID, "reject", "never")
		for range 2 {
			_, p, status := kit.TryCall(h, a.ID, ask)
			if status != http.StatusForbidden || p.Code != reeve.Denied ||
				!strings.Contains(p.Detail, "owner rejected this on 20") || !strings.Contains(p.Detail, "never") {
				t.Errorf("after it was rejected: %d %+v", status, p)
			}
		}
		var x reeve.Explanation
		h.Want(200, &x, "POST", "/api/agents/a/calls/explain", ask)
		if !strings.Contains(x.Outcome, "rejected") {
			t.Errorf("%+v", x)
		}
		h.Want(200, &x, "POST", "/api/agents/a/calls/explain", ask.With("args", kit.Object{"to": "new"}))
		if !strings.Contains(x.Outcome, "would become a proposal") {
			t.Errorf("%+v", x)
		}
		if p, _, status := kit.DecideProposal(h, first.ProposalID, "reopen", ""); status != 200 ||
			p.State != reeve.ProposalPending ||
			p.ReopenedBy != "owner" || p.DecidedBy != "" {
			t.Errorf("reopened: %d %+v", status, p)
		}
		if same := h.Call(a.ID, "send", kit.Object{"to": "x"}); same.ProposalID != first.ProposalID {
			t.Errorf("after it was reopened: %+v", same)
		}
		kit.DecideProposal(h, first.ProposalID, "accept", "")
		if same := h.Call(a.ID, "send", kit.Object{"to": "x"}); same.ProposalID != first.ProposalID ||
			!strings.Contains(same.Content, "being applied") {
			t.Errorf("while it is applied: %+v", same)
		}
		h.RunUntilIdle(t.Context())
		if ran.Count() != 1 || kit.GetProposal(h, first.ProposalID).State != reeve.ProposalApplied {
			t.Errorf("%d ran, %+v", ran.Count(), kit.GetProposal(h, first.ProposalID))
		}
		if _, p, status := kit.DecideProposal(h, first.ProposalID, "reopen", ""); status != 409 {
			t.Errorf("reopened after it was applied: %d %+v", status, p)
		}
		if next := h.Call(a.ID, "send", kit.Object{"to": "x"}); next.ProposalID == first.ProposalID ||
			kit.GetProposal(h, next.ProposalID).Round != 2 {
			t.Errorf("after it was applied: %+v", next)
		}
		if again, _, _ := kit.TryCall(h, a.ID, ask, "Idempotency-Key", "k"); !again.Replayed ||
			again.ProposalID != first.ProposalID {
			t.Errorf("the first call again: %+v", again)
		}
		kit.PairCalls(h, kit.ListThread(h, a.ID, ""))
	})
}

// A proposal that is accepted through two servers at once has one effect. A call that is proposed through both at once
// is one item.
func TestL27_TwoServersApplyOnce(t *testing.T) {
	t.Parallel()
	var ran kit.Counter
	servers := kit.StartTwoServers(t, kit.Tool("send", reeve.Unsafe, ran.Handle))
	a := newProposer(servers[0], "a", "send")
	for round := range 3 {
		ran.N.Store(0)
		ids := make([]string, 8)
		runTogether(8, func(i int) {
			ids[i] = servers[i%2].Call(a.ID, "send", kit.Object{"round": round}).ProposalID
		})
		if std.Sort(ids); ids[0] == "" || len(std.Compact(ids)) != 1 {
			t.Fatalf("proposed at once: %v", ids)
		}
		ops := make([]string, 8)
		runTogether(8, func(i int) {
			p, problem, status := kit.DecideProposal(servers[i%2], ids[0], "accept", "")
			if status != 200 {
				t.Errorf("%d %+v", status, problem)
			}
			ops[i] = p.OperationID
			if _, err := servers[(i+1)%2].Step(t.Context()); err != nil {
				t.Error(err)
			}
		})
		finishOperation(servers[1], ops[0])
		if std.Sort(ops); len(std.Compact(ops)) != 1 || ran.Count() != 1 || kit.GetProposal(servers[0], ids[0]).
			State != reeve.ProposalApplied {
			t.Errorf("%d ran, %v, %+v", ran.Count(), ops, kit.GetProposal(servers[0], ids[0]))
		}
	}
	// The proposal is accepted on one server and rejected on the other. Exactly one decision counts.
	for round := range 4 {
		ran.N.Store(0)
		id := servers[0].Call(a.ID, "send", kit.Object{"both": round}).ProposalID
		var yes, no atomic.Int64
		runTogether(8, func(i int) {
			word, won := "accept", &yes
			if i%2 == 1 {
				word, won = "reject", &no
			}
			if _, p, status := kit.DecideProposal(servers[(i/2)%2], id, word, ""); status == 200 {
				won.Add(1)
			} else if status != 409 {
				t.Errorf("%d %+v", status, p)
			}
		})
		servers[0].RunUntilIdle(t.Context())
		servers[1].RunUntilIdle(t.Context())
		if (yes.Load() > 0) == (no.Load() > 0) || ran.Count() != map[bool]int{true: 1}[yes.Load() > 0] {
			t.Errorf("%d accepted, %d rejected, %d ran", yes.Load(), no.Load(), ran.Count())
		}
	}
}

// runTogether calls f n times in parallel.
func runTogether(n int, f func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}

// Many proposals are decided in one request, each by itself, with its own error.
func TestL27_ManyAreDecidedItemByItem(t *testing.T) {
	t.Parallel()
	kit.StartOnBothDatabases(t, func(t *testing.T, start func(...reeve.Tool) *reevetest.Host) {
		var ran kit.Counter
		h := start(kit.Tool("send", reeve.Keyed, ran.Handle))
		a := newProposer(h, "a", "send")
		var ids []string
		for i := range 6 {
			ids = append(ids, h.Call(a.ID, "send", kit.Object{"n": i}).ProposalID)
		}
		elsewhere := h.Call(a.ID, "send", kit.Object{"n": 1, "m": 1}, "Idempotency-Key", "k")
		other, _, _ := kit.TryCall(h, a.ID, kit.Call{"tool": "send", "args": kit.Object{"n": 9}, "session": "other"})
		set := "/api/change-sets/" + kit.GetProposal(h, ids[0]).SetID
		if n := len(getChangeSet(h, kit.GetProposal(h, elsewhere.ProposalID).SetID).Items); n != 7 ||
			kit.GetProposal(h, other.ProposalID).SetID == kit.GetProposal(h, ids[0]).SetID {
			t.Errorf("%d items", n)
		}
		kit.DecideProposal(h, ids[0], "reject", "")
		decide := func(word string, body any) (out reeve.SetDecision) {
			t.Helper()
			h.Want(200, &out, "POST", set+"/"+word, body)
			return out
		}
		got := decide("accept", kit.Object{"items": []string{ids[0], ids[1], other.ProposalID, "prop_none", ids[2]},
			"comment": "fine"})
		var codes []reeve.Code
		for i, d := range got.Items {
			codes = append(codes, d.Code)
			if (d.Proposal == nil) == (d.Code == "") || d.ID != []string{ids[0], ids[1], other.ProposalID, "prop_none",
				ids[2]}[i] {
				t.Errorf("%+v", d)
			}
		}
		if want := []reeve.Code{reeve.Conflict, "", reeve.NotFound, reeve.NotFound, ""}; !std.Equal(codes, want) {
			t.Errorf("%v, want %v", codes, want)
		}
		if got := decide("accept", kit.Object{"items": []string{}}); len(got.Items) != 0 { // no items, not all
			t.Errorf("%+v", got)
		}
		if got := decide("reject", kit.Object{"items": ids[3:4]}); len(got.Items) != 1 ||
			got.Items[0].Proposal.State != reeve.ProposalRejected {
			t.Errorf("%+v", got)
		}
		if got := decide("accept", kit.Object{"comment": "the rest"}); len(got.Items) != 3 ||
			got.Items[0].ID != ids[4] ||
			got.Items[0].Proposal == nil {
			t.Errorf("%+v", got)
		}
		if got := decide("accept", kit.Object{}); len(got.Items) != 0 {
			t.Errorf("%+v", got)
		}
		h.RunUntilIdle(t.Context())
		s := getChangeSet(h, kit.GetProposal(h, ids[0]).SetID)
		if s.Counts[reeve.ProposalApplied] != 5 || s.Counts[reeve.ProposalRejected] != 2 || len(s.Counts) != 2 ||
			ran.Count() != 5 {
			t.Errorf("%d ran, %+v", ran.Count(), s.Counts)
		}
		h.Want(404, nil, "POST", "/api/change-sets/cs_none/accept", kit.Object{})
		h.Want(404, nil, "POST", "/api/proposals/prop_none/accept", kit.Object{})

		// Lists: filtered, in pages, newest first.
		var seen []string
		for cursor := ""; ; {
			var page api.ProposalList
			h.Want(200, &page, "GET", "/api/proposals?limit=2&state=applied&agent=a&set="+s.ID+"&cursor="+cursor, nil)
			for _, p := range page.Proposals {
				seen = append(seen, p.ID)
			}
			if cursor = page.Next; cursor == "" {
				break
			}
		}
		if want := []string{elsewhere.ProposalID, ids[5], ids[4], ids[2], ids[1]}; !std.Equal(seen, want) {
			t.Errorf("%v, want %v", seen, want)
		}
		var sets api.ChangeSetList
		h.Want(200, &sets, "GET", "/api/change-sets?limit=1", nil)
		if len(sets.ChangeSets) != 1 || sets.ChangeSets[0].ID != kit.GetProposal(h, other.ProposalID).
			SetID || sets.Next == "" {
			t.Fatalf("%+v", sets)
		}
		h.Want(200, &sets, "GET", "/api/change-sets?limit=1&cursor="+sets.Next, nil)
		if len(sets.ChangeSets) != 1 || sets.ChangeSets[0].ID != s.ID {
			t.Fatalf("%+v", sets)
		}
		h.Want(200, &sets, "GET", "/api/change-sets?pending=true", nil)
		if len(sets.ChangeSets) != 1 || sets.ChangeSets[0].ID == s.ID {
			t.Errorf("%+v", sets)
		}
	})
}

// Runs that are turns of one session have a change set each, and applied items are in the thread of the session. An
// asynchronous tool is proposed like any other.
func TestL27_EachRunHasItsChangeSet(t *testing.T) {
	t.Parallel()
	var ran kit.Counter
	slow := kit.Tool("slow", reeve.Keyed, ran.Handle)
	slow.Async = true
	h := reevetest.Start(t, slow)
	a := newProposer(h, "a", "slow")
	ids := map[string]bool{}
	for _, run := range []string{"r1", "r2", ""} {
		res, _, status := kit.TryCall(h, a.ID, kit.Call{"tool": "slow", "args": kit.Object{"of": run}, "run": run,
			"session": "chat"})
		p := kit.GetProposal(h, res.ProposalID)
		if ids[p.SetID] = true; status != http.StatusAccepted || p.RunID != run || p.Ordinal != 1 {
			t.Fatalf("%d %+v", status, p)
		}
		kit.DecideProposal(h, p.ID, "accept", "")
	}
	h.RunUntilIdle(t.Context())
	if n := len(kit.PairCalls(h, kit.ListThread(h, a.ID, "session=chat"))); len(ids) != 3 || ran.Count() != 3 ||
		n != 6 ||
		len(kit.ListProposals(h, "state=applied")) != 3 {
		t.Errorf("%d sets, %d ran, %d calls in the thread", len(ids), ran.Count(), n)
	}
}

// Proposals of a removed agent are closed, because they could not be applied.
func TestL27_ProposalsOfARemovedAgentEnd(t *testing.T) {
	t.Parallel()
	kit.StartOnBothDatabases(t, func(t *testing.T, start func(...reeve.Tool) *reevetest.Host) {
		var ran kit.Counter
		h := start(kit.Tool("send", reeve.Keyed, ran.Handle))
		gone, stays := newProposer(h, "a", "send"), newProposer(h, "b", "send")
		for i := range 150 {
			h.Call(gone.ID, "send", kit.Object{"n": i})
		}
		other := h.Call(stays.ID, "send", kit.Object{"n": 1}).ProposalID
		first := kit.ListProposals(h, "state=pending&agent="+gone.ID)[0].ID
		kit.UpdateAgent(h, gone, kit.Object{"lifecycle": "destroyed"})
		if list := kit.GetInbox(h).Proposals; len(list) != 1 || list[0].ID != other {
			t.Errorf("%d in the inbox", len(list))
		}
		if p := kit.GetProposal(h, first); p.State != reeve.ProposalStale || p.Comment != "the agent was destroyed" {
			t.Errorf("%+v", p)
		}
		if _, problem, status := kit.DecideProposal(h, first, "accept", ""); status != http.StatusConflict ||
			problem.Code != reeve.Stale {
			t.Errorf("%d %+v", status, problem)
		}
		h.RunUntilIdle(t.Context())
		if ran.Count() != 0 {
			t.Errorf("%d ran", ran.Count())
		}
	})
}
