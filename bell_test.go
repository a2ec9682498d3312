package reeve_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"reeve"
)

func TestBell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		b, began := reeve.NewBell(), time.Now()
		took := func() time.Duration { d := time.Since(began); began = time.Now(); return d }
		b.Ring()
		b.Ring()
		if ok := b.Rest(ctx, time.Hour); !ok || took() != 0 {
			t.Error("a ring before the rest was lost")
		}
		if ok := b.Rest(ctx, time.Minute); !ok || took() != time.Minute {
			t.Error("two rings ended two rests")
		}
		time.AfterFunc(time.Second, b.Ring)
		if ok := b.Rest(ctx, time.Minute); !ok || took() != time.Second {
			t.Error("a ring did not end the rest")
		}
		if ok := reeve.Pause(ctx, time.Minute); !ok || took() != time.Minute {
			t.Error("a pause did not last")
		}
		time.AfterFunc(time.Second, cancel)
		if ok := reeve.Pause(ctx, time.Minute); ok || took() != time.Second {
			t.Error("a pause outlived its context")
		}
		if b.Ring(); b.Rest(ctx, 0) {
			t.Error("a rest said that a context goes on that has ended")
		}
	})
}
