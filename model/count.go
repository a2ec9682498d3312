package model

import (
	"context"
	"log/slog"
	"time"

	"reeve"
)

// mostTokens is more than any answer can have read, or written.
const mostTokens = 1_000_000_000_000

// tokens is how many a text of so many bytes has, where nobody has counted: four bytes to each.
func tokens(bytes int) int64 { return int64(bytes+3) / 4 }

type counted struct {
	model Model
	log   *slog.Logger
}

// CountUsage makes sure that an answer costs something, and something that can be true. Where a model does not say what
// it read and wrote, says nonsense, or was given up in the middle of its answer, an estimate stands in.
func CountUsage(m Model, log *slog.Logger) Model { return counted{m, log} }

// Answer implements Model.
func (m counted) Answer(ctx context.Context, r Request, watch func(Delta)) (Answer, error) {
	heard := 0
	a, err := m.model.Answer(ctx, r, func(d Delta) {
		heard += len(d.Text)
		if watch != nil {
			watch(d)
		}
	})
	guess := Usage{Input: r.tokens(), Output: tokens(heard), Estimated: true}
	switch {
	case err == nil:
		guess.Output = a.tokens()
	case a.Usage != (Usage{}): // it came to its end, and makes no sense
	case heard == 0:
		return Answer{}, err
	default: // it was read, and answered in part
		return Answer{Usage: guess}, err
	}
	guess.Micros = max(0, a.Usage.Micros)
	u := &a.Usage
	switch {
	case !u.possible():
		m.log.Warn("a model's count of its tokens cannot be true, so an estimate is charged", "model", r.Model, "input",
			u.Input, "output", u.Output, "estimate", guess.Input+guess.Output)
		*u = guess
	case u.Input == 0 && u.Output == 0:
		*u = guess
	case u.Input == 0:
		u.Input, u.Estimated = guess.Input, true
	case u.Output == 0 && guess.Output > 0:
		u.Output, u.Estimated = guess.Output, true
	}
	return a, err
}

// possible tells whether counts can be true.
func (u Usage) possible() bool {
	return total(u.Input, u.Output, u.CacheRead, u.CacheWrite, u.Reasoning) >= 0 && u.Micros >= 0
}

// total adds counts of a provider's. Where one cannot be true, neither can the sum: it is less than nothing.
func total(counts ...int64) (sum int64) {
	for _, n := range counts {
		if n < 0 || n > mostTokens {
			return -1
		}
		sum += n
	}
	return sum
}

// tokens is how many a model has to read of a request, by an estimate.
func (r Request) tokens() int64 {
	bytes := len(r.System)
	for _, m := range r.Messages {
		for _, p := range m.Parts {
			bytes += len(p.Text) + len(p.Args)
		}
	}
	for _, t := range r.Tools {
		bytes += len(t.Description) + len(t.Parameters)
	}
	return tokens(bytes)
}

// tokens is how many a model has written, by an estimate.
func (a Answer) tokens() int64 {
	bytes := 0
	for _, p := range a.Parts {
		bytes += len(p.Text) + len(p.Args)
	}
	return tokens(bytes)
}

// EstimateCost is what a question may cost, as far as can be told before it is asked: what is read by an estimate, what
// is written only where that is limited, and the time of one try.
func (r Request) EstimateCost() reeve.Amount {
	// who asks may say any number
	return reeve.Amount{Tokens: reeve.SaturatingAdd(r.tokens(), max(0, int64(r.MaxTokens))),
		Millis: tryLimit.Milliseconds()}
}

// Cost is what an answer cost that took so long.
func (u Usage) Cost(took time.Duration) reeve.Amount {
	return reeve.Amount{Tokens: reeve.SaturatingAdd(u.Input, u.Output), Micros: u.Micros,
		Millis: max(1, took.Milliseconds())}
}
