package host_test

import (
	"context"
	"encoding/json"
	"io"
	"sync"
	"sync/atomic"
	"testing"

	"reeve"
	"reeve/reevetest"
	"reeve/test/kit"
)

// slowly is a verifiable tool whose effect comes later than its request is given up, or its server dies.
type slowly struct {
	sent, looks atomic.Int64
	applied     atomic.Bool
	hold        chan struct{} // the request ends when it is closed; nil means at once, with a lost connection
	began       chan struct{}
}

func (s *slowly) tool(timeoutMS int64) reeve.Tool {
	t := kit.Tool("slow", reeve.Verifiable, func(context.Context, *reeve.Invocation) (any, error) {
		if s.sent.Add(1) == 1 && s.hold != nil {
			close(s.began)
			<-s.hold
		}
		return nil, io.ErrUnexpectedEOF
	})
	t.TimeoutMS = timeoutMS
	t.Verify = func(context.Context, *reeve.Invocation) (reeve.Outcome, any, error) {
		s.looks.Add(1)
		if s.applied.Load() {
			return reeve.Applied, "arrived", nil
		}
		return reeve.NotApplied, nil, nil
	}
	return t
}

// lookUp takes up what is due, until the operation was looked up so many times, or sent again.
func (s *slowly) lookUp(h *reevetest.Host, times int64) {
	h.T.Helper()
	until := s.looks.Load() + times
	kit.Eventually(h.T, "the operation to be looked up", func() bool {
		if _, err := h.Step(h.T.Context()); err != nil {
			h.T.Fatal(err)
		}
		return s.looks.Load() >= until || s.sent.Load() > 1
	})
}

// crash makes a call, and gives the world as it is when the server dies while the request is on its way.
func (s *slowly) crash(t *testing.T, before, after int64) (*reevetest.Host, reeve.Operation) {
	t.Helper()
	s.hold, s.began = make(chan struct{}), make(chan struct{})
	h := reevetest.StartWith(t, kit.FastConfig(t), s.tool(before))
	a := h.Agent("a", "slow")
	var wg sync.WaitGroup
	wg.Go(func() {
		_, _ = h.Host.Call(t.Context(), reeve.Call{Workspace: "default", Agent: a.ID, Tool: "slow",
			Args: json.RawMessage(`{}`)})
	})
	t.Cleanup(func() { close(s.hold); wg.Wait() })
	<-s.began
	next := kit.RestartAfterCrash(h, s.tool(after))
	return next, kit.ListOperations(next)[0]
}

// A look-up that does not find the effect counts only after the call's time limit has passed since it was sent: until
// then the request may still be on its way. One that finds it counts at once.
func TestG28_NotFoundCountsOnlyAfterTheTimeLimit(t *testing.T) {
	t.Parallel()
	const long = 3_600_000
	t.Run("after a crash", func(t *testing.T) {
		t.Parallel()
		var s slowly
		h, op := s.crash(t, long, long)
		s.lookUp(h, 20) // more often than there are tries
		got := kit.GetOperation(h, op.ID)
		if s.sent.Load() != 1 || got.State != reeve.Dispatched || got.NextAttemptAt == nil {
			t.Fatalf("sent %d times, %+v", s.sent.Load(), got)
		}
		s.applied.Store(true)
		if got := finishOperation(h, op.ID); got.State != reeve.Committed || s.sent.Load() != 1 {
			t.Errorf("sent %d times, %+v", s.sent.Load(), got)
		}
	})
	t.Run("after a lost connection", func(t *testing.T) {
		t.Parallel()
		var s slowly
		h := reevetest.StartWith(t, kit.FastConfig(t), s.tool(long))
		res := h.Call(h.Agent("a", "slow").ID, "slow", nil)
		s.lookUp(h, 20)
		if got := kit.GetOperation(h, res.OperationID); s.sent.Load() != 1 || got.State != reeve.Dispatched {
			t.Fatalf("sent %d times, %+v", s.sent.Load(), got)
		}
		s.applied.Store(true)
		if got := finishOperation(h, res.OperationID); got.State != reeve.Committed || s.sent.Load() != 1 {
			t.Errorf("sent %d times, %+v", s.sent.Load(), got)
		}
	})
	t.Run("a shorter limit since", func(t *testing.T) { // what was sent has the one that it was sent with
		t.Parallel()
		var s slowly
		h, op := s.crash(t, long, 1)
		for range 20 {
			if _, err := h.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if got := kit.GetOperation(h, op.ID); s.sent.Load() != 1 || got.State == reeve.Committed {
			t.Errorf("sent %d times, %+v", s.sent.Load(), got)
		}
	})
	t.Run("the limit has passed", func(t *testing.T) {
		t.Parallel()
		w := kit.NewWitness(t)
		h, _, op := midway(t, w, reeve.Verifiable, map[string]any{"timeout_ms": 1000}, kit.VerifySpec(w, nil))
		w.Forget() // the far side lost it
		got := finishOperation(h, op.ID)
		if effects, requests := w.Count(); effects != 1 || requests != 2 || got.State != reeve.Committed {
			t.Errorf("%d effects, %d requests, %+v", effects, requests, got)
		}
	})
}
