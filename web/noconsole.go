//go:build noconsole

package web

// Embedded returns the console of this build, or nil if the build tag noconsole left it out.
func Embedded() *Console { return nil }
