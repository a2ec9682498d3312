// Package confine runs untrusted commands without harm to the machine.
//
// [Run] starts a small embedded program, or else the running program again, as the command's sandbox. That process
// (package cell) sets up its restrictions, gives up all privileges, and then executes the command. The kernel enforces
// the restrictions; the package does not inspect what the command does:
//
//   - Namespaces for users, mounts, processes, network and IPC: the command sees its workspace, the system's programs,
//     a private /proc and /tmp, and no other process.
//   - Landlock: the command can write only the workspace and /tmp.
//   - Seccomp: no mounting, tracing, io_uring, keys, new namespaces or unusual sockets.
//   - Limits on processes, memory, file sizes, processor time, total time and disk usage.
//
// When the first process ends, by itself or at the time limit, all processes that it started are killed too, even if
// they detached from it.
//
// Where user namespaces are disabled, only Landlock and seccomp confine a command ([Landlock]). Where these are missing
// too, nothing is run ([Off]). [Available] returns the mode and the reason.
//
// If the server runs as root, commands run as an unprivileged user, and the server changes the owner of the workspace's
// files to that user.
package confine
