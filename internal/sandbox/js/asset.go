package js

import (
	"embed"
	"io/fs"
)

// assets holds the small worker program, if this program was built with it.
//
//go:embed asset
var assets embed.FS

// asset opens the small worker program. An error that is fs.ErrNotExist means that there is none.
func asset() (fs.File, error) { return assets.Open("asset/worker") }
