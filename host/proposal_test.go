package host_test

import (
	"net/http"
	std "slices" // the package has a function of that name
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/internal/store/storetest"
	"reeve/reevetest"
)

// proposer makes an agent whose writes are only proposed.
func proposer(h *reevetest.Host, name string, tools ...string) reeve.Agent {
	h.T.Helper()
	a := h.Agent(name, tools...)
	patch(h, a, object{"policy": object{"tiers": object{"side_effecting": "propose", "privileged": "propose",
		"read_only": "propose"}}})
	return a
}

func proposal(h *reevetest.Host, id string) (p reeve.Proposal) {
	h.T.Helper()
	h.Want(http.StatusOK, &p, "GET", "/api/proposals/"+id, nil)
	return p
}

func proposals(h *reevetest.Host, query string) []reeve.Proposal {
	h.T.Helper()
	var list api.ProposalList
	h.Want(http.StatusOK, &list, "GET", "/api/proposals?limit=500&"+query, nil)
	return list.Proposals
}

func changeSet(h *reevetest.Host, id string) (s reeve.ChangeSet) {
	h.T.Helper()
	h.Want(http.StatusOK, &s, "GET", "/api/change-sets/"+id, nil)
	return s
}

// say gives a person's word on a proposal, and what came of it.
func say(h *reevetest.Host, id, word, comment string) (p reeve.Proposal, problem api.Problem, status int) {
	h.T.Helper()
	r := h.Do("POST", "/api/proposals/"+id+"/"+word, object{"comment": comment})
	if r.Status < 300 {
		r.Decode(h.T, &p)
	} else {
		r.Decode(h.T, &problem)
	}
	return p, problem, r.Status
}

// engines runs a test on both databases.
func engines(t *testing.T, f func(t *testing.T, start func(tools ...reeve.Tool) *reevetest.Host)) {
	for _, name := range []string{"sqlite", "postgres"} {
		t.Run(name, func(t *testing.T) {
			f(t, func(tools ...reeve.Tool) *reevetest.Host {
				cfg := quick(t)
				if name == "postgres" {
					cfg.Database, cfg.SecretKey = storetest.PostgresURL(t), strings.Repeat("ab", 32)
				}
				return reevetest.StartWith(t, cfg, tools...)
			})
		})
	}
}

