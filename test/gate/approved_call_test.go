package gate_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/reevetest"
	"reeve/test/kit"
)

func TestG15_ApprovedCallRunsOnceAfterARestart(t *testing.T) {
	t.Parallel()
	var g guardedTool
	cfg := kit.FastConfig(t)
	h := reevetest.StartWith(t, cfg, g.tool())
	a := h.Agent("a", "guarded")
	res := h.Call(a.ID, "guarded", map[string]any{"n": 1}, "Idempotency-Key", "k")
	kit.Decide(h, res.ApprovalID, "approve") // and the server stops before it is run
	h.Stop()
	h = reevetest.StartWith(t, cfg, g.tool())
	var wg sync.WaitGroup
	for range 8 { // eight concurrent steps; exactly one runs the call
		wg.Go(func() {
			if _, err := h.Step(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	op := kit.GetOperation(h, res.OperationID)
	if g.ran.Count() != 1 || g.op.Load() != res.OperationID || op.State != reeve.Committed || op.CallID != res.CallID {
		t.Errorf("%d ran as %v, %+v", g.ran.Count(), g.op.Load(), op)
	}
	h.Stop()
	h = reevetest.StartWith(t, cfg, g.tool())
	h.RunUntilIdle(t.Context())
	again := h.Call(a.ID, "guarded", map[string]any{"n": 1}, "Idempotency-Key", "k")
	if g.ran.Count() != 1 || !again.Replayed || again.Content != "ran" || again.State != reeve.Committed {
		t.Errorf("%d ran, %+v", g.ran.Count(), again)
	}
	h.Want(http.StatusConflict, nil, "POST", "/api/approvals/"+res.ApprovalID+"/decision",
		map[string]any{"decision": "approve"})
	kit.PairCalls(h, kit.ListThread(h, a.ID, ""))
}

// An approved call that was running when the server died is not run again. Its outcome is unknown.
func TestG15_ApprovalIsNotUsedAgainAfterACrash(t *testing.T) {
	t.Parallel()
	started, release := make(chan struct{}), make(chan struct{})
	var ran kit.Counter
	hang := kit.Tool("hang", reeve.Unsafe, func(context.Context, *reeve.Invocation) (any, error) {
		if ran.N.Add(1) == 1 {
			close(started)
			<-release
		}
		return "ran", nil
	})
	hang.Tier = reeve.Privileged
	h := reevetest.StartWith(t, kit.FastConfig(t), hang)
	a := h.Agent("a", "hang")
	res := h.Call(a.ID, "hang", nil)
	kit.Decide(h, res.ApprovalID, "approve")
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = h.Step(t.Context()) })
	t.Cleanup(func() { close(release); wg.Wait() })
	<-started
	after := kit.RestartAfterCrash(h, hang)
	if op := finishOperation(after, res.OperationID); op.State != reeve.Unknown || ran.Count() != 1 {
		t.Errorf("%d ran, %+v", ran.Count(), op)
	}
}

// A person decides while the same call is answered from the record. The answer shows state and result of one moment.
func TestG15_RepeatedCallDuringADecision(t *testing.T) {
	t.Parallel()
	between := func() {}
	slow := kit.Tool("slow", reeve.Unsafe, new(kit.Counter).Handle)
	slow.Tier = reeve.Privileged
	// after the operation was read, and before its result is
	slow.Check = func(context.Context, *reeve.Invocation) error { between(); return nil }
	h := reevetest.StartWith(t, kit.FastConfig(t), slow)
	a := h.Agent("a", "slow")
	first, _, status := kit.TryCall(h, a.ID, kit.Call{"tool": "slow"}, "Idempotency-Key", "k")
	if status != http.StatusAccepted || first.State != reeve.Parked {
		t.Fatalf("%d %+v", status, first)
	}
	between = func() { between = func() {}; kit.Decide(h, first.ApprovalID, "deny") }
	if res, _, status := kit.TryCall(h, a.ID, kit.Call{"tool": "slow"}, "Idempotency-Key", "k"); status != http.StatusOK ||
		res.State != reeve.DeniedOp || res.Code != reeve.Denied || !res.Replayed {
		t.Errorf("%d %+v", status, res)
	}
}

// A running server executes approved calls by itself.
func TestG15_RunningServerExecutesApprovedCalls(t *testing.T) {
	t.Parallel()
	var g guardedTool
	cfg := kit.FastConfig(t)
	h := reevetest.StartWith(t, cfg, g.tool())
	a := h.Agent("a", "guarded")
	res := h.Call(a.ID, "guarded", nil)
	h.Stop()
	cfg.Listen = "127.0.0.1:0"
	live, err := host.New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := live.AddTool(g.tool()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ready, ended := make(chan string, 1), make(chan error, 1)
	go func() { ended <- live.Run(ctx, func(url string) { ready <- url }) }()
	url := <-ready
	post := func(path, body string) int {
		req, err := http.NewRequestWithContext(t.Context(), "POST", url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+h.Token)
		req.Header.Set("X-Workspace-Id", "default")
		req.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		return res.StatusCode
	}
	if status := post("/api/approvals/"+res.ApprovalID+"/decision", `{"decision":"approve"}`); status != http.StatusOK {
		t.Fatal(status)
	}
	kit.Eventually(t, "the approved call to run", func() bool { return g.ran.Count() == 1 })
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	h = reevetest.StartWith(t, cfg, g.tool())
	h.RunUntilIdle(t.Context())
	if op := kit.GetOperation(h, res.OperationID); op.State != reeve.Committed || g.ran.Count() != 1 {
		t.Errorf("%d ran, %+v", g.ran.Count(), op)
	}
}

// Resolving the outcome of an operation that has not run is refused, and the error names what the operation waits for.
func TestG15_ResolvingAParkedCallIsRefused(t *testing.T) {
	t.Parallel()
	var g guardedTool
	var ran kit.Counter
	h := reevetest.Start(t, g.tool(), kit.Tool("send", reeve.Keyed, ran.Handle))
	parked := h.Call(h.Agent("a", "guarded").ID, "guarded", nil)
	proposed := h.Call(newProposer(h, "b", "send").ID, "send", nil)
	for op, want := range map[string][2]string{parked.OperationID: {parked.ApprovalID, "reeve approvals approve " +
		parked.ApprovalID}, proposed.OperationID: {proposed.ProposalID, "reeve proposals show cs_"}} {
		var p api.Problem
		h.Want(http.StatusConflict, &p, "POST", "/api/operations/"+op+"/resolve", kit.Object{"resolution": "skip"})
		if !strings.Contains(p.Detail, "waits for the approval "+want[0]) &&
			!strings.Contains(p.Detail, "the proposal "+want[0]) || !strings.Contains(p.Hint, want[1]) {
			t.Errorf("%+v", p)
		}
	}
}

// Two servers accept one decision and run the call once.
func TestG14_TwoServersRunAnApprovedCallOnce(t *testing.T) {
	t.Parallel()
	var g guardedTool
	servers := kit.StartTwoServers(t, g.tool())
	a := servers[0].Agent("a", "guarded")
	for round := range 3 {
		g.ran.N.Store(0)
		res := servers[0].Call(a.ID, "guarded", map[string]any{"round": round})
		var won atomic.Int64
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				if servers[i%2].Do("POST", "/api/approvals/"+res.ApprovalID+"/decision",
					map[string]any{"decision": "approve"}).Status == http.StatusOK {
					won.Add(1)
				}
				if _, err := servers[(i+1)%2].Step(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		finishOperation(servers[1], res.OperationID)
		if op := kit.GetOperation(servers[0], res.OperationID); won.Load() != 1 || g.ran.Count() != 1 ||
			op.State != reeve.Committed {
			t.Errorf("%d answers, %d ran, %+v", won.Load(), g.ran.Count(), op)
		}
	}
}

// One server changes the policy and parks a call. Another server, whose cache is older, executes the call after its
// approval.
func TestG14_ApprovalIsValidOnAServerWithAStaleCache(t *testing.T) {
	t.Parallel()
	var ran kit.Counter
	servers := kit.StartTwoServers(t, kit.Tool("keyed", reeve.Keyed, ran.Handle),
		kit.Tool("late", reeve.Keyed, ran.Handle))
	a := servers[0].Agent("a", "keyed")
	servers[1].Call(a.ID, "keyed", nil) // fills the cache of the second server
	ran.N.Store(0)
	servers[0].Want(http.StatusOK, nil, "PATCH", "/api/agents/a",
		map[string]any{"policy": map[string]any{"tools": map[string]any{"keyed": "ask", "late": "ask"}}})
	servers[0].Want(http.StatusCreated, nil, "POST", "/api/agents/a/tools", map[string]any{"tool_id": "late"})
	for i, id := range []string{"keyed", "late"} {
		res := servers[0].Call(a.ID, id, nil)
		servers[1].Want(http.StatusOK, nil, "POST", "/api/approvals/"+res.ApprovalID+"/decision",
			map[string]any{"decision": "approve"})
		if op := finishOperation(servers[1], res.OperationID); op.State != reeve.Committed || ran.Count() != i+1 {
			t.Errorf("%s: %d ran, %+v", id, ran.Count(), op)
		}
	}
}
