package gate_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"reeve"
	"reeve/reevetest"
	"reeve/test/kit"
)

// The hint of a refusal fits its cause: policy and lifecycle have different ones.
func TestG02_HintFitsTheRefusal(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change kit.Object
		hint   string
	}{
		"policy":    {kit.Object{"policy": kit.Object{"tools": kit.Object{"act": "deny"}}}, "change the policy of"},
		"dormant":   {kit.Object{"lifecycle": "dormant"}, "--lifecycle active"},
		"destroyed": {kit.Object{"lifecycle": "destroyed"}, "use another agent"},
	} {
		var ran kit.Counter
		h := reevetest.Start(t, kit.Tool("act", reeve.Keyed, ran.Handle))
		a := h.Agent("a", "act")
		kit.UpdateAgent(h, a, c.change)
		if _, p, status := kit.TryCall(h, a.ID, kit.Call{"tool": "act"}); status != http.StatusForbidden ||
			p.Code != reeve.Denied ||
			!strings.Contains(p.Hint, c.hint) || c.hint != "change the policy of" &&
			strings.Contains(p.Hint, "policy") {
			t.Errorf("%s: %d %+v", name, status, p)
		}
	}
}

// Every kind of call leaves one action and one result, linked, in its thread.
func TestG02_EveryCallLeavesOneActionAndOneResult(t *testing.T) {
	t.Parallel()
	never := make(chan struct{})
	t.Cleanup(func() { close(never) })
	var ran kit.Counter
	hang := kit.Tool("hang", reeve.Read, func(context.Context, *reeve.Invocation) (any, error) {
		<-never
		return nil, nil
	})
	hang.TimeoutMS = 20
	hangLocal := kit.Tool("hang_local", reeve.Local, func(context.Context, *reeve.Invocation) (any, error) {
		<-never
		return nil, nil
	})
	hangLocal.TimeoutMS = 20
	preview := kit.Tool("previewed", reeve.Keyed, ran.Handle)
	preview.Preview = func(context.Context, *reeve.Invocation) (reeve.Preview, error) {
		return reeve.Preview{Change: "+1"}, nil
	}
	privileged := kit.Tool("privileged", reeve.Unsafe, ran.Handle)
	privileged.Tier = reeve.Privileged
	cfg := kit.FastConfig(t)
	h := reevetest.StartWith(t, cfg,
		kit.Tool("read", reeve.Read, ran.Handle), kit.Tool("local", reeve.Local, ran.Handle),
		kit.Tool("keyed", reeve.Keyed, ran.Handle), kit.Tool("unsafe", reeve.Unsafe, ran.Handle),
		kit.Tool("fails", reeve.Read, func(context.Context, *reeve.Invocation) (any, error) {
			return nil, errors.New("no")
		}),
		kit.Tool("fails_local", reeve.Local, func(context.Context, *reeve.Invocation) (any, error) {
			return nil, errors.New("no")
		}),
		kit.Tool("fails_keyed", reeve.Keyed, func(context.Context, *reeve.Invocation) (any, error) {
			return nil, errors.New("no")
		}),
		kit.Tool("panics", reeve.Read, func(context.Context, *reeve.Invocation) (any, error) { panic("boom") }),
		kit.Tool("panics_unsafe", reeve.Unsafe, func(context.Context, *reeve.Invocation) (any, error) {
			panic("boom")
		}),
		hang, hangLocal, preview, privileged)
	all := []string{"read", "local", "keyed", "unsafe", "fails", "fails_local", "fails_keyed", "panics",
		"panics_unsafe", "hang", "hang_local", "previewed", "privileged"}
	a := h.Agent("a", all...)
	made := 0
	ask := func(c kit.Call, headers ...string) reeve.Result {
		made++
		res, p, _ := kit.TryCall(h, a.ID, c, headers...)
		if res.CallID == "" && p.CallID == "" {
			t.Errorf("%v names no call: %+v", c, p)
		}
		return res
	}
	for _, id := range all[:11] {
		if res := ask(kit.Call{"tool": id}); res.State == reeve.Unknown { // its result comes with a person's word
			h.Want(http.StatusOK, nil, "POST", "/api/operations/"+res.OperationID+"/resolve",
				map[string]any{"resolution": "skip"})
		}
	}
	ask(kit.Call{"tool": "previewed", "preview_only": true})
	ask(kit.Call{"tool": "read", "args": []int{1}})
	ask(kit.Call{"tool": "nope", "args": map[string]any{"any": "thing"}})
	ask(kit.Call{"tool": "file_read"})
	first := ask(kit.Call{"tool": "keyed"}, "Idempotency-Key", "k")
	again := h.Call(a.ID, "keyed", nil, "Idempotency-Key", "k") // the stored result: no call of its own
	if !again.Replayed || again.CallID != first.CallID {
		t.Errorf("the replay is %+v", again)
	}
	kit.Decide(h, ask(kit.Call{"tool": "privileged"}).ApprovalID, "approve")
	kit.Decide(h, ask(kit.Call{"tool": "privileged"}).ApprovalID, "deny")
	h.RunUntilIdle(t.Context())
	got := kit.PairCalls(h, kit.ListThread(h, a.ID, ""))
	if len(got) != made {
		t.Errorf("%d calls left %d actions", made, len(got))
	}
	for id, p := range got {
		if p[0].OperationID != p[1].OperationID {
			t.Errorf("the action of %s names operation %q, its result %q", id, p[0].OperationID, p[1].OperationID)
		}
	}
}

