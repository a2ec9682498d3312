package shell

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"

	"reeve"
)

// Limits of what is read and shown of the files that a command names.
const (
	maxShownFile  = 64 << 10  // bytes of one file
	maxShownTotal = 160 << 10 // bytes of all files
	maxHashed     = 64 << 20  // bytes of a file; larger files are identified by time instead of hash
	maxFiles      = 200       // files that a command may name
	maxFolders    = 32        // folders in which names are looked up
)

// namedFile is a file that a command names.
type namedFile struct {
	path   string // relative to the working folder
	id     string // identifies the content
	size   int64
	text   []byte // the beginning, if the file is text
	binary bool
}

// approvalBase is what an approval covers besides the command: the files that the command names and the state of its
// shell.
type approvalBase struct {
	mount       string // the working folder as the command sees it
	files       []namedFile
	shell       []byte // the state of the shell session
	notes       []string
	runsNoFiles bool // the command executes no file of the workspace
}

// preview shows the files that a command names, and may execute, as they are now. The approval is valid only for these
// contents.
func (p *Pack) preview(ctx context.Context, inv *reeve.Invocation) (reeve.Preview, error) {
	in, err := reeve.Args[execArgs](inv)
	if err != nil {
		return reeve.Preview{}, err
	}
	s, err := p.readSettings(inv.Config)
	if err != nil {
		return reeve.Preview{}, err
	}
	root := ""
	if s.Project == "" {
		root, err = p.Root(inv.Workspace)
		// not created yet
	} else if root, err = p.Projects.ReadFolder(ctx, inv, s.Project); reeve.CodeOf(err) == reeve.Conflict {
		root, err = "", nil
	}
	if err != nil {
		return reeve.Preview{}, err
	}
	b, err := p.collectBase(ctx, inv, in, s, root)
	return reeve.Preview{Change: b.render(inv.ForApprover), Base: b.hash()}, err
}

// checkUnchanged refuses to run a command if the files that it names differ from those that a person approved. A call
// that needed no approval has no base.
func (p *Pack) checkUnchanged(ctx context.Context, inv *reeve.Invocation, in execArgs, s settings, root string) error {
	if inv.Base == "" {
		return nil
	}
	b, err := p.collectBase(ctx, inv, in, s, root)
	if err != nil {
		return err
	}
	if b.hash() != inv.Base {
		return reeve.Errorf(reeve.Stale,
			"a file that the command names, or its shell, has changed since the approval was requested").
			Hintf("make the call again to request a new approval")
	}
	return nil
}

// collectBase returns what an approval of a command covers. An empty root means that the folder does not exist yet.
func (p *Pack) collectBase(ctx context.Context, inv *reeve.Invocation, in execArgs, s settings,
	root string) (approvalBase, error) {
	b := approvalBase{mount: sharedMount}
	if s.Project != "" {
		b.mount = projectMount
	}
	start, err := relativeDir(in.Cwd, b.mount)
	if err != nil {
		return b, err
	}
	if s.Backend == sessionBackend && p.Shells != nil {
		if b.shell, err = p.Shells.Load(ctx, inv.Workspace, inv.Thread); err != nil {
			return b, err
		}
		if at, ok := sessionFolder(b.shell); ok && in.Cwd == "" {
			start = at
		}
	}
	n, err := parseNames(in.Command)
	if err != nil {
		return b, reeve.Errorf(reeve.Validation, "command cannot be parsed: %v", err).
			Hintf("check the quotes and brackets")
	}
	if b.runsNoFiles = n.runsNoFiles() && len(b.shell) == 0; b.runsNoFiles {
		return b, nil
	}
	for _, word := range firstN(n.dynamicWords, 20) {
		b.note("%q: the files that this names are known only when the command runs", word)
	}
	if len(n.programs) > 0 {
		b.note("the files that these programs run or read in addition: %s", strings.Join(firstN(n.programs, 20), ", "))
	}
	if n.setsPath {
		b.note("the command sets a variable that decides which programs run")
	}
	if root == "" {
		b.note("the folder of the branch does not exist yet, so its files cannot be shown")
		return b, nil
	}
	return b, b.findFiles(ctx, root, start, n)
}

