// Package python is the pack of execute_python, which runs Python code in a sandbox without files, network or clock.
// The tool changes nothing, so its effect class is read and agents of every kind may have it.
package python
