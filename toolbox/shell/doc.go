// Package shell contains the tool shell_exec, which runs a bash command line in the workspace's /shared or in a
// project.
//
// Two mechanisms restrict a command. The agent's settings list the programs and operators that it may use. [Pack]
// checks them on the syntax tree before anything runs, so that quoting and spelling make no difference. An allowed
// program can still do anything, so this check is a policy that guides agents, not a security boundary. The security
// boundary is the sandbox of package confine.
//
// With the backend session, the shell of a thread keeps its directory, variables and functions between commands. An
// approval of a command covers the files that the command names; if one changes, the command is refused.
package shell
