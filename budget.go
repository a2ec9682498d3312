package reeve

import "math"

// Amount is a cost in the four things a budget counts.
type Amount struct {
	Calls  int64 `json:"calls,omitempty"`
	Tokens int64 `json:"tokens,omitempty" doc:"Model tokens"`
	Micros int64 `json:"micros,omitempty" doc:"Money, in millionths of the operator's currency"`
	Millis int64 `json:"millis,omitempty" doc:"Time, in milliseconds"`
}

// IsZero tells whether nothing was spent.
func (a Amount) IsZero() bool { return a == Amount{} }

// Plus adds what was spent. What is more than can be counted stays the most that can.
func (a Amount) Plus(b Amount) Amount {
	return Amount{Calls: SaturatingAdd(a.Calls, b.Calls), Tokens: SaturatingAdd(a.Tokens, b.Tokens),
		Micros: SaturatingAdd(a.Micros, b.Micros), Millis: SaturatingAdd(a.Millis, b.Millis)}
}

// Minus is how much more a is than b.
func (a Amount) Minus(b Amount) Amount {
	return Amount{Calls: a.Calls - b.Calls, Tokens: a.Tokens - b.Tokens, Micros: a.Micros - b.Micros,
		Millis: a.Millis - b.Millis}
}

// SaturatingAdd adds two counts without ever passing from the most that can be counted to less than nothing.
func SaturatingAdd(a, b int64) int64 {
	switch {
	case b > 0 && a > math.MaxInt64-b:
		return math.MaxInt64
	case b < 0 && a < math.MinInt64-b:
		return math.MinInt64
	default:
		return a + b
	}
}

// OnExceed is what becomes of a call that would go over budget.
type OnExceed string

// What becomes of a call over budget.
const (
	EndOver  OnExceed = "end"  // refuse it
	ParkOver OnExceed = "park" // ask a person
)

// Budget limits what a subject may spend. A limit of 0 means none. A call draws on its run's budget, on every parent of
// that, on its agent's, and on its workspace's.
type Budget struct {
	Subject  string   `json:"subject" doc:"agent:<id>, run:<id>, or workspace"`
	Parent   string   `json:"parent,omitempty" doc:"Another subject this one draws on"`
	Limit    Amount   `json:"limit"`
	Used     Amount   `json:"used" doc:"What was spent"`
	Reserved Amount   `json:"reserved" doc:"What calls under way may still spend"`
	OnExceed OnExceed `json:"on_exceed"`
}
