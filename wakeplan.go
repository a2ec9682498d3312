package reeve

import "time"

// MaxWakePlan is how far ahead a wake plan may reach.
const MaxWakePlan = 366 * 24 * time.Hour

// WakePlanName is the name of the timer of a planned wake.
const WakePlanName = "Planned wake"

// WakePlan says until when an agent sleeps and when it wakes itself. Until SleepUntil, changes and timers start no runs
// of the agent. At NextWakeAt the agent runs once; if it sleeps then, it runs afterwards.
type WakePlan struct {
	SleepUntil *time.Time `json:"sleep_until,omitempty" doc:"Time until which changes and timers start no runs. People can still wake the agent or write to it"`
	NextWakeAt *time.Time `json:"next_wake_at,omitempty" doc:"Time at which the agent runs once"`
}

// CheckChange returns an error if a time of p that differs from was is not in the future or too far ahead.
func (p WakePlan) CheckChange(was WakePlan, now time.Time) error {
	for _, f := range []struct {
		path    string
		at, was *time.Time
	}{{"/sleep_until", p.SleepUntil, was.SleepUntil}, {"/next_wake_at", p.NextWakeAt, was.NextWakeAt}} {
		switch {
		case f.at == nil || sameInstant(f.at, f.was):
		case !f.at.After(now):
			return InvalidField(f.path, "is not in the future", "a time after "+now.UTC().Format(time.RFC3339))
		case f.at.After(now.Add(MaxWakePlan)):
			return InvalidField(f.path, "is too far ahead", "a time within 366 days")
		}
	}
	return nil
}

// Equal reports whether the plans have the same times.
func (p WakePlan) Equal(q WakePlan) bool {
	return sameInstant(p.SleepUntil, q.SleepUntil) && sameInstant(p.NextWakeAt, q.NextWakeAt)
}

// sameInstant reports whether two times are the same in the store's precision, or both absent.
func sameInstant(a, b *time.Time) bool {
	return (a == nil) == (b == nil) && (a == nil || Millis(*a) == Millis(*b))
}
