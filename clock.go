package reeve

import (
	"strings"
	"time"
)

// Now is the one place that reads the wall clock. Times are UTC and cut to the millisecond, the precision the store
// keeps.
func Now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// Since measures elapsed time from a reading of [Monotonic].
func Since(start time.Time) time.Duration { return time.Since(start) }

// Monotonic reads a clock fit for measuring, not for storing.
func Monotonic() time.Time { return time.Now() }

// Millis turns a time into the store's form. The zero time is 0.
func Millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// FromMillis is the inverse of [Millis].
func FromMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return clampTime(ms)
}

// clampTime is the nearest point in time that JSON has a name for: the years 1 to 9999. One that has none would make a
// whole list unreadable.
func clampTime(ms int64) time.Time {
	return time.UnixMilli(max(-62135596800000, min(ms, 253402300799999))).UTC()
}

// ParseInstant reads RFC 3339. Package time takes offsets that it cannot write again.
func ParseInstant(s string) (time.Time, error) {
	s = strings.ToUpper(s)
	t, err := time.Parse(time.RFC3339Nano, s)
	if _, offset := t.Zone(); err == nil && (max(offset, -offset) >= 24*60*60 || !strings.HasSuffix(s, "Z") &&
		s[len(s)-2:] > "59") {
		err = Errorf(Validation, "the offset is out of range")
	}
	return t, err
}

// InOffset is the inverse of reading a time's milliseconds and its offset in seconds.
func InOffset(ms, offset int64) time.Time {
	t := clampTime(ms)
	if shown := t.In(time.FixedZone("", int(offset))); offset != 0 && max(offset, -offset) < 24*60*60 &&
		shown.Year() <= 9999 {
		return shown
	}
	return t
}
