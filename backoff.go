package reeve

import "time"

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
