package reeve

import "time"

// Now is the one place that reads the wall clock. Times are UTC and cut to the millisecond, the precision the store keeps.
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
	return moment(ms)
}

// moment is the nearest point in time that JSON has a name for: the years 1 to 9999. One that has none would make a whole list unreadable.
func moment(ms int64) time.Time {
	return time.UnixMilli(max(-62135596800000, min(ms, 253402300799999))).UTC()
}
