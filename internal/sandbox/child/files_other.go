//go:build !linux

package child

// closeFilesOnExec does nothing on this system.
func closeFilesOnExec() {}
