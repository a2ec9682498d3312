package reeve_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"reeve"
)

// TestL19_TimesThatCanBeShown checks that every accepted time and every stored number encodes as JSON. One that does
// not would make a whole list unreadable.
func TestL19_TimesThatCanBeShown(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"2026-01-08T10:00:00+24:00", "2026-01-08T10:00:00-24:00", "2026-01-08T10:00:00+12:60",
		"1969-12-31T23:59:59Z", "9999-01-01T00:00:00Z", "2026-01-08T10:00:00", "2026-01-08 10:00:00Z", ""} {
		if got, err := reeve.ParseTimeWithOffset("/at", s); reeve.CodeOf(err) != reeve.Validation {
			t.Errorf("%q parses as %v", s, got)
		}
	}
	for s, want := range map[string]string{"2026-01-08T10:00:00.5+05:45": "2026-01-08T10:00:00.5+05:45",
		"2026-01-08t10:00:00z": "2026-01-08T10:00:00Z", "1970-01-01T00:00:00Z": "1970-01-01T00:00:00Z",
		"9998-12-31T23:59:59-23:59": "9998-12-31T23:59:59-23:59"} {
		got, err := reeve.ParseTimeWithOffset("/at", s)
		if err != nil || got.Format(time.RFC3339Nano) != want {
			t.Errorf("%q parses as %v, %v", s, got, err)
		}
	}
	for _, ms := range []int64{math.MinInt64, -1, 0, 1, 253402300799999, math.MaxInt64} {
		for _, offset := range []int64{0, 86399, -86399, 86400, -86400, math.MaxInt32} {
			if _, err := json.Marshal([]time.Time{reeve.InOffset(ms, offset), reeve.FromMillis(ms)}); err != nil {
				t.Errorf("%d at %d: %v", ms, offset, err)
			}
		}
	}
}
