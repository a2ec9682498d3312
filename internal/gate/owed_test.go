package gate

import (
	"context"
	"errors"
	"slices"
	"testing"

	"reeve"
)

// While what is owed is written, which takes as long as the store does, nobody else waits; and what is owed anew meanwhile is not taken for what was written.
func TestG12_WhoOwesDoesNotWaitForOthersDebts(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	var o owed
	var paid []string
	pays := func(name string) func(context.Context) error {
		return func(context.Context) error { paid = append(paid, name); return nil }
	}
	meanwhile := func(operation string, err error) {
		o.add(operation, func(context.Context) error {
			if !o.mu.TryLock() {
				t.Fatal("whoever owes something must wait")
			}
			o.mu.Unlock()
			o.add(operation, pays(operation))
			return err
		})
	}
	down := true
	meanwhile("written", nil)
	meanwhile("not written", errors.New("the store is down"))
	o.add("tried again", func(ctx context.Context) error {
		if down {
			return errors.New("the store is down")
		}
		return pays("tried again")(ctx)
	})
	o.add("another's", func(context.Context) error { return reeve.Errorf(reeve.Conflict, "somebody has written it") })
	if !o.pay(ctx) || len(paid) != 0 {
		t.Errorf("paid %q, and nothing is owed", paid)
	}
	down = false
	if o.pay(ctx) {
		t.Errorf("paid %q, and something is owed", paid)
	}
	if slices.Sort(paid); !slices.Equal(paid, []string{"not written", "tried again", "written"}) {
		t.Errorf("paid %q", paid)
	}
}
