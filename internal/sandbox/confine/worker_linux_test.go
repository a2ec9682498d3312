//go:build amd64 || arm64

package confine

// WorkerIn is Worker in a mode of the test's choice.
var WorkerIn = confineProgram
