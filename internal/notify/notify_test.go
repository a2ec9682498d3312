package notify_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"reeve/internal/notify"
)

func TestSignal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s, start := notify.New(), time.Now()
		elapsed := func() time.Duration { d := time.Since(start); start = time.Now(); return d }
		s.Notify()
		s.Notify()
		if ok := s.Wait(ctx, time.Hour); !ok || elapsed() != 0 {
			t.Error("a notification before Wait was lost")
		}
		if ok := s.Wait(ctx, time.Minute); !ok || elapsed() != time.Minute {
			t.Error("two notifications ended two calls of Wait")
		}
		time.AfterFunc(time.Second, s.Notify)
		if ok := s.Wait(ctx, time.Minute); !ok || elapsed() != time.Second {
			t.Error("a notification did not end Wait")
		}
		if ok := notify.Sleep(ctx, time.Minute); !ok || elapsed() != time.Minute {
			t.Error("Sleep ended early")
		}
		time.AfterFunc(time.Second, cancel)
		if ok := notify.Sleep(ctx, time.Minute); ok || elapsed() != time.Second {
			t.Error("Sleep did not end with its context")
		}
		if s.Notify(); s.Wait(ctx, 0) {
			t.Error("Wait returned true after the context ended")
		}
	})
}
