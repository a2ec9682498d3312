// Package backoff computes delays before retries.
package backoff

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"reeve"
)

// Policy is a delay that doubles with each attempt.
type Policy struct {
	First    time.Duration // delay after the first attempt. Default: 10 s, or Max if that is less
	Max      time.Duration // longest delay. Default: 10 min, or First if that is more
	Attempts int           // number of attempts. Default: 5
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
	if b.Attempts == 0 {
		b.Attempts = 5
	}
	return b
}

// After returns the delay after a number of attempts.
func (b Policy) After(tries int) time.Duration {
	d := b.First
	for range tries - 1 {
		if d *= 2; d >= b.Max {
			return b.Max
		}
	}
	return min(d, b.Max)
}

// RetryAfter parses the value of a Retry-After header: a number of units, or an HTTP date. It returns at most one hour,
// and 0 if the value is not valid or in the past.
func RetryAfter(value string, unit time.Duration) time.Duration {
	const most = time.Hour
	value = strings.TrimSpace(value)
	n, err := strconv.ParseFloat(value, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		// formats of RFC 9110
		for _, layout := range []string{"Mon, 02 Jan 2006 15:04:05 GMT", time.RFC850, time.ANSIC} {
			if at, err := time.Parse(layout, value); err == nil {
				return min(max(at.Sub(reeve.Now()), 0), most)
			}
		}
		return 0
	}
	if !(n > 0) { // the negation covers NaN
		return 0
	}
	return time.Duration(min(n*float64(unit), float64(most)))
}
