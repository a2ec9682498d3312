//go:build !noconsole

package web

import (
	"embed"
	"io/fs"
)

//go:embed all:dist
var dist embed.FS

// Embedded returns the console of this build, or nil if the build tag noconsole left it out.
func Embedded() *Console {
	files, err := fs.Sub(dist, "dist")
	if err != nil {
		return nil
	}
	return New(files)
}
