package reeve

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// Backoff is a delay that doubles from try to try.
type Backoff struct {
	First time.Duration // Default: 10 s, or Max if that is less
	Max   time.Duration // Default: 10 min, or First if that is more
	Tries int           // Default: 5
}

// WithDefaults says what was left unsaid, by what was said.
func (b Backoff) WithDefaults() Backoff {
	const first, most = 10 * time.Second, 10 * time.Minute
	switch {
	case b.First == 0 && b.Max == 0:
		b.First, b.Max = first, most
	case b.First == 0:
		b.First = min(first, b.Max)
	case b.Max == 0:
		b.Max = max(most, b.First)
	}
	if b.Tries == 0 {
		b.Tries = 5
	}
	return b
}

// After is how long to wait after so many tries.
func (b Backoff) After(tries int) time.Duration {
	d := b.First
	for range tries - 1 {
		if d *= 2; d >= b.Max {
			return b.Max
		}
	}
	return min(d, b.Max)
}

// RetryAfter reads when a server says to try again: in so many units, or at a date. What cannot be read or lies in the past is 0, and an hour is the most: nobody means days.
func RetryAfter(said string, unit time.Duration) time.Duration {
	const most = time.Hour
	said = strings.TrimSpace(said)
	n, err := strconv.ParseFloat(said, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		for _, form := range []string{"Mon, 02 Jan 2006 15:04:05 GMT", time.RFC850, time.ANSIC} { // those of HTTP
			if at, err := time.Parse(form, said); err == nil {
				return min(max(at.Sub(Now()), 0), most)
			}
		}
		return 0
	}
	if !(n > 0) { // NaN too
		return 0
	}
	return time.Duration(min(n*float64(unit), float64(most)))
}