// A run whose writes are proposals ends, and leaves a change set; a person takes one item and leaves the other. What is
// applied has its own action and result in the thread; nothing is done twice, whoever asks again.
func TestL27_ARunLeavesAChangeSet(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, start func(...reeve.Tool) *reevetest.Host) {
		h := start()
		var gym reeve.Category
		h.Want(201, &gym, "POST", "/api/journal/categories", object{"name": "Gym"})
		a := proposer(h, "coach", "create_task", "list_tasks_in_scope", "write_file")
		patch(h, a, object{"kind": "planner", "categories": []string{gym.ID}})
		task := func(title string) object {
			return object{"tool": "create_task", "must": true, "args": object{"category_id": gym.ID, "title": title}}
		}
		rehearse(h, a.ID, "two ideas", task("Squats"), object{"tool": "list_tasks_in_scope", "must": true,
			"args": object{}}, task("Rows"))
		h.Want(201, nil, "POST", "/api/agents/coach/wake", object{})
		quiet(h)
		run := runsOf(h, "")[0]
		if run.State != reeve.RunCompleted || run.Output != "two ideas" || run.Spent.Calls != 3 {
			t.Fatalf("the run: %+v", run)
		}
		var sets api.ChangeSetList
		h.Want(200, &sets, "GET", "/api/change-sets?pending=true&agent=coach", nil)
		if len(sets.ChangeSets) != 1 || sets.ChangeSets[0].RunID != run.ID ||
			sets.ChangeSets[0].Counts[reeve.ProposalPending] != 2 {
			t.Fatalf("%+v", sets)
		}
		set := changeSet(h, sets.ChangeSets[0].ID)
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
		if n := tasks(); len(n) != 0 || len(inbox(h).Proposals) != 2 {
			t.Fatalf("tasks %v; the inbox has %+v", n, inbox(h).Proposals)
		}
		squats, rows := set.Items[0], set.Items[1]
		for range 2 {
			if p, problem, status := say(h, squats.ID, "accept", "good"); status != 200 || p.DecidedBy == "" ||
				p.OperationID != reeve.ProposalKey(squats.ID) {
				t.Fatalf("%d %+v %+v", status, p, problem)
			}
			if p, problem, status := say(h, rows.ID, "reject", "bad back"); status != 200 ||
				p.State != reeve.ProposalRejected || p.Comment != "bad back" {
				t.Fatalf("%d %+v %+v", status, p, problem)
			}
			h.RunUntilIdle(t.Context())
		}
		if got := tasks(); !std.Equal(got, []string{"Squats"}) {
			t.Errorf("tasks: %v", got)
		}
		if p := proposal(h, squats.ID); p.State != reeve.ProposalApplied || p.Comment != "good" {
			t.Errorf("%+v", p)
		}
		if _, p, status := say(h, rows.ID, "accept", ""); status != 409 || p.Code != reeve.Conflict ||
			!strings.Contains(p.Detail, "rejected") {
			t.Errorf("accepted after it was rejected: %d %+v", status, p)
		}
		if _, p, status := say(h, squats.ID, "reject", ""); status != 409 || p.Code != reeve.Conflict {
			t.Errorf("rejected after it was accepted: %d %+v", status, p)
		}
		set = changeSet(h, set.ID)
		if set.Counts[reeve.ProposalApplied] != 1 || set.Counts[reeve.ProposalRejected] != 1 || len(set.Counts) != 2 {
			t.Errorf("%+v", set.Counts)
		}

		// In the thread: three calls of the run and the one that was applied, each with its result.
		pairs := pairsOf(h, a.ID, run.ID)
		if len(pairs) != 4 {
			t.Errorf("%d calls in the thread", len(pairs))
		}
		proposed, applied := pairs[squats.CallID], pairs[operation(h, reeve.ProposalKey(squats.ID)).CallID]
		if info := resultInfo(t, proposed[1]); info.Status != "success" || info.ProposalID != squats.ID ||
			!strings.Contains(proposed[1].Content, "item 1 of change set "+set.ID) {
			t.Errorf("the proposal's result: %q %+v", proposed[1].Content, info)
		}
		if info := actionInfo(t, applied[0]); info.ProposalID != squats.ID || info.Via != reeve.ViaProposal ||
			applied[0].Content != proposed[0].Content || resultInfo(t, applied[1]).Status != "success" {
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
		h.Want(201, nil, "POST", "/api/agents/coach/wake", object{})
		quiet(h)
		again := runsOf(h, "")[0]
		if again.ID == run.ID || again.State != reeve.RunFailed || !strings.Contains(again.Message, "rejected") ||
			!strings.Contains(again.Message, "bad back") {
			t.Errorf("the second run: %+v", again)
		}
		if list := proposals(h, "state=pending"); len(list) != 1 || list[0].Round != 2 || list[0].RunID != again.ID ||
			list[0].SetID == set.ID {
			t.Errorf("%+v", list)
		}
		if n := len(tasks()); n != 1 || len(proposals(h, "")) != 3 {
			t.Errorf("%d tasks, %d proposals", n, len(proposals(h, "")))
		}
	})
}

