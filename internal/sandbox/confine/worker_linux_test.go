//go:build amd64 || arm64

package confine

// WorkerIn is like ConfineWorker in a given mode.
var WorkerIn = confineProgram
