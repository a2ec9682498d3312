package files

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"reeve"
)

// The roots of virtual paths.
const (
	sharedRoot = "shared"
	tmpRoot    = "tmp"
	vaultRoot  = "vault"
	// projectRoot is the folder of a conversation's branch, for agents that work on a project.
	projectRoot = "project"
)

const (
	maxPath    = 4096 // bytes of a whole path
	maxName    = 255  // bytes of one name, the limit of common file systems
	maxDepth   = 100  // names in a path; limits the open directories of a walk
	tempPrefix = ".reeve-"
	rootsHint  = "use a path under /shared or /tmp"
	vaultHint  = "copy what you need with vault_copyto to /shared or /tmp, then read it there"
)

// vpath is a parsed virtual path. The zero value is "/", the folder of the roots.
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

// child returns the path of the entry name in the folder v.
func (v vpath) child(name string) vpath {
	if v.root == "" {
		return vpath{root: name}
	}
	return vpath{root: v.root, names: append(v.names[:len(v.names):len(v.names)], name)}
}

// parsePath parses the virtual path s, the value of the argument arg. It checks the syntax and refuses reserved names.
// It does not check that the root or the file exists.
func parsePath(arg, s string) (vpath, error) {
	invalid := func(format string, args ...any) (vpath, error) {
		e := reeve.Errorf(reeve.Validation, format, args...).Hintf(rootsHint)
		e.Fields = []reeve.Field{{Path: "/" + arg, Message: e.Message, Expected: "a path such as /shared/report.txt"}}
		return vpath{}, e
	}
	switch {
	case s == "":
		return invalid("the path is empty")
	case len(s) > maxPath:
		return invalid("the path has %d bytes; the maximum is %d", len(s), maxPath)
	case !utf8.ValidString(s):
		return invalid("the path is not valid UTF-8")
	}
	for _, r := range s {
		// Control characters can change how the rest of the path is displayed, so an approver could read another name.
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return invalid("the path contains the control character %U", r)
		}
	}
	if s[0] != '/' {
		return invalid("the path %q does not begin with /", s)
	}
	var v vpath
	for name := range strings.SplitSeq(s, "/") {
		switch {
		case name == "" || name == ".":
			continue
		case name == "..":
			return vpath{}, reeve.Errorf(reeve.Denied, "the path %q contains \"..\"", s).Hintf(rootsHint)
		case len(name) > maxName:
			return invalid("a name in the path has %d bytes; the maximum is %d", len(name), maxName)
		case v.root == "":
			v.root = name
		default:
			v.names = append(v.names, name)
		}
		if isTempName(name) {
			return vpath{}, reeve.Errorf(reeve.Denied, "the path %q is reserved for temporary files", s).
				Hintf("use a name that does not begin with %q", tempPrefix)
		}
		if v.root == projectRoot && isGitDir(name) {
			return vpath{}, reeve.Errorf(reeve.Denied, "the path %q is in git's own folder", s).
				Hintf("use git with shell_exec; changes by the file tools are committed automatically")
		}
	}
	if len(v.names) > maxDepth {
		return invalid("the path is %d folders deep; the maximum is %d", len(v.names), maxDepth)
	}
	return v, nil
}

// isTempName reports whether a name is that of a temporary file of a call.
func isTempName(name string) bool {
	return len(name) >= len(tempPrefix) && strings.EqualFold(name[:len(tempPrefix)], tempPrefix)
}

// parseReadPath parses a path that an agent may read: "/", or a path in /shared, /tmp or /project.
func parseReadPath(arg, s string) (vpath, error) {
	v, err := parsePath(arg, s)
	if err != nil {
		return v, err
	}
	switch v.root {
	case "", sharedRoot, tmpRoot, projectRoot:
		return v, nil
	case vaultRoot:
		return v, reeve.Errorf(reeve.Denied, "%s is in the vault, which this tool cannot access", v).Hintf(vaultHint)
	}
	return v, reeve.Errorf(reeve.Denied, "there is no root /%s", v.root).Hintf(rootsHint)
}

// parseWritePath parses a path that an agent may change. It is below a root and not a root itself.
func parseWritePath(arg, s string) (vpath, error) {
	v, err := parseReadPath(arg, s)
	if err == nil && len(v.names) == 0 {
		err = reeve.Errorf(reeve.Denied, "%s is a root and cannot be changed", v).Hintf("name a file below it")
	}
	return v, err
}

// parseVaultPath parses the path of a file in the vault.
func parseVaultPath(arg, s string) (vpath, error) {
	v, err := parsePath(arg, s)
	if err == nil && (v.root != vaultRoot || len(v.names) == 0) {
		err = reeve.Errorf(reeve.Denied, "%s is not a file in the vault", v).Hintf("name a file below /vault")
	}
	return v, err
}

// checkWorkspace checks that a workspace id can be the name of a folder.
func checkWorkspace(id string) error {
	plain := id != "" && len(id) <= maxName && utf8.ValidString(id) && id[0] != '.' && !strings.ContainsAny(id, `/\`) &&
		!strings.ContainsFunc(id, unicode.IsControl)
	if !plain {
		return reeve.Errorf(reeve.Denied, "the workspace id %q cannot be used as a folder name", id)
	}
	return nil
}