// The same call by its key is the same item and the same answer; another call that says the same is the same item while
// one is open, refused while it is rejected, and another item after it was applied.
func TestL27_TheSameIsTheSameItem(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, start func(...reeve.Tool) *reevetest.Host) {
		var ran counter
		h := start(tool("send", reeve.Keyed, ran.handle), tool("look", reeve.Read, ran.handle))
		a := proposer(h, "a", "send", "look")
		// what changes nothing passes
		if res := h.Call(a.ID, "look", object{}); res.ProposalID != "" || ran.count() != 1 {
			t.Errorf("%+v", res)
		}
		ran.n.Store(0)
		ask := call{"tool": "send", "args": object{"to": "x"}}
		first, _, status := do(h, a.ID, ask.with("reason", "because"), "Idempotency-Key", "k")
		if status != http.StatusAccepted || first.State != reeve.ProposedOp || first.ProposalID == "" ||
			first.IsError || !strings.HasPrefix(first.Content, "Proposed as item 1 of change set cs_") {
			t.Fatalf("%d %+v", status, first)
		}
		if p := proposal(h, first.ProposalID); p.Reason != "because" || p.UserID != "owner" ||
			p.State != reeve.ProposalPending || p.OperationID != "" {
			t.Errorf("%+v", p)
		}
		if again, _, _ := do(h, a.ID, ask, "Idempotency-Key", "k"); !again.Replayed ||
			again.ProposalID != first.ProposalID || again.Content != first.Content || again.State != first.State {
			t.Errorf("the same call: %+v", again)
		}
		if _, p, status := do(h, a.ID, ask.with("args", object{"to": "y"}), "Idempotency-Key",
			"k"); status != http.StatusConflict {
			t.Errorf("another call by the same key: %d %+v", status, p)
		}
		same := h.Call(a.ID, "send", object{"to": "x"})
		if same.ProposalID != first.ProposalID || same.CallID == first.CallID ||
			!strings.HasPrefix(same.Content, "This is already item 1") {
			t.Errorf("another call that says the same: %+v", same)
		}
		if other := h.Call(a.ID, "send", object{"to": "z"}); proposal(h, other.ProposalID).Ordinal != 2 {
			t.Errorf("%+v", other)
		}
		b := proposer(h, "b", "send")
		if other := h.Call(b.ID, "send", object{"to": "x"}); other.ProposalID == first.ProposalID {
			t.Errorf("another agent's: %+v", other)
		}
		say(h, first.ProposalID, "reject", "never")
		for range 2 {
			_, p, status := do(h, a.ID, ask)
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
		h.Want(200, &x, "POST", "/api/agents/a/calls/explain", ask.with("args", object{"to": "new"}))
		if !strings.Contains(x.Outcome, "would become a proposal") {
			t.Errorf("%+v", x)
		}
		if p, _, status := say(h, first.ProposalID, "reopen", ""); status != 200 || p.State != reeve.ProposalPending ||
			p.ReopenedBy != "owner" || p.DecidedBy != "" {
			t.Errorf("reopened: %d %+v", status, p)
		}
		if same := h.Call(a.ID, "send", object{"to": "x"}); same.ProposalID != first.ProposalID {
			t.Errorf("after it was reopened: %+v", same)
		}
		say(h, first.ProposalID, "accept", "")
		if same := h.Call(a.ID, "send", object{"to": "x"}); same.ProposalID != first.ProposalID ||
			!strings.Contains(same.Content, "being applied") {
			t.Errorf("while it is applied: %+v", same)
		}
		h.RunUntilIdle(t.Context())
		if ran.count() != 1 || proposal(h, first.ProposalID).State != reeve.ProposalApplied {
			t.Errorf("%d ran, %+v", ran.count(), proposal(h, first.ProposalID))
		}
		if _, p, status := say(h, first.ProposalID, "reopen", ""); status != 409 {
			t.Errorf("reopened after it was applied: %d %+v", status, p)
		}
		if next := h.Call(a.ID, "send", object{"to": "x"}); next.ProposalID == first.ProposalID ||
			proposal(h, next.ProposalID).Round != 2 {
			t.Errorf("after it was applied: %+v", next)
		}
		if again, _, _ := do(h, a.ID, ask, "Idempotency-Key", "k"); !again.Replayed ||
			again.ProposalID != first.ProposalID {
			t.Errorf("the first call again: %+v", again)
		}
		pairs(h, thread(h, a.ID, ""))
	})
}

