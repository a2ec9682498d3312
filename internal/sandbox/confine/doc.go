// Package confine runs commands that nobody vouches for, so that the machine stays as it was.
//
// A small program that this one carries along, or else the program itself, is started as the command's sandbox: the
// child builds a world of its own, gives up every right, and only then becomes the command. What holds it is the
// kernel, never a list of bad words:
//
//   - namespaces for users, mounts, processes, network and IPC: it sees its workspace, the system's programs, a fresh
//     /proc and /tmp, and no other process;
//   - Landlock: only the workspace and /tmp can be written;
//   - seccomp: no mounting, tracing, io_uring, keys, new namespaces or odd sockets;
//   - limits on processes, memory, file sizes and processor time, a deadline, and an eye on the disk.
//
// When the first process ends, by itself or at the deadline, all that it started is killed with it, however it
// detached.
//
// Where user namespaces are off, Landlock and seccomp hold alone ([Landlock]). Where they cannot either, nothing is run
// ([Off]), and [Available] says why.
//
// A server that runs as root has its commands run as an unprivileged user, to whom it gives the files of the workspace.
package confine