// sessionFolder returns the current folder of a shell session.
func sessionFolder(state []byte) (string, bool) {
	_, rest, ok := bytes.Cut(state, []byte("__reeve_cd="))
	if !ok {
		return "", false
	}
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	file, err := parse(string(line))
	if err != nil || len(file.Stmts) != 1 {
		return "", false
	}
	c, ok := file.Stmts[0].Cmd.(*syntax.CallExpr)
	if !ok || len(c.Args) != 1 {
		return "", false
	}
	return literalText(c.Args[0])
}

func (b *approvalBase) note(format string, args ...any) {
	b.notes = append(b.notes, fmt.Sprintf(format, args...))
}

func firstN(list []string, n int) []string { return list[:min(len(list), n)] }

// findFiles looks up the names of a line in the start folder and in the folders that the line names.
func (b *approvalBase) findFiles(ctx context.Context, root, start string, n commandNames) error {
	top, err := os.OpenRoot(root)
	if err != nil {
		return reeve.Errorf(reeve.Unavailable, "working folder cannot be opened")
	}
	defer top.Close()
	real, err := filepath.EvalSymlinks(root) // the path that commands see without mount namespaces
	if err != nil {
		return reeve.Errorf(reeve.Unavailable, "working folder cannot be opened")
	}
	dir, ok := workPath(start, ".", b.mount, real)
	if !ok {
		b.note("the command starts in %q, which is not in %s", start, b.mount)
	}
	from := []string{dir}
	seen := map[string]bool{}
	look := func(name string) error {
		if seen[name] || len(seen) > maxFiles*maxFolders {
			return nil
		}
		seen[name] = true
		info, err := top.Stat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ENAMETOOLONG):
			return nil
		case err != nil:
			b.note("%s: this does not lead to a file in %s", name, b.mount)
			return nil
		case info.IsDir():
			if name != "." && len(from) < maxFolders && !slices.Contains(from, name) {
				from = append(from, name)
				b.note("%s/: only the files in this folder that the command names are shown", name)
			}
			return nil
		case !info.Mode().IsRegular():
			b.note("%s: this is not a regular file", name)
			return nil
		case len(b.files) == maxFiles:
			return reeve.Errorf(reeve.TooLarge, "the command names more than %d files", maxFiles).
				Hintf("split the command, so that a person can review the files")
		}
		f, err := readNamedFile(ctx, top, name, info)
		if err != nil {
			b.note("%s: this cannot be read", name)
			return nil
		}
		b.files = append(b.files, f)
		return nil
	}
	// from grows during the loop: look appends the folders that it finds.
	for i := 0; i < len(from); i++ {
		for _, word := range n.words {
			for _, s := range candidateNames(word) {
				name, ok := workPath(s, from[i], b.mount, real)
				if !ok {
					continue
				}
				if err := look(name); err != nil {
					return err
				}
			}
			for _, name := range implicitFiles[path.Base(word)] {
				if err := look(path.Join(from[i], name)); err != nil {
					return err
				}
			}
		}
	}
	slices.SortFunc(b.files, func(x, y namedFile) int { return strings.Compare(x.path, y.path) })
	return nil
}

// workPath converts a name to a path in the working folder. It returns false for a path outside.
func workPath(name, dir, mount, real string) (string, bool) {
	rest, home := strings.CutPrefix(name, "~/")
	switch {
	case home:
		name = rest
	case path.IsAbs(name):
		clean := path.Clean(name) + "/"
		rest, ok := strings.CutPrefix(clean, mount+"/")
		if !ok {
			rest, ok = strings.CutPrefix(clean, real+"/")
		}
		if !ok {
			return "", false
		}
		name = strings.TrimSuffix(rest, "/")
	default:
		name = path.Join(dir, name)
	}
	name = path.Clean(name)
	return name, name != ".." && !strings.HasPrefix(name, "../") && len(name) < 4096
}

