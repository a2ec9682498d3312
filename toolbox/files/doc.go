// Package files provides the file tools: read, list, search, write, edit, delete and restore files of a workspace, and
// copy a file out of the vault. [Pack] holds these tools. [Session] holds the tools for files that belong to one
// session and are stored in the database.
//
// The tools are grouped by what they do: reader, editor, deleter, restorer, vaultCopier, and [Streams] for large files.
// Those that change files share fileWriter. All build on workspaceDir (opens paths), projectAccess (opens /project) and
// contentStore (reads content and keeps old content).
//
// # Paths
//
// Tools accept virtual paths. /shared and /tmp can be read and written. /vault can be read by vault_copyto only.
// /project is the folder of the conversation's branch, for agents that work on a project. There are no other roots.
//
// A path is resolved one element at a time, each relative to the open directory before it (see [os.Root]). Symbolic
// links are never followed, so a directory that is replaced by a link during a call cannot lead outside. Special files
// are refused before they are opened, and opened so that they cannot block. Names that begin with ".reeve-" are
// temporary files of running calls. They are not listed and cannot be named by a caller.
//
// # Changes
//
// A change has three steps: store the old bytes in the [BlobStore], write the new bytes to a synced temporary file
// beside the target, and rename the temporary file. A crash at any point leaves either the old file or the new one.
//
// The state of a target is a string such as "absent" or "sha256:…" that identifies its content (see state.go). The base
// of a preview is a state. A call whose base differs from the state on disk fails with Stale. After a crash, states
// show whether the change was made. A state contains the hash of the stored old bytes, so file_restore needs nothing
// else to undo the change.
//
// Within a process, changes in one workspace run one at a time. Other processes can still change a file, so the state
// is compared again right before the rename. A new file is linked into place, which fails if the name is taken.
package files
