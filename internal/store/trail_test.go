package store

import (
	"fmt"
	"testing"
	"time"
)

// What the gate says is kept when it is said again, and kept anew after a while, as the database may have lost it.
func TestTrailsAreKeptAnew(t *testing.T) {
	var known trails
	now := time.UnixMilli(1_790_000_000_000)
	step := func(after time.Duration, key, want string) {
		t.Helper()
		now = now.Add(after)
		id, before := known.said([]byte(key), now)
		if got := fmt.Sprint(id, before); got != want {
			t.Fatalf("%s is known as %s, want %s", key, got, want)
		}
	}
	step(0, "one", "false")
	step(time.Second, "one", "true")
	known.keep([]byte("one"), "id")
	step(trailsLast-2*time.Second, "one", "idtrue")
	step(time.Second, "one", "false")
	known.keep([]byte("one"), "id")
	for i := range mostTrails {
		step(0, fmt.Sprint(i), "false")
	}
	step(0, "one", "false")
	if len(known.known) > mostTrails {
		t.Errorf("%d are known", len(known.known))
	}
}
