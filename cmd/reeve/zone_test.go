package main

import (
	"testing"

	"reeve"
)

// TestO13_AZoneThatIsGoneIsShown: the zone that was said, also where this machine does not know it.
func TestO13_AZoneThatIsGoneIsShown(t *testing.T) {
	for zone, want := range map[string]string{"": "cron 0 7 * * * UTC", "Europe/Berlin": "cron 0 7 * * * Europe/Berlin",
		"Mars/Base": "cron 0 7 * * * Mars/Base"} {
		if got := cadence(reeve.Timer{Kind: "cron", Value: "0 7 * * *", Zone: zone}); got != want {
			t.Errorf("%q is shown as %q, want %q", zone, got, want)
		}
	}
}
