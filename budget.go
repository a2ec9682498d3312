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

// ModelCost is what a request to a model costs at most.
type ModelCost struct {
	Input       int64   // input tokens, estimated
	Output      int64   // the cap of the answer in tokens; 0 if there is none
	MinOutput   int64   // the lowest cap that is useful; a budget may lower the cap to it
	Thinking    int64   // output tokens that the cap does not limit
	InputPrice  float64 // millionths of the currency per input token; 0 if the price is unknown
	OutputPrice float64 // millionths of the currency per output token; 0 if the price is unknown
	Millis      int64   // time of one try
}

// Amount returns the cost with a cap of the answer.
func (c ModelCost) Amount(output int64) Amount {
	out := SaturatingAdd(c.Thinking, max(0, output))
	micros := math.Ceil(float64(c.Input)*c.InputPrice + float64(out)*c.OutputPrice)
	return Amount{Tokens: SaturatingAdd(c.Input, out), Micros: int64(min(micros, 1<<62)), Millis: c.Millis}
}

// FitOutput returns the highest cap of the answer, up to Output, with which the request costs no more than what is left
// in a budget. If that is less than MinOutput, it returns MinOutput. Units without a limit do not lower the cap.
func (c ModelCost) FitOutput(b Budget) int64 {
	if c.Output == 0 {
		return 0
	}
	output, without := c.Output, c.Amount(0)
	if b.Limit.Tokens > 0 {
		output = min(output, b.Left().Tokens-without.Tokens)
	}
	if b.Limit.Micros > 0 && c.OutputPrice > 0 {
		output = min(output, int64(min(float64(b.Left().Micros-without.Micros)/c.OutputPrice, 1<<62)))
	}
	return max(output, min(c.MinOutput, c.Output))
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

// Left returns what is neither spent nor reserved. It is negative if a budget is exceeded, and has no meaning for units
// without a limit.
func (b Budget) Left() Amount { return b.Limit.Minus(b.Used.Plus(b.Reserved)) }

// IsExhausted reports whether nothing is left of at least one of the limits.
func (b Budget) IsExhausted() bool {
	is := func(used, limit int64) bool { return limit > 0 && used >= limit }
	return is(b.Used.Calls, b.Limit.Calls) || is(b.Used.Tokens, b.Limit.Tokens) ||
		is(b.Used.Micros, b.Limit.Micros) || is(b.Used.Millis, b.Limit.Millis)
}
