package embed

import (
	"context"
	"errors"

	"reeve"
)

// Encoder turns texts into vectors of equal length. Texts of similar meaning have vectors with a high cosine.
type Encoder interface {
	// Model returns the name of the model, to be stored with each vector. Vectors of different models cannot be
	// compared. If the name has changed, encode the texts again.
	Model() string
	// Dimensions returns the length of the vectors.
	Dimensions() int
	// Encode returns a vector of length 1 for each text, in order. It returns all vectors or an error.
	Encode(ctx context.Context, texts []string) ([][]float32, error)
}

// interrupted returns the error for a context that is done, or nil.
func interrupted(ctx context.Context) error {
	switch err := context.Cause(ctx); {
	case ctx.Err() == nil:
		return nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return reeve.Errorf(reeve.Timeout, "the texts were not encoded in time: %w", err)
	default:
		return reeve.Errorf(reeve.Canceled, "the caller cancelled the encoding of texts: %w", err)
	}
}
