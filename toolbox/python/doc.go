// Package python is the tool execute_python: code that computes and prints, in a sandbox that has nothing else. It
// changes nothing, so its effect is read, and agents of every kind may have it.
package python
