package files

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"reeve"
)

// The roots of a workspace.
const (
	sharedRoot = "shared"
	tmpRoot    = "tmp"
	vaultRoot  = "vault"
	// projectRoot is the folder of a conversation's branch, for agents that work on a project.
	projectRoot = "project"
)

const (
	maxPath    = 4096 // bytes of a whole path
	maxName    = 255  // bytes of one name: what file systems hold
	maxDepth   = 100  // names in a path, so that a walk holds a bounded number of open directories
	ownPrefix  = ".reeve-"
	rootsHint  = "use a path under /shared or /tmp"
	secretHint = "copy what you need with vault_copyto to /shared or /tmp, then read it there"
)

// vpath is a virtual path, checked and taken apart. The zero value is "/", which holds the roots.
type vpath struct {
	root  string
	names []string
}

func (v vpath) String() string {
	if v.root == "" {
		return "/"
	}
	return "/" + strings.Join(append([]string{v.root}, v.names...), "/")
}

// child is the path of an entry.
func (v vpath) child(name string) vpath {
	if v.root == "" {
		return vpath{root: name}
	}
	return vpath{root: v.root, names: append(v.names[:len(v.names):len(v.names)], name)}
}

// parsePath reads what a caller gave as the argument arg. It says nothing of whether the file is there, and everything
// of whether it may be named.
func parsePath(arg, s string) (vpath, error) {
	wrong := func(format string, args ...any) (vpath, error) {
		e := reeve.Errorf(reeve.Validation, format, args...).Hintf(rootsHint)
		e.Fields = []reeve.Field{{Path: "/" + arg, Message: e.Message, Expected: "a path such as /shared/report.txt"}}
		return vpath{}, e
	}
	switch {
	case s == "":
		return wrong("the path is empty")
	case len(s) > maxPath:
		return wrong("the path is %d bytes long; %d are allowed", len(s), maxPath)
	case !utf8.ValidString(s):
		return wrong("the path is not valid UTF-8")
	}
	for _, r := range s {
		// Characters that change how the rest is shown could make an approver read another name.
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return wrong("the path holds the control character %U", r)
		}
	}
	if s[0] != '/' {
		return wrong("the path %q does not begin with /", s)
	}
	var v vpath
	for name := range strings.SplitSeq(s, "/") {
		switch {
		case name == "" || name == ".":
			continue
		case name == "..":
			return vpath{}, reeve.Errorf(reeve.Denied, "the path %q goes up with \"..\"", s).Hintf(rootsHint)
		case len(name) > maxName:
			return wrong("a name in the path is %d bytes long; %d are allowed", len(name), maxName)
		case v.root == "":
			v.root = name
		default:
			v.names = append(v.names, name)
		}
		if isOwn(name) {
			return vpath{}, reeve.Errorf(reeve.Denied, "the path %q names a file of Reeve's own", s).
				Hintf("names that begin with %q are taken", ownPrefix)
		}
		if v.root == projectRoot && isGit(name) {
			return vpath{}, reeve.Errorf(reeve.Denied, "the path %q is git's own", s).
				Hintf("commands (shell_exec) work with git; what you change is committed by itself")
		}
	}
	if len(v.names) > maxDepth {
		return wrong("the path is %d names deep; %d are allowed", len(v.names), maxDepth)
	}
	return v, nil
}

// isOwn reports whether a name belongs to a running call.
func isOwn(name string) bool {
	return len(name) >= len(ownPrefix) && strings.EqualFold(name[:len(ownPrefix)], ownPrefix)
}

// openPath reads a path under the roots that an agent may look into. "/" is one.
func openPath(arg, s string) (vpath, error) {
	v, err := parsePath(arg, s)
	if err != nil {
		return v, err
	}
	switch v.root {
	case "", sharedRoot, tmpRoot, projectRoot:
		return v, nil
	case vaultRoot:
		return v, reeve.Errorf(reeve.Denied, "%s is in the vault, which this tool does not reach", v).Hintf(secretHint)
	}
	return v, reeve.Errorf(reeve.Denied, "there is no root /%s", v.root).Hintf(rootsHint)
}

// targetPath reads the path of something that an agent may change: below a root, never a root itself.
func targetPath(arg, s string) (vpath, error) {
	v, err := openPath(arg, s)
	if err == nil && len(v.names) == 0 {
		err = reeve.Errorf(reeve.Denied, "%s is a root and stays as it is", v).Hintf("name a file below it")
	}
	return v, err
}

// vaultPath reads the path of a file in the vault.
func vaultPath(arg, s string) (vpath, error) {
	v, err := parsePath(arg, s)
	if err == nil && (v.root != vaultRoot || len(v.names) == 0) {
		err = reeve.Errorf(reeve.Denied, "%s is not a file in the vault", v).Hintf("name a file below /vault")
	}
	return v, err
}

// checkWorkspace refuses a workspace id that is not the plain name of a folder: the id becomes one.
func checkWorkspace(id string) error {
	plain := id != "" && len(id) <= maxName && utf8.ValidString(id) && id[0] != '.' && !strings.ContainsAny(id, `/\`) &&
		!strings.ContainsFunc(id, unicode.IsControl)
	if !plain {
		return reeve.Errorf(reeve.Denied, "the workspace id %q cannot name a folder", id)
	}
	return nil
}