// Accepted on two devices at once, through two servers, while both take up work: one effect. Proposed through both at
// once: one item.
func TestL27_TwoServersApplyOnce(t *testing.T) {
	t.Parallel()
	var ran counter
	servers := two(t, tool("send", reeve.Unsafe, ran.handle))
	a := proposer(servers[0], "a", "send")
	for round := range 3 {
		ran.n.Store(0)
		ids := make([]string, 8)
		together(8, func(i int) {
			ids[i] = servers[i%2].Call(a.ID, "send", object{"round": round}).ProposalID
		})
		if std.Sort(ids); ids[0] == "" || len(std.Compact(ids)) != 1 {
			t.Fatalf("proposed at once: %v", ids)
		}
		ops := make([]string, 8)
		together(8, func(i int) {
			p, problem, status := say(servers[i%2], ids[0], "accept", "")
			if status != 200 {
				t.Errorf("%d %+v", status, problem)
			}
			ops[i] = p.OperationID
			if _, err := servers[(i+1)%2].Step(t.Context()); err != nil {
				t.Error(err)
			}
		})
		settle(servers[1], ops[0])
		if std.Sort(ops); len(std.Compact(ops)) != 1 || ran.count() != 1 || proposal(servers[0], ids[0]).
			State != reeve.ProposalApplied {
			t.Errorf("%d ran, %v, %+v", ran.count(), ops, proposal(servers[0], ids[0]))
		}
	}
	// Yes on one device and no on the other: one of them counts.
	for round := range 4 {
		ran.n.Store(0)
		id := servers[0].Call(a.ID, "send", object{"both": round}).ProposalID
		var yes, no atomic.Int64
		together(8, func(i int) {
			word, won := "accept", &yes
			if i%2 == 1 {
				word, won = "reject", &no
			}
			if _, p, status := say(servers[(i/2)%2], id, word, ""); status == 200 {
				won.Add(1)
			} else if status != 409 {
				t.Errorf("%d %+v", status, p)
			}
		})
		servers[0].RunUntilIdle(t.Context())
		servers[1].RunUntilIdle(t.Context())
		if (yes.Load() > 0) == (no.Load() > 0) || ran.count() != map[bool]int{true: 1}[yes.Load() > 0] {
			t.Errorf("%d accepted, %d rejected, %d ran", yes.Load(), no.Load(), ran.count())
		}
	}
}

// together runs f n times at once.
func together(n int, f func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}

