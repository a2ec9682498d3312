package gate_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"testing"

	"reeve"
	"reeve/reevetest"
	"reeve/test/kit"
)

func TestG10_LookupDecides(t *testing.T) {
	t.Parallel()
	t.Run("applied", func(t *testing.T) {
		w := kit.NewWitness(t)
		h, a, op := crashMidCall(t, w, reeve.Verifiable, nil, kit.VerifySpec(w, nil))
		got := finishOperation(h, op.ID)
		if effects, requests := w.Count(); effects != 1 || requests != 1 || got.State != reeve.Committed {
			t.Errorf("%d effects, %d requests, %+v", effects, requests, got)
		}
		if p := kit.PairCalls(h, kit.ListThread(h, a.ID, "run=r1"))[op.CallID]; p[1].Content != "found 1" {
			t.Errorf("the result is %q", p[1].Content)
		}
		var x reeve.Explanation
		h.Want(http.StatusOK, &x, "GET", "/api/calls/"+op.ID+"/explanation", nil)
		if x.Outcome != "The call ran and succeeded." {
			t.Errorf("explained as %q", x.Outcome)
		}
	})
	t.Run("not applied", func(t *testing.T) {
		w := kit.NewWitness(t)
		h, _, op := crashMidCall(t, w, reeve.Verifiable, nil, kit.VerifySpec(w, nil))
		w.Forget() // the witness lost its data
		got := finishOperation(h, op.ID)
		if effects, requests := w.Count(); effects != 1 || requests != 2 || got.State != reeve.Committed {
			t.Errorf("%d effects, %d requests, %+v", effects, requests, got)
		}
	})
	t.Run("cannot tell", func(t *testing.T) {
		w := kit.NewWitness(t)
		h, _, op := crashMidCall(t, w, reeve.Verifiable, nil,
			kit.VerifySpec(w, map[string]any{"applied": []int{204}, "not_applied": []int{410}}))
		tries := 0
		kit.Eventually(t, "unknown", func() bool {
			n, err := h.Step(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			tries += n
			got := kit.GetOperation(h, op.ID)
			if got.State == reeve.Dispatched && n > 0 && (got.Attempts != tries || got.NextAttemptAt == nil) {
				t.Errorf("after %d look-ups: %+v", tries, got)
			}
			return got.State == reeve.Unknown
		})
		if _, requests := w.Count(); requests != 1 || tries != 5 || len(kit.GetInbox(h).Unknown) != 1 {
			t.Errorf("%d requests, %d look-ups, inbox %+v", requests, tries, kit.GetInbox(h))
		}
	})
}

// Attempts of an operation count in rounds. Each round sends the request or looks it up.
func TestG10_AttemptsAreCounted(t *testing.T) {
	t.Parallel()
	late := func(sent *kit.Counter) reeve.Handler {
		return func(context.Context, *reeve.Invocation) (any, error) {
			sent.N.Add(1)
			return nil, reeve.Errorf(reeve.Timeout, "late")
		}
	}
	var keyed, verifiable, looks, unsafe, good, local kit.Counter
	v := kit.Tool("verifiable", reeve.Verifiable, late(&verifiable))
	v.Verify = func(context.Context, *reeve.Invocation) (reeve.Outcome, any, error) {
		looks.N.Add(1)
		return reeve.CannotTell, nil, nil
	}
	h := reevetest.StartWith(t, kit.FastConfig(t), v, kit.Tool("keyed", reeve.Keyed, late(&keyed)),
		kit.Tool("unsafe", reeve.Unsafe, late(&unsafe)), kit.Tool("good", reeve.Keyed, good.Handle),
		kit.Tool("local", reeve.Local, local.Handle))
	for _, c := range []struct {
		tool  string
		sent  *kit.Counter
		sends int64
		state reeve.State
		tries int
	}{{"keyed", &keyed, 5, reeve.Unknown, 5}, {"verifiable", &verifiable, 1, reeve.Unknown, 5},
		{"unsafe", &unsafe, 1, reeve.Unknown, 1}, {"good", &good, 1, reeve.Committed, 1},
		{"local", &local, 1, reeve.Committed, 1}} {
		got := finishOperation(h, h.Call(h.Agent("a-"+c.tool, c.tool).ID, c.tool, nil).OperationID)
		if got.State != c.state || got.Attempts != c.tries || c.sent.N.Load() != c.sends {
			t.Errorf("%s: sent %d times, %+v", c.tool, c.sent.N.Load(), got)
		}
	}
	if looks.N.Load() != 5 {
		t.Errorf("looked up %d times", looks.N.Load())
	}
}

// The delay between lookups is 10 s at first and doubles.
func TestG10_LookupsBackOff(t *testing.T) {
	t.Parallel()
	cannot := kit.Tool("cannot", reeve.Verifiable, func(context.Context, *reeve.Invocation) (any, error) {
		return nil, reeve.Errorf(reeve.Timeout, "late")
	})
	cannot.Verify = func(context.Context, *reeve.Invocation) (reeve.Outcome, any, error) {
		return reeve.CannotTell, nil, nil
	}
	h := reevetest.Start(t, cannot) // with the delays as they are
	a := h.Agent("a", "cannot")
	res := h.Call(a.ID, "cannot", nil)
	op := kit.GetOperation(h, res.OperationID)
	if res.State != reeve.Dispatched || res.Code != reeve.InProgress || op.NextAttemptAt == nil || op.Attempts != 1 {
		t.Fatalf("%+v, %+v", res, op)
	}
	if d := op.NextAttemptAt.Sub(op.UpdatedAt).Seconds(); d < 9 || d > 11 {
		t.Errorf("the first delay is %v s", d)
	}
	if n, err := h.Step(t.Context()); n != 0 || err != nil {
		t.Errorf("%d were taken up before their time, %v", n, err)
	}
}

// Errors and panics of a lookup count as cannot tell.
func TestG10_FailedLookupCannotTell(t *testing.T) {
	t.Parallel()
	var looks atomic.Int64
	list := []reeve.Tool{}
	for name, f := range map[string]func() (reeve.Outcome, any, error){
		"error":   func() (reeve.Outcome, any, error) { return reeve.Applied, "lie", errors.New("no") },
		"panic":   func() (reeve.Outcome, any, error) { panic("boom") },
		"nothing": func() (reeve.Outcome, any, error) { return "", nil, nil },
		"novel":   func() (reeve.Outcome, any, error) { return "probably", nil, nil },
	} {
		v := kit.Tool(name, reeve.Verifiable, func(context.Context, *reeve.Invocation) (any, error) {
			return nil, io.ErrUnexpectedEOF
		})
		v.Verify = func(context.Context, *reeve.Invocation) (reeve.Outcome, any, error) { looks.Add(1); return f() }
		list = append(list, v)
	}
	h := reevetest.StartWith(t, kit.FastConfig(t), list...)
	for _, v := range list {
		a := h.Agent("a-"+v.ID, v.ID)
		looks.Store(0)
		if got := finishOperation(h, h.Call(a.ID, v.ID, nil).OperationID); got.State != reeve.Unknown ||
			looks.Load() != 5 {
			t.Errorf("%s: %+v after %d look-ups", v.ID, got, looks.Load())
		}
	}
}
