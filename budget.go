package reeve

import "math"

// Amount is a cost in the four units that budgets count.
type Amount struct {
	Calls  int64 `json:"calls,omitempty"`
	Tokens int64 `json:"tokens,omitempty" doc:"Model tokens"`
	Micros int64 `json:"micros,omitempty" doc:"Money in millionths of the operator's currency"`
	Millis int64 `json:"millis,omitempty" doc:"Time in milliseconds"`
}

// IsZero reports whether all four units are zero.
func (a Amount) IsZero() bool { return a == Amount{} }

// Plus returns a + b. Each unit saturates at the limits of int64.
func (a Amount) Plus(b Amount) Amount {
	return Amount{Calls: SaturatingAdd(a.Calls, b.Calls), Tokens: SaturatingAdd(a.Tokens, b.Tokens),
		Micros: SaturatingAdd(a.Micros, b.Micros), Millis: SaturatingAdd(a.Millis, b.Millis)}
}

// Minus returns a - b.
func (a Amount) Minus(b Amount) Amount {
	return Amount{Calls: a.Calls - b.Calls, Tokens: a.Tokens - b.Tokens, Micros: a.Micros - b.Micros,
		Millis: a.Millis - b.Millis}
}

// SaturatingAdd returns a + b, or the nearest int64 if the sum overflows.
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

// OnExceed says what happens to a call that would exceed a budget.
type OnExceed string

// The values of OnExceed.
const (
	EndOverBudget  OnExceed = "end"  // refuse the call
	ParkOverBudget OnExceed = "park" // park the call until a person approves it
)

// Budget limits what a subject may spend. A limit of 0 means no limit. A call is charged to the budgets of its run, of
// its agent, of its workspace, and of all their parents.
type Budget struct {
	Subject  string   `json:"subject" doc:"agent:<id>, run:<id>, or workspace"`
	Parent   string   `json:"parent,omitempty" doc:"Subject whose budget is charged too"`
	Limit    Amount   `json:"limit"`
	Used     Amount   `json:"used" doc:"Amount spent"`
	Reserved Amount   `json:"reserved" doc:"Amount reserved for running calls"`
	OnExceed OnExceed `json:"on_exceed"`
}