// Concurrent calls of one thread leave one chain in which every action precedes its result.
func TestG02_ConcurrentCallsShareOneChain(t *testing.T) {
	t.Parallel()
	var ran kit.Counter
	h := reevetest.Start(t, kit.Tool("read", reeve.Read, ran.Handle), kit.Tool("local", reeve.Local, ran.Handle),
		kit.Tool("keyed", reeve.Keyed, ran.Handle))
	a := h.Agent("a", "read", "local", "keyed")
	done := make(chan error)
	const n = 24
	for i := range n {
		go func() {
			_, err := h.Host.Call(t.Context(), reeve.Call{Workspace: "default", Agent: a.ID,
				Tool: []string{"read", "local", "keyed"}[i%3]})
			done <- err
		}()
	}
	for range n {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if got := kit.PairCalls(h, kit.ListThread(h, a.ID, "")); len(got) != n {
		t.Errorf("%d calls left %d actions", n, len(got))
	}
}

// A caller that disconnects during a call leaves a full record.
func TestG02_DisconnectedCallerLeavesAFullRecord(t *testing.T) {
	t.Parallel()
	for _, effect := range []reeve.Effect{reeve.Read, reeve.Local, reeve.Keyed} {
		t.Run(string(effect), func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			h := reevetest.Start(t, kit.Tool("leave", effect, func(context.Context, *reeve.Invocation) (any, error) {
				cancel()
				return "done", nil
			}))
			a := h.Agent("a", "leave")
			res, err := h.Host.Call(ctx, reeve.Call{Workspace: "default", Agent: a.ID, Tool: "leave"})
			if err != nil {
				t.Errorf("%+v, %v", res, err)
			}
			if got := kit.PairCalls(h, kit.ListThread(h, a.ID, "")); len(got) != 1 {
				t.Errorf("%d actions", len(got))
			}
		})
	}
}

// A caller that disconnects while the workspace changes leaves a full record too: the call is decided again without a
// caller.
func TestG02_DisconnectedCallerDuringAChange(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	var h *reevetest.Host
	h = reevetest.Start(t, kit.Tool("leave", reeve.Read, func(ctx context.Context, _ *reeve.Invocation) (any, error) {
		h.Want(http.StatusNoContent, nil, "POST", "/api/resume", map[string]any{"agent": "a"})
		cancel()
		return nil, ctx.Err()
	}))
	a := h.Agent("a", "leave")
	res, err := h.Host.Call(ctx, reeve.Call{Workspace: "default", Agent: a.ID, Tool: "leave"})
	if reeve.CodeOf(err) != reeve.Canceled {
		t.Errorf("%+v, %v", res, err)
	}
	if got := kit.PairCalls(h, kit.ListThread(h, a.ID, "")); len(got) != 1 || got[res.CallID][0].ID != res.CallID {
		t.Errorf("the call %q left %+v", res.CallID, got)
	}
}
