package files

import (
	"fmt"
	"io/fs"
	"strconv"
)

// Permissions are written as three octal digits. What makes a program run as somebody else is not among them, and is
// not brought back.

// permissions reads them; without any they are the usual ones.
func permissions(mode string, usual fs.FileMode) fs.FileMode {
	n, err := strconv.ParseUint(mode, 8, 9)
	if err != nil {
		return usual
	}
	return fs.FileMode(n)
}

// permissions writes those of what was found, if they are known and not the usual ones.
func (f found) permissions() string {
	if f.mode == 0 {
		return ""
	}
	return unusual(f.kind, f.mode)
}

// usual is what this pack gives.
func usual(k kind) fs.FileMode {
	switch k {
	case folder:
		return dirMode
	case program:
		return fileMode | 0o100
	case absent, file, link:
	}
	return fileMode
}

// unusual writes permissions that are not the usual ones. Leaving the others out keeps the names that folders had
// before they were noted.
func unusual(k kind, mode fs.FileMode) string {
	if mode.Perm() == usual(k) {
		return ""
	}
	return fmt.Sprintf("%03o", mode.Perm())
}

// fitting is what a file is to have that takes the place of another: what was asked for, or what the other had, as far
// as that fits one that may be executed, or may not.
func fitting(asked string, old found, executable bool) fs.FileMode {
	mode := fileMode
	if old.kind != absent {
		mode = old.mode.Perm()
	}
	mode = permissions(asked, mode)
	switch {
	case !executable:
		mode &^= 0o111
	case mode&0o111 == 0:
		mode |= 0o100
	}
	return mode
}
