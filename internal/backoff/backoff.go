// Package backoff says how long to wait before trying again.
package backoff

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"reeve"
)

// Policy is a delay that doubles with each try.
type Policy struct {
	First time.Duration // Default: 10 s, or Max if that is less
	Max   time.Duration // Default: 10 min, or First if that is more
	Tries int           // Default: 5
}

// WithDefaults fills unset fields, keeping First <= Max.
func (b Policy) WithDefaults() Policy {
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

// After is how long to wait after a number of tries.
func (b Policy) After(tries int) time.Duration {
	d := b.First
	for range tries - 1 {
		if d *= 2; d >= b.Max {
			return b.Max
		}
	}
	return min(d, b.Max)
}

// RetryAfter reads a server's Retry-After: a number of units, or an HTTP date. It returns 0 for what cannot be read or
// lies in the past, and at most an hour.
func RetryAfter(said string, unit time.Duration) time.Duration {
	const most = time.Hour
	said = strings.TrimSpace(said)
	n, err := strconv.ParseFloat(said, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		for _, form := range []string{"Mon, 02 Jan 2006 15:04:05 GMT", time.RFC850, time.ANSIC} { // those of HTTP
			if at, err := time.Parse(form, said); err == nil {
				return min(max(at.Sub(reeve.Now()), 0), most)
			}
		}
		return 0
	}
	if !(n > 0) { // NaN too
		return 0
	}
	return time.Duration(min(n*float64(unit), float64(most)))
}
