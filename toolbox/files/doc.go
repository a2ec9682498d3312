// Package files is the pack of file tools on workspace roots: read, list, search, write, edit, delete, restore, and the
// copy out of the vault.
//
// # Paths
//
// Callers speak virtual paths: /shared and /tmp are read and written, /vault is read by vault_copyto alone, /project is
// the folder of the conversation's branch for agents that work on a project (project.go), and there is nothing else. A
// virtual path is looked up one element at a time, each from the open directory of the one before (see [os.Root]), and
// no symbolic link is ever followed. So a path names one file or none, a directory that is swapped for a link during a
// call leads nowhere, and there is no name for anything outside. Special files are refused before they are opened, and
// opened so that they cannot block. Names that begin with ".reeve-" belong to calls under way: they are neither listed
// nor reachable.
//
// # Changes
//
// A change is made in three steps: the old bytes go to the [Keeper], the new ones to a file beside the target that is
// flushed to disk, and then one rename makes it so. A crash at any point leaves the old file or the new one. States of
// a target have names ("absent", "sha256:…" and so on, see state.go); a preview's base is such a name, a call with
// another base is refused as stale, and after a crash the same names tell whether a change was made. Because a name
// holds the hash under which the old bytes were kept, it is also all that file_restore needs to take the change back.
//
// Changes in one workspace take turns within this process. Against other processes the state is looked at again right
// before the rename; a new file is linked into place, which fails if something came to be there meanwhile.
package files
