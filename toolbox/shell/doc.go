// Package shell is the tool shell_exec: a command line, run in the workspace's /shared by a shell that the kernel
// confines.
//
// Two things judge a command. The agent's settings say which programs and which operators it may use; that is read off
// the syntax tree before anything runs, so it cannot be fooled by spelling, but a program that is allowed can do what
// it likes. So it is policy, for keeping agents on their path. What keeps the machine safe is package confine.
package shell
