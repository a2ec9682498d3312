package js

import (
	"embed"
	"io/fs"
)

// assets contains the small worker program, if make build put it there.
//
//go:embed asset
var assets embed.FS

// openSmallWorker opens the embedded worker program. It returns fs.ErrNotExist if there is none.
func openSmallWorker() (fs.File, error) { return assets.Open("asset/worker") }