// readNamedFile hashes a file and returns its beginning.
func readNamedFile(ctx context.Context, top *os.Root, name string, info fs.FileInfo) (namedFile, error) {
	f := namedFile{path: name, size: info.Size()}
	if f.size > maxHashed {
		f.id, f.binary = fmt.Sprintf("changed %s", info.ModTime().UTC().Format("2006-01-02T15:04:05.999999999Z")), true
		return f, nil
	}
	file, err := top.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return f, err
	}
	defer file.Close()
	hash, head := sha256.New(), &bytes.Buffer{}
	n, err := io.Copy(hash, io.TeeReader(io.LimitReader(file, maxHashed+1), &headWriter{head, maxShownFile}))
	if err == nil {
		err = ctx.Err()
	}
	f.size, f.id = n, "sha256 "+hex.EncodeToString(hash.Sum(nil))
	f.text = head.Bytes()
	cut := f.size > int64(len(f.text)) // the text may then end inside a character
	for n := 0; n < utf8.UTFMax && cut && !utf8.Valid(f.text); n++ {
		f.text = f.text[:len(f.text)-1]
	}
	f.binary = !utf8.Valid(f.text) || bytes.IndexByte(f.text, 0) >= 0
	return f, err
}

// headWriter keeps the first max bytes that are written to it.
type headWriter struct {
	buf *bytes.Buffer
	max int
}

func (l *headWriter) Write(b []byte) (int, error) {
	l.buf.Write(b[:min(len(b), l.max-l.buf.Len())])
	return len(b), nil
}

// hash identifies everything that the approval covers. It is empty for a command that runs no file of the workspace.
func (b approvalBase) hash() string {
	if b.runsNoFiles {
		return ""
	}
	h := sha256.New()
	for _, f := range b.files {
		fmt.Fprintf(h, "%q %s %d\n", f.path, f.id, f.size)
	}
	fmt.Fprintf(h, "%x", sha256.Sum256(b.shell))
	return "files:" + hex.EncodeToString(h.Sum(nil))
}

// render returns the preview text. It contains file contents only if content is true, which is the case for a person
// who decides, not for the caller.
func (b approvalBase) render(content bool) string {
	if b.runsNoFiles {
		return "The command runs no file in " + b.mount + ".\n"
	}
	var out strings.Builder
	left := maxShownTotal
	show := func(text []byte, size int64) {
		if !content {
			return
		}
		text = text[:min(len(text), left)]
		left -= len(text)
		for line := range strings.Lines(strings.ToValidUTF8(string(text), "\uFFFD")) {
			out.WriteString("  | " + strings.TrimSuffix(line, "\n") + "\n")
		}
		if rest := size - int64(len(text)); rest > 0 {
			fmt.Fprintf(&out, "  (%d bytes more are not shown; read the file before you decide)\n", rest)
		}
	}
	if len(b.files) == 0 {
		fmt.Fprintf(&out, "The command names no file in %s.\n", b.mount)
	} else {
		fmt.Fprintf(&out, "The command names these files in %s and may run them. ", b.mount)
		out.WriteString("If one of them changes before the command starts, the command is refused.\n")
	}
	for _, f := range b.files {
		fmt.Fprintf(&out, "\n%q, %d bytes, %s\n", f.path, f.size, f.id)
		if f.binary {
			out.WriteString("  (not shown: not text, or too large)\n")
			continue
		}
		show(f.text, f.size)
	}
	if len(b.shell) > 0 {
		out.WriteString("\nThe command continues the shell of earlier commands: ")
		out.WriteString("its directory, variables, functions and aliases.\n")
		show(b.shell, int64(len(b.shell)))
	}
	if len(b.notes) > 0 {
		out.WriteString("\nNot known in advance:\n")
		for _, n := range b.notes {
			out.WriteString("- " + n + "\n")
		}
	}
	return out.String()
}
