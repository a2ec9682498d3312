package gate_test

import (
	"net/http"
	"strings"
	"testing"

	"reeve"
	"reeve/test/kit"
)

func TestG09_KeyedIsSentAgainWithTheSameKey(t *testing.T) {
	t.Parallel()
	w := kit.NewWitness(t)
	h, a, op := crashMidCall(t, w, reeve.Keyed, nil, nil)
	got := finishOperation(h, op.ID)
	keys := w.Keys()
	if effects, requests := w.Count(); effects != 1 || requests != 2 || keys[0] != keys[1] || keys[0] != op.ID {
		t.Errorf("%d effects, %d requests with keys %v", effects, requests, keys)
	}
	if got.State != reeve.Committed {
		t.Errorf("%+v", got)
	}
	p := kit.PairCalls(h, kit.ListThread(h, a.ID, "run=r1"))[op.CallID]
	if p[1].Content != "done" || kit.ResultInfo(t, p[1]).Attempts != 2 {
		t.Errorf("the result is %q, %s", p[1].Content, p[1].Metadata)
	}
	h.RunUntilIdle(t.Context())
	if _, requests := w.Count(); requests != 2 {
		t.Errorf("%d requests after it was settled", requests)
	}
}

// After a crash the first request may have had its effect. A failed or refused second request does not prove the
// contrary.
func TestG09_FailedRetryDoesNotProveTheFirstFailed(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(http.ResponseWriter){
		"conflict": func(w http.ResponseWriter) { w.WriteHeader(http.StatusConflict) },
		"refused":  func(w http.ResponseWriter) { w.WriteHeader(http.StatusUnauthorized) },
		"broken":   func(w http.ResponseWriter) { w.WriteHeader(http.StatusBadGateway) },
		"busy":     func(w http.ResponseWriter) { w.WriteHeader(http.StatusTooManyRequests) },
		"dropped":  kit.CloseConnection,
	} {
		t.Run(name, func(t *testing.T) {
			w := kit.NewWitness(t)
			h, _, op := crashMidCall(t, w, reeve.Keyed, nil, nil)
			w.Before = func(_ int, out http.ResponseWriter, _ *http.Request) bool { answer(out); return true }
			got := finishOperation(h, op.ID)
			if got.State != reeve.Unknown || got.Code != reeve.UnknownOutcome || len(kit.GetInbox(h).Unknown) != 1 {
				t.Errorf("%+v", got)
			}
			if effects, requests := w.Count(); effects != 1 || requests != 6 { // the first request and five retries
				t.Errorf("%d effects, %d requests", effects, requests)
			}
		})
	}
	t.Run("down", func(t *testing.T) {
		w := kit.NewWitness(t)
		h, _, op := crashMidCall(t, w, reeve.Keyed, nil, nil)
		w.CloseClientConnections()
		w.Listener.Close()
		if got := finishOperation(h, op.ID); got.State != reeve.Unknown {
			t.Errorf("%+v", got)
		}
	})
}

// A tool that changed after a request had left is not used to send it again: the new address may not know the first
// request.
func TestG09_ChangedToolDoesNotSendAgain(t *testing.T) {
	t.Parallel()
	for _, effect := range []reeve.Effect{reeve.Keyed, reeve.Verifiable} {
		t.Run(string(effect), func(t *testing.T) {
			w := kit.NewWitness(t)
			spec := map[string]any{"method": "POST", "url": w.URL + "/send"}
			if effect == reeve.Verifiable {
				spec["verify"] = kit.VerifySpec(w, nil)["verify"]
			}
			h, _, op := crashMidCall(t, w, effect, nil, spec)
			var was reeve.Tool
			h.Want(http.StatusOK, &was, "GET", "/api/tools/send", nil)
			spec["url"] = w.URL + "/v2/send"
			h.Want(http.StatusOK, nil, "PUT", "/api/tools/send", map[string]any{"id": "send", "kind": "http",
				"description": was.Description, "effect": effect, "tier": was.Tier, "spec": spec,
				"parameters": was.Parameters, "timeout_ms": 2000})
			got := finishOperation(h, op.ID)
			if effects, requests := w.Count(); effects != 1 || requests != 1 || got.State != reeve.Unknown ||
				!strings.Contains(got.Message, "has changed") {
				t.Errorf("%d effects, %d requests, %+v", effects, requests, got)
			}
			if len(kit.GetInbox(h).Unknown) != 1 {
				t.Error("nobody is told")
			}
		})
	}
}
