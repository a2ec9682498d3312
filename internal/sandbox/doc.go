// Package sandbox is the room for code that nobody vouches for. Each kind of it has a package of its own below, all of
// the same make: limits go in, results come out, and none knows what a tool is. Package js runs scripts, package py
// Python, and package confine commands. Packages child and lock are the two sides of a worker process, which package
// confine holds like a command.
package sandbox
