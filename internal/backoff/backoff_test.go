package backoff_test

import (
	"testing"
	"time"

	"reeve/internal/backoff"
)

func TestBackoff(t *testing.T) {
	b := backoff.Policy{}.WithDefaults()
	for tries, want := range map[int]time.Duration{1: 10 * time.Second, 2: 20 * time.Second, 3: 40 * time.Second,
		4: 80 * time.Second, 6: 320 * time.Second,
		7: 10 * time.Minute, 50: 10 * time.Minute} {
		if got := b.After(tries); got != want {
			t.Errorf("After(%d) = %s, want %s", tries, got, want)
		}
	}
	for p, want := range map[backoff.Policy]backoff.Policy{
		{}:                              {First: 10 * time.Second, Max: 10 * time.Minute, Attempts: 5},
		{First: time.Hour}:              {First: time.Hour, Max: time.Hour, Attempts: 5},
		{Max: time.Second, Attempts: 2}: {First: time.Second, Max: time.Second, Attempts: 2},
		{First: time.Minute}:            {First: time.Minute, Max: 10 * time.Minute, Attempts: 5},
	} {
		if got := p.WithDefaults(); got != want {
			t.Errorf("%+v.WithDefaults() = %+v, want %+v", p, got, want)
		}
	}
}

// TestRetryAfter checks numbers, HTTP dates and invalid values.
func TestRetryAfter(t *testing.T) {
	for value, want := range map[string]time.Duration{
		"": 0, "soon": 0, "NaN": 0, "-1": 0, "0": 0, " 3 ": 3 * time.Second, "0.5": 500 * time.Millisecond,
		"999999": time.Hour, "1e999": time.Hour, "-1e999": 0, "Inf": time.Hour,
		"Mon, 01 Jan 2001 00:00:00 GMT": 0, "Fri, 01 Jan 2100 00:00:00 GMT": time.Hour,
		"Friday, 01-Jan-60 00:00:00 GMT": time.Hour, "Fri Jan  1 00:00:00 2100": time.Hour,
	} {
		if got := backoff.RetryAfter(value, time.Second); got != want {
			t.Errorf("RetryAfter(%q) = %v, want %v", value, got, want)
		}
	}
	if got := backoff.RetryAfter("250", time.Millisecond); got != 250*time.Millisecond {
		t.Error(got)
	}
}
