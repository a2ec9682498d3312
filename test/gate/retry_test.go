package gate_test

import (
	"context"
	"errors"
	"net"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"reeve"
	"reeve/reevetest"
	"reeve/test/kit"
)

// Infrastructure errors are retried with growing delays. Business errors are not, whatever their text.
func TestG19_RetriesDependOnTheErrorCode(t *testing.T) {
	t.Parallel()
	type attempt struct{ n atomic.Int64 }
	var tries attempt
	fail := func(err error, times int64) reeve.Handler {
		return func(_ context.Context, inv *reeve.Invocation) (any, error) {
			if n := tries.n.Add(1); n <= times {
				if int64(inv.Attempt) != n {
					return nil, errors.New("attempt " + strconv.Itoa(inv.Attempt))
				}
				return nil, err
			}
			return "at last", nil
		}
	}
	dial := &net.OpError{Op: "dial", Err: errors.New("refused")}
	for _, c := range []struct {
		name     string
		effect   reeve.Effect
		err      error
		times    int64
		attempts int64
		ok       bool
	}{
		{"down once", reeve.Read, reeve.Errorf(reeve.Unavailable, "down"), 1, 2, true},
		{"down twice", reeve.Keyed, reeve.Errorf(reeve.Unavailable, "down"), 2, 3, true},
		{"down for good", reeve.Unsafe, reeve.Errorf(reeve.Unavailable, "down"), 9, 3, false},
		{"local down once", reeve.Local, reeve.Errorf(reeve.Unavailable, "down"), 1, 2, true},
		{"no connection", reeve.Unsafe, dial, 1, 2, true},
		{"rate", reeve.Unsafe, reeve.Errorf(reeve.RateLimited, "slow down"), 1, 2, true},
		{"business", reeve.Read, errors.New("timeout: connection reset by peer"), 9, 1, false},
		{"typed business", reeve.Keyed, reeve.Errorf(reeve.ToolFailed, "503 unavailable, deadline exceeded"), 9, 1,
			false},
		{"validation", reeve.Local, reeve.Errorf(reeve.Validation, "try again"), 9, 1, false},
		{"late read", reeve.Read, reeve.Errorf(reeve.Timeout, "late"), 1, 2, true},
		{"late keyed", reeve.Keyed, reeve.Errorf(reeve.Timeout, "late"), 1, 2, true},
		{"late unsafe", reeve.Unsafe, reeve.Errorf(reeve.Timeout, "late"), 1, 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			tries.n.Store(0)
			x := kit.Tool("x", c.effect, fail(c.err, c.times))
			x.Retry = reeve.Retry{Attempts: 3, DelayMS: 1, MaxMS: 4}
			h := reevetest.Start(t, x)
			a := h.Agent("a", "x")
			res := h.Call(a.ID, "x", nil)
			if tries.n.Load() != c.attempts || res.IsError == c.ok {
				t.Errorf("%d attempts, %+v", tries.n.Load(), res)
			}
			if res.State == reeve.Unknown {
				return
			}
			if info := kit.ResultInfo(t, kit.PairCalls(h, kit.ListThread(h, a.ID, ""))[res.CallID][1]); int64(
				info.Attempts) != c.attempts {
				t.Errorf("the record says %d attempts", info.Attempts)
			}
		})
	}
}

// The delay between attempts doubles up to its limit.
func TestG19_TheDelayGrows(t *testing.T) {
	t.Parallel()
	var at []int64
	x := kit.Tool("x", reeve.Read, func(context.Context, *reeve.Invocation) (any, error) {
		at = append(at, reeve.Monotonic().UnixMilli())
		return nil, reeve.Errorf(reeve.Unavailable, "down")
	})
	x.Retry = reeve.Retry{Attempts: 5, DelayMS: 20, MaxMS: 80}
	h := reevetest.Start(t, x)
	h.Call(h.Agent("a", "x").ID, "x", nil)
	if len(at) != 5 {
		t.Fatalf("%d attempts", len(at))
	}
	for i, least := range []int64{20, 40, 80, 80} {
		if d := at[i+1] - at[i]; d < least-2 {
			t.Errorf("delay %d is %d ms, want at least %d", i+1, d, least)
		}
	}
}

// In every effect class, the attempts of a call share one cost, the time that budgets leave, and the delay that the
// tool asks for.
func TestG19_AttemptsShareCostTimeAndDelay(t *testing.T) {
	t.Parallel()
	const first, apart = 20 * time.Millisecond, 500 * time.Millisecond
	for _, effect := range []reeve.Effect{reeve.Read, reeve.Local, reeve.Keyed} {
		t.Run(string(effect), func(t *testing.T) {
			var ended time.Time
			x := kit.Tool("x", effect, func(ctx context.Context, inv *reeve.Invocation) (any, error) {
				inv.Spend(3, 0)
				start := reeve.Monotonic()
				if inv.Attempt == 1 {
					for reeve.Since(start) < first {
					}
					ended = reeve.Monotonic()
					return nil, &reeve.Error{Code: reeve.Unavailable, Message: "down", RetryAfter: apart}
				}
				if d := start.Sub(ended); d < apart {
					t.Errorf("the second came after %s", d)
				}
				until, _ := ctx.Deadline()
				if left := until.Sub(start); left > time.Minute-first {
					t.Errorf("the second has %s", left)
				}
				return "at last", nil
			})
			x.TimeoutMS, x.Retry = 60_000, reeve.Retry{Attempts: 2}
			h := reevetest.Start(t, x)
			a := h.Agent("a", "x")
			kit.SetBudget(h, "workspace", kit.Object{"limit": kit.Object{"millis": 60_000}})
			res := h.Call(a.ID, "x", nil)
			b := kit.GetBudget(h, "workspace")
			if res.IsError || res.Spent.Tokens != 6 || res.Spent.Calls != 1 ||
				res.Spent.Millis < first.Milliseconds() || b.Used != res.Spent || !b.Reserved.IsZero() {
				t.Errorf("%+v, of %+v", res, b)
			}
		})
	}
}
