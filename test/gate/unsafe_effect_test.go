package gate_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"

	"reeve"
	"reeve/reevetest"
	"reeve/test/kit"
)

// newUnknownTools returns tools whose outcome is never known. sent counts their calls.
func newUnknownTools(sent *kit.Counter) []reeve.Tool {
	late := func(context.Context, *reeve.Invocation) (any, error) {
		sent.N.Add(1)
		return nil, reeve.Errorf(reeve.Timeout, "late")
	}
	return []reeve.Tool{kit.Tool("unsafe", reeve.Unsafe, late), kit.Tool("keyed", reeve.Keyed, late)}
}

// An operation that the policy forbids now is not run again, although a person asks for it.
func TestG11_RepeatIsRefusedByThePolicy(t *testing.T) {
	t.Parallel()
	var sent kit.Counter
	h := reevetest.StartWith(t, kit.FastConfig(t), newUnknownTools(&sent)...)
	for _, name := range []string{"unsafe", "keyed"} {
		a := h.Agent("a-"+name, name)
		op := finishOperation(h, h.Call(a.ID, name, nil).OperationID)
		before := sent.N.Load()
		h.Want(http.StatusOK, nil, "PATCH", "/api/agents/"+a.ID,
			kit.Object{"policy": kit.Object{"tools": kit.Object{name: "deny"}}})
		h.Want(http.StatusOK, nil, "POST", "/api/operations/"+op.ID+"/resolve", kit.Object{"resolution": "retry"})
		if got := finishOperation(h, op.ID); got.State != reeve.DeniedOp || got.Code != reeve.Denied ||
			got.Message == "" ||
			sent.N.Load() != before {
			t.Errorf("%s: sent %d times more, %+v", name, sent.N.Load()-before, got)
		} else if got.Attempts != op.Attempts {
			t.Errorf("%s: %d tries, and there were %d", name, got.Attempts, op.Attempts)
		}
	}
}

// A person resolves the outcome that they saw. If another person had it run again, the resolution does not apply to the
// next outcome. Attempts continue to count.
func TestG11_ResolutionAppliesToTheSeenAttempt(t *testing.T) {
	t.Parallel()
	var sent kit.Counter
	h := reevetest.StartWith(t, kit.FastConfig(t), newUnknownTools(&sent)...)
	for name, tries := range map[string]int{"unsafe": 1, "keyed": 5} {
		op := finishOperation(h, h.Call(h.Agent("a-"+name, name).ID, name, nil).OperationID)
		path, before := "/api/operations/"+op.ID+"/resolve", sent.N.Load()
		if op.State != reeve.Unknown || op.Attempts != tries {
			t.Fatalf("%s: %+v", name, op)
		}
		var said, all sync.WaitGroup
		said.Add(1)
		codes := make(chan int, 8)
		for range cap(codes) {
			all.Go(func() {
				said.Wait()
				codes <- h.Do("POST", path, kit.Object{"resolution": "retry", "attempts": tries}).Status
			})
		}
		said.Done()
		all.Wait()
		close(codes)
		taken := 0
		for c := range codes {
			if c == http.StatusOK {
				taken++
			} else if c != http.StatusConflict {
				t.Errorf("%s: status %d", name, c)
			}
		}
		got := finishOperation(h, op.ID)
		if got.State != reeve.Unknown || got.Attempts != 2*tries || taken != 1 || sent.N.Load()-before != int64(tries) {
			t.Errorf("%s: %d answers were taken, it was sent %d times more: %+v", name, taken, sent.N.Load()-before,
				got)
		}
		for _, word := range []string{"retry", "skip", "happened"} {
			r := h.Do("POST", path, kit.Object{"resolution": word, "attempts": tries})
			if r.Status != http.StatusConflict || !strings.Contains(string(r.Body), `"STALE"`) ||
				!strings.Contains(string(r.Body), "was retried meanwhile") {
				t.Errorf("%s, %s, of the time before: %d %s", name, word, r.Status, r.Body)
			}
		}
		h.Want(http.StatusOK, nil, "POST", path, kit.Object{"resolution": "skip"}) // as it is now
	}
}

// Attempts continue to count while a person decides about a budget in between. A resolution of the first outcome is not
// one of the second.
func TestG11_AttemptsCountAcrossAnApproval(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"unsafe", "keyed"} {
		t.Run(name, func(t *testing.T) {
			var sent kit.Counter
			h := reevetest.StartWith(t, kit.FastConfig(t), newUnknownTools(&sent)...)
			a := h.Agent("a", name)
			kit.SetBudget(h, "agent:"+a.ID, kit.Object{"limit": kit.Object{"calls": 1}, "on_exceed": "park"})
			first := finishOperation(h, h.Call(a.ID, name, nil).OperationID)
			path := "/api/operations/" + first.ID + "/resolve"
			h.Want(http.StatusOK, nil, "POST", path, kit.Object{"resolution": "retry", "attempts": first.Attempts})
			if parked := finishOperation(h, first.ID); parked.State != reeve.Parked ||
				parked.Attempts != first.Attempts {
				t.Fatalf("%+v", parked)
			}
			h.Want(http.StatusOK, nil, "POST", "/api/approvals/"+kit.GetInbox(h).Approvals[0].ID+"/decision",
				kit.Object{"decision": "approve"})
			second := finishOperation(h, first.ID)
			if second.State != reeve.Unknown || second.Attempts != 2*first.Attempts {
				t.Fatalf("%+v, after %d tries", second, first.Attempts)
			}
			h.Want(http.StatusConflict, nil, "POST", path, kit.Object{"resolution": "skip", "attempts": first.Attempts})
			h.Want(http.StatusOK, nil, "POST", path, kit.Object{"resolution": "skip", "attempts": second.Attempts})
		})
	}
}

