package main

import (
	"testing"

	"reeve"
)

// TestO13_UnknownZoneIsShown checks that formatCadence shows a time zone that this machine does not know.
func TestO13_UnknownZoneIsShown(t *testing.T) {
	for zone, want := range map[string]string{"": "cron 0 7 * * * UTC", "Europe/Berlin": "cron 0 7 * * * Europe/Berlin",
		"Mars/Base": "cron 0 7 * * * Mars/Base"} {
		if got := formatCadence(reeve.Timer{Kind: "cron", Value: "0 7 * * *", Zone: zone}); got != want {
			t.Errorf("%q is shown as %q, want %q", zone, got, want)
		}
	}
}