// Many are decided at once, each on its own: what cannot be is said of that one.
func TestL27_ManyAreDecidedItemByItem(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, start func(...reeve.Tool) *reevetest.Host) {
		var ran counter
		h := start(tool("send", reeve.Keyed, ran.handle))
		a := proposer(h, "a", "send")
		var ids []string
		for i := range 6 {
			ids = append(ids, h.Call(a.ID, "send", object{"n": i}).ProposalID)
		}
		elsewhere := h.Call(a.ID, "send", object{"n": 1, "m": 1}, "Idempotency-Key", "k")
		other, _, _ := do(h, a.ID, call{"tool": "send", "args": object{"n": 9}, "session": "other"})
		set := "/api/change-sets/" + proposal(h, ids[0]).SetID
		if n := len(changeSet(h, proposal(h, elsewhere.ProposalID).SetID).Items); n != 7 ||
			proposal(h, other.ProposalID).SetID == proposal(h, ids[0]).SetID {
			t.Errorf("%d items", n)
		}
		say(h, ids[0], "reject", "")
		decide := func(word string, body any) (out reeve.SetDecision) {
			t.Helper()
			h.Want(200, &out, "POST", set+"/"+word, body)
			return out
		}
		got := decide("accept", object{"items": []string{ids[0], ids[1], other.ProposalID, "prop_none", ids[2]},
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
		if got := decide("accept", object{"items": []string{}}); len(got.Items) != 0 { // none is not all
			t.Errorf("%+v", got)
		}
		if got := decide("reject", object{"items": ids[3:4]}); len(got.Items) != 1 ||
			got.Items[0].Proposal.State != reeve.ProposalRejected {
			t.Errorf("%+v", got)
		}
		if got := decide("accept", object{"comment": "the rest"}); len(got.Items) != 3 || got.Items[0].ID != ids[4] ||
			got.Items[0].Proposal == nil {
			t.Errorf("%+v", got)
		}
		if got := decide("accept", object{}); len(got.Items) != 0 {
			t.Errorf("%+v", got)
		}
		h.RunUntilIdle(t.Context())
		s := changeSet(h, proposal(h, ids[0]).SetID)
		if s.Counts[reeve.ProposalApplied] != 5 || s.Counts[reeve.ProposalRejected] != 2 || len(s.Counts) != 2 ||
			ran.count() != 5 {
			t.Errorf("%d ran, %+v", ran.count(), s.Counts)
		}
		h.Want(404, nil, "POST", "/api/change-sets/cs_none/accept", object{})
		h.Want(404, nil, "POST", "/api/proposals/prop_none/accept", object{})

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
		if len(sets.ChangeSets) != 1 || sets.ChangeSets[0].ID != proposal(h, other.ProposalID).
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

// Runs that are turns of one session have a change set each, and what is applied is in the session's thread. A tool
// whose callers do not wait is proposed like any other.
func TestL27_ASetIsOneRuns(t *testing.T) {
	t.Parallel()
	var ran counter
	slow := tool("slow", reeve.Keyed, ran.handle)
	slow.Async = true
	h := reevetest.Start(t, slow)
	a := proposer(h, "a", "slow")
	ids := map[string]bool{}
	for _, run := range []string{"r1", "r2", ""} {
		res, _, status := do(h, a.ID, call{"tool": "slow", "args": object{"of": run}, "run": run, "session": "chat"})
		p := proposal(h, res.ProposalID)
		if ids[p.SetID] = true; status != http.StatusAccepted || p.RunID != run || p.Ordinal != 1 {
			t.Fatalf("%d %+v", status, p)
		}
		say(h, p.ID, "accept", "")
	}
	h.RunUntilIdle(t.Context())
	if n := len(pairs(h, thread(h, a.ID, "session=chat"))); len(ids) != 3 || ran.count() != 3 || n != 6 ||
		len(proposals(h, "state=applied")) != 3 {
		t.Errorf("%d sets, %d ran, %d calls in the thread", len(ids), ran.count(), n)
	}
}

// What an agent proposed that is gone by now nobody is asked about: accepted, it could not be applied.
func TestL27_WhatAnAgentProposedThatIsGone(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, start func(...reeve.Tool) *reevetest.Host) {
		var ran counter
		h := start(tool("send", reeve.Keyed, ran.handle))
		gone, stays := proposer(h, "a", "send"), proposer(h, "b", "send")
		for i := range 150 {
			h.Call(gone.ID, "send", object{"n": i})
		}
		other := h.Call(stays.ID, "send", object{"n": 1}).ProposalID
		first := proposals(h, "state=pending&agent="+gone.ID)[0].ID
		patch(h, gone, object{"lifecycle": "destroyed"})
		if list := inbox(h).Proposals; len(list) != 1 || list[0].ID != other {
			t.Errorf("%d in the inbox", len(list))
		}
		if p := proposal(h, first); p.State != reeve.ProposalStale || p.Comment != "the agent was destroyed" {
			t.Errorf("%+v", p)
		}
		if _, problem, status := say(h, first, "accept", ""); status != http.StatusConflict ||
			problem.Code != reeve.Stale {
			t.Errorf("%d %+v", status, problem)
		}
		h.RunUntilIdle(t.Context())
		if ran.count() != 0 {
			t.Errorf("%d ran", ran.count())
		}
	})
}