// A call with another person's key is refused and reveals nothing. A person may use the key with any of their tokens.
func TestG11_KeyBelongsToOnePerson(t *testing.T) {
	t.Parallel()
	kit.StartOnBothDatabases(t, func(t *testing.T, start func(...reeve.Tool) *reevetest.Host) {
		h := start()
		ann, phone, bob := kit.NewTokenFor(h, "ann", "member"), kit.NewTokenFor(h, "ann", "member"),
			kit.NewTokenFor(h, "bob", "member")
		a, task := newRater(h)
		rate := func(note string) kit.Call {
			return kit.Call{"tool": "create_or_update_rating", "idempotency_key": "rate-1",
				"args": kit.Object{"target_kind": "task", "target_id": task, "scores": kit.Object{"energy": 20},
					"note": note}}
		}
		hers, _, status := kit.TryCall(h, a.ID, rate("secretly tired"), ann...)
		if status != http.StatusOK || hers.State != reeve.Committed {
			t.Fatalf("%d %+v", status, hers)
		}
		if again, _, _ := kit.TryCall(h, a.ID, rate("secretly tired"), phone...); !again.Replayed ||
			again.OperationID != hers.OperationID || again.Content != hers.Content {
			t.Errorf("with another token of hers: %+v", again)
		}
		words := map[string]bool{}
		for _, note := range []string{"secretly tired", "awake"} {
			_, p, status := kit.TryCall(h, a.ID, rate(note), bob...)
			if status != http.StatusConflict || p.Code != reeve.Conflict ||
				!strings.Contains(p.Detail, "another user") || !strings.Contains(p.Hint, "nothing was executed") {
				t.Errorf("his, %q: %d %+v", note, status, p)
			}
			words[p.Detail+p.Hint] = true
		}
		if len(words) != 1 {
			t.Errorf("the answers tell whether hers had the same arguments: %v", words)
		}
		r := h.Do("POST", "/api/agents/a/calls/batch", kit.Object{"calls": []any{rate("secretly tired")}}, bob...)
		if !strings.Contains(string(r.Body), "another user") || strings.Contains(string(r.Body), "tired") {
			t.Errorf("in a batch: %s", r.Body)
		}
		h.Want(http.StatusNotFound, nil, "GET", "/api/journal/ratings/task/"+task, nil, bob...)
		his, _, status := kit.TryCall(h, a.ID, rate("fine").With("idempotency_key", "rate-2"), bob...)
		if status != http.StatusOK || his.Replayed {
			t.Errorf("with a key of his own: %d %+v", status, his)
		}
		// Several users request the same undo. It is made once.
		better, _, _ := kit.TryCall(h, a.ID, rate("better").With("idempotency_key", "rate-3"), ann...)
		for _, who := range [][]string{bob, ann, bob} {
			var res reeve.Result
			h.Want(http.StatusOK, &res, "POST", "/api/operations/"+better.OperationID+"/undo", nil, who...)
			if res.State != reeve.Committed {
				t.Errorf("undo: %+v", res)
			}
		}
	})
}

