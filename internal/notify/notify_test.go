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
		b, began := notify.New(), time.Now()
		took := func() time.Duration { d := time.Since(began); began = time.Now(); return d }
		b.Notify()
		b.Notify()
		if ok := b.Wait(ctx, time.Hour); !ok || took() != 0 {
			t.Error("a ring before the rest was lost")
		}
		if ok := b.Wait(ctx, time.Minute); !ok || took() != time.Minute {
			t.Error("two rings ended two rests")
		}
		time.AfterFunc(time.Second, b.Notify)
		if ok := b.Wait(ctx, time.Minute); !ok || took() != time.Second {
			t.Error("a ring did not end the rest")
		}
		if ok := notify.Sleep(ctx, time.Minute); !ok || took() != time.Minute {
			t.Error("a pause did not last")
		}
		time.AfterFunc(time.Second, cancel)
		if ok := notify.Sleep(ctx, time.Minute); ok || took() != time.Second {
			t.Error("a pause outlived its context")
		}
		if b.Notify(); b.Wait(ctx, 0) {
			t.Error("a rest said that a context goes on that has ended")
		}
	})
}
