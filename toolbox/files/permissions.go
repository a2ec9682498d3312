package files

import (
	"fmt"
	"io/fs"
	"strconv"
)

// Permissions are stored as three octal digits. The setuid, setgid and sticky bits are not stored or restored.

// parsePermissions parses permissions. It returns fallback if mode is empty or invalid.
func parsePermissions(mode string, fallback fs.FileMode) fs.FileMode {
	n, err := strconv.ParseUint(mode, 8, 9)
	if err != nil {
		return fallback
	}
	return fs.FileMode(n)
}

// permissions returns the permissions of the snapshot, or an empty string if they are the defaults or unknown.
func (s snapshot) permissions() string {
	if s.mode == 0 {
		return ""
	}
	return formatPermissions(s.kind, s.mode)
}

// defaultPermissions returns the permissions that this pack gives a new entry.
func defaultPermissions(k kind) fs.FileMode {
	switch k {
	case folder:
		return dirMode
	case program:
		return fileMode | 0o100
	case absent, file, link:
	}
	return fileMode
}

// formatPermissions formats permissions, or returns an empty string if they are the defaults. Inventories of folders
// omit default permissions, so that their hashes equal those of inventories from before permissions were recorded.
func formatPermissions(k kind, mode fs.FileMode) string {
	if mode.Perm() == defaultPermissions(k) {
		return ""
	}
	return fmt.Sprintf("%03o", mode.Perm())
}

// choosePermissions returns the permissions of a file that replaces old: the requested ones, or those of old, or the
// defaults. It sets or clears the execute bits to match executable.
func choosePermissions(requested string, old snapshot, executable bool) fs.FileMode {
	mode := fileMode
	if old.kind != absent {
		mode = old.mode.Perm()
	}
	mode = parsePermissions(requested, mode)
	switch {
	case !executable:
		mode &^= 0o111
	case mode&0o111 == 0:
		mode |= 0o100
	}
	return mode
}