func TestG11_UnsafeBecomesUnknownAndAPersonResolves(t *testing.T) {
	t.Parallel()
	for _, choice := range []string{"happened", "retry", "skip"} {
		t.Run(choice, func(t *testing.T) {
			w := kit.NewWitness(t)
			h, a, op := crashMidCall(t, w, reeve.Unsafe, nil, nil)
			got := finishOperation(h, op.ID)
			if _, requests := w.Count(); requests != 1 || got.State != reeve.Unknown {
				t.Fatalf("%d requests, %+v", requests, got)
			}
			in := kit.GetInbox(h)
			if len(in.Unknown) != 1 || in.Unknown[0].ID != op.ID || in.Unknown[0].Tool != "send" ||
				in.Unknown[0].Message == "" {
				t.Errorf("the inbox shows %+v", in)
			}
			// The run is parked: nothing else of it runs, other runs do.
			if _, p, status := kit.TryCall(h, a.ID,
				kit.Call{"tool": "send", "run": "r1"}); status != http.StatusConflict ||
				p.Code != reeve.Conflict {
				t.Errorf("in the parked run: %d %+v", status, p)
			}
			if res, _, status := kit.TryCall(h, a.ID, kit.Call{"tool": "send", "run": "r2"}); status != http.StatusOK {
				t.Errorf("in another run: %d %+v", status, res)
			}
			// A run of that name in another workspace is another run.
			h.Want(http.StatusCreated, nil, "POST", "/api/workspaces", map[string]any{"id": "other"})
			h.Want(http.StatusCreated, nil, "POST", "/api/agents", map[string]any{"name": "b"}, "X-Workspace-Id",
				"other")
			h.Want(http.StatusOK, nil, "POST", "/api/agents/b/calls", kit.Call{"tool": "list_files", "run": "r1"},
				"X-Workspace-Id", "other")
			before, _ := w.Count()
			var resolved reeve.Operation
			h.Want(http.StatusOK, &resolved, "POST", "/api/operations/"+op.ID+"/resolve",
				map[string]any{"resolution": choice})
			h.RunUntilIdle(t.Context())
			final := kit.GetOperation(h, op.ID)
			effects, _ := w.Count()
			want := map[string]reeve.State{"happened": reeve.Committed, "retry": reeve.Committed,
				"skip": reeve.Unknown}[choice]
			if final.State != want || string(final.Resolution) != choice || final.ResolvedBy != "owner" ||
				effects != before {
				t.Errorf("%+v, %d effects", final, effects)
			}
			if n := w.CountRequests(op.ID); n != map[string]int{"happened": 1, "retry": 2, "skip": 1}[choice] {
				t.Errorf("it was sent %d times", n)
			}
			p := kit.PairCalls(h, kit.ListThread(h, a.ID, "run=r1"))[op.CallID]
			if info := kit.ResultInfo(t, p[1]); (info.Status == "error") != (choice == "skip") {
				t.Errorf("the thread says %+v", info)
			}
			if len(kit.GetInbox(h).Unknown) != 0 {
				t.Errorf("the inbox still shows %+v", kit.GetInbox(h))
			}
			for _, again := range []string{"happened", "retry", "skip"} {
				h.Want(http.StatusConflict, nil, "POST", "/api/operations/"+op.ID+"/resolve",
					map[string]any{"resolution": again})
			}
			if _, _, status := kit.TryCall(h, a.ID, kit.Call{"tool": "send", "run": "r1"}); status != http.StatusOK {
				t.Errorf("the run goes on with status %d", status)
			}
		})
	}
}

// Running an operation again repeats what was approved. A tool that changed since would do something else, so it is
// refused.
func TestG11_ChangedToolIsNotRunAgain(t *testing.T) {
	t.Parallel()
	for _, effect := range []reeve.Effect{reeve.Unsafe, reeve.Keyed, reeve.Verifiable} {
		for what, parameters := range map[string]string{"another url": "",
			"other parameters too": `{"type":"object","properties":{"m":{"type":"integer"}},"required":["m"],"additionalProperties":false}`} {
			t.Run(string(effect)+", "+what, func(t *testing.T) {
				w := kit.NewWitness(t)
				spec := map[string]any{"method": "POST", "url": w.URL + "/send"}
				if effect == reeve.Verifiable {
					spec["verify"] = kit.VerifySpec(w, map[string]any{"applied": []int{204},
						"not_applied": []int{410}})["verify"]
				}
				h, a, op := crashMidCall(t, w, effect, nil, spec)
				var was reeve.Tool
				h.Want(http.StatusOK, &was, "GET", "/api/tools/send", nil)
				spec["url"] = w.URL + "/v2/send"
				if parameters != "" {
					was.Parameters = json.RawMessage(parameters)
				}
				change := func() {
					h.Want(http.StatusOK, nil, "PUT", "/api/tools/send", map[string]any{"id": "send", "kind": "http",
						"description": was.Description, "effect": effect, "tier": was.Tier, "spec": spec,
						"parameters": was.Parameters, "timeout_ms": 2000})
				}
				if effect == reeve.Keyed { // which would find out by sending it again
					change()
				}
				if got := finishOperation(h, op.ID); got.State != reeve.Unknown {
					t.Fatalf("%+v", got)
				}
				if effect != reeve.Keyed {
					change()
				}
				h.Want(http.StatusOK, nil, "POST", "/api/operations/"+op.ID+"/resolve",
					map[string]any{"resolution": "retry"})
				h.RunUntilIdle(t.Context())
				got := kit.GetOperation(h, op.ID)
				if _, requests := w.Count(); requests != 1 || got.State != reeve.DeniedOp || got.Code != reeve.Stale ||
					!strings.Contains(got.Message, "has changed") ||
					!strings.Contains(got.Message, "was not run again") {
					t.Errorf("%d requests, %+v", requests, got)
				}
				if info := kit.ResultInfo(t,
					kit.PairCalls(h, kit.ListThread(h, a.ID, "run=r1"))[op.CallID][1]); info.Code != reeve.Stale ||
					info.Step.Name != "lookup" {
					t.Errorf("the thread says %+v", info)
				}
			})
		}
	}
}
