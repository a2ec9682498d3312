package model

import (
	"context"
	"log/slog"
	"time"

	"reeve"
)

// maxTokenCount is more than the tokens of any request or answer.
const maxTokenCount = 1_000_000_000_000

// tokensOf estimates the tokens of a text of a number of bytes: four bytes per token.
func tokensOf(bytes int) int64 { return int64(bytes+3) / 4 }

type usageCounter struct {
	model Model
	log   *slog.Logger
}

// CountUsage returns a Model whose answers always have a plausible Usage. It estimates counts that the model does not
// report, counts that are implausible, and those of an answer that was aborted after its first delta.
func CountUsage(m Model, log *slog.Logger) Model { return usageCounter{m, log} }

// Answer implements Model.
func (m usageCounter) Answer(ctx context.Context, r Request, watch func(Delta)) (Answer, error) {
	streamed := 0 // bytes
	a, err := m.model.Answer(ctx, r, func(d Delta) {
		streamed += len(d.Text)
		if watch != nil {
			watch(d)
		}
	})
	estimate := Usage{Input: r.estimateTokens(), Output: tokensOf(streamed), Estimated: true}
	switch {
	case err == nil:
		estimate.Output = a.estimateTokens()
	case a.Usage != (Usage{}): // a complete but invalid answer
	case streamed == 0:
		return Answer{}, err
	default: // the model has read the request and answered in part
		return Answer{Usage: estimate}, err
	}
	estimate.Micros = max(0, a.Usage.Micros)
	u := &a.Usage
	switch {
	case !u.isPlausible():
		m.log.Warn("implausible token counts; charging an estimate", "model", r.Model, "input", u.Input, "output",
			u.Output, "estimate", estimate.Input+estimate.Output)
		*u = estimate
	case u.Input == 0 && u.Output == 0:
		*u = estimate
	case u.Input == 0:
		u.Input, u.Estimated = estimate.Input, true
	case u.Output == 0 && estimate.Output > 0:
		u.Output, u.Estimated = estimate.Output, true
	}
	return a, err
}

// isPlausible reports whether all counts are in range.
func (u Usage) isPlausible() bool {
	return sumCounts(u.Input, u.Output, u.CacheRead, u.CacheWrite, u.Reasoning) >= 0 && u.Micros >= 0
}

// sumCounts adds counts. It returns -1 if one of them is out of range.
func sumCounts(counts ...int64) (sum int64) {
	for _, n := range counts {
		if n < 0 || n > maxTokenCount {
			return -1
		}
		sum += n
	}
	return sum
}

// Estimated tokens of a file in a request.
const (
	imageTokens      = 1600 // an image, which providers scale down
	fileBytesPerUnit = 64   // bytes of a PDF, audio or video file per token
)

// estimateTokens estimates the tokens of a request: one for every four bytes of text, 1600 for an image, and for other
// files one for every 64 bytes but at least 1600.
func (r Request) estimateTokens() int64 {
	bytes, media := len(r.System), int64(0)
	for _, m := range r.Messages {
		for _, p := range m.Parts {
			bytes += len(p.Text) + len(p.Args)
			if p.Type != Media {
				continue
			}
			switch mediaKind(p) {
			case textMedia:
				bytes += len(p.Data)
			case imageMedia:
				media += imageTokens
			case pdfMedia, audioMedia, videoMedia, otherMedia:
				media += max(imageTokens, int64(len(p.Data)/fileBytesPerUnit))
			}
		}
	}
	for _, t := range r.Tools {
		bytes += len(t.Description) + len(t.Parameters)
	}
	return tokensOf(bytes) + media
}

// estimateTokens estimates the tokens of an answer.
func (a Answer) estimateTokens() int64 {
	bytes := 0
	for _, p := range a.Parts {
		bytes += len(p.Text) + len(p.Args)
	}
	return tokensOf(bytes)
}

// MinOutput is the lowest cap of an answer that a budget may impose.
const MinOutput = 256

// coster is a Model that knows more of the cost of a request than its text tells.
type coster interface {
	addPrices(r Request, c *reeve.ModelCost)
}

// EstimateCost returns the most that a request costs: its input by the rule of estimateTokens, the cap of its answer
// (Request.MaxTokens), the price if the model is known and priced, and the time of one try.
func EstimateCost(m Model, r Request) reeve.ModelCost {
	// MaxTokens comes from the client and may be any number.
	c := reeve.ModelCost{Input: r.estimateTokens(), Output: max(0, int64(r.MaxTokens)), MinOutput: MinOutput,
		Millis: tryTimeout.Milliseconds()}
	if priced, ok := m.(coster); ok {
		priced.addPrices(r, &c)
	}
	return c
}

// LimitOutput lowers MaxTokens to a cap. A cap of 0 means none.
func (r *Request) LimitOutput(limit int64) {
	if limit > 0 && limit < int64(r.MaxTokens) {
		r.MaxTokens = int(limit)
	}
}

// Cost returns the cost of an answer that took the given time.
func (u Usage) Cost(took time.Duration) reeve.Amount {
	return reeve.Amount{Tokens: reeve.SaturatingAdd(u.Input, u.Output), Micros: u.Micros,
		Millis: max(1, took.Milliseconds())}
}
