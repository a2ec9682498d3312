package reeve

import (
	"strings"
	"time"
)

// Now returns the current time in UTC, truncated to milliseconds, the precision of the store. It is the only reader of
// the wall clock.
func Now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// Since returns the time elapsed since start, a result of [Monotonic].
func Since(start time.Time) time.Duration { return time.Since(start) }

// Monotonic returns a time for measuring durations with [Since]. Do not store it.
func Monotonic() time.Time { return time.Now() }

// Millis returns t in Unix milliseconds, the format of the store. The zero time is 0.
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

// clampTime returns the time at ms, or the nearest time within the years 1 to 9999. A time outside them cannot be
// encoded as JSON and would make a whole list unreadable.
func clampTime(ms int64) time.Time {
	return time.UnixMilli(max(-62135596800000, min(ms, 253402300799999))).UTC()
}

// ParseInstant parses RFC 3339. It rejects offsets that package time parses but cannot format.
func ParseInstant(s string) (time.Time, error) {
	s = strings.ToUpper(s)
	t, err := time.Parse(time.RFC3339Nano, s)
	if _, offset := t.Zone(); err == nil && (max(offset, -offset) >= 24*60*60 || !strings.HasSuffix(s, "Z") &&
		s[len(s)-2:] > "59") {
		err = Errorf(Validation, "the UTC offset is out of range")
	}
	return t, err
}

// InOffset returns the time at ms in a zone that is offset seconds east of UTC.
func InOffset(ms, offset int64) time.Time {
	t := clampTime(ms)
	if shown := t.In(time.FixedZone("", int(offset))); offset != 0 && max(offset, -offset) < 24*60*60 &&
		shown.Year() <= 9999 {
		return shown
	}
	return t
}
