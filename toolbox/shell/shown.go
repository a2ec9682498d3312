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

// How much a person is shown of the files that a command names, and how much is looked at.
const (
	mostShown    = 64 << 10  // bytes of one file
	mostShownAll = 160 << 10 // bytes of all
	mostHashed   = 64 << 20  // bytes of a file that is told from others by its content
	mostFiles    = 200       // files that a command names
	mostFolders  = 32        // folders from which names are looked up
)

// script is a file that a command names.
type script struct {
	path   string // in the folder that the command works in
	id     string // what tells it from any other content
	size   int64
	text   []byte // its beginning, if it is text
	binary bool
}

// bound is what a person decides on besides the command: the files that it names, and the shell that it takes up.
type bound struct {
	place string // what the command calls the folder that it works in
	files []script
	shell []byte // the state of the session's shell
	notes []string
	plain bool // nothing that the workspace holds is run
}

// preview shows the files that a command names, which it may run, as they are now. The approval is bound to them.
func (p *Pack) preview(ctx context.Context, inv *reeve.Invocation) (reeve.Preview, error) {
	in, err := reeve.Args[execArgs](inv)
	if err != nil {
		return reeve.Preview{}, err
	}
	s, err := p.read(inv.Config)
	if err != nil {
		return reeve.Preview{}, err
	}
	root := ""
	if s.Project == "" {
		root, err = p.Root(inv.Workspace)
		// it is not made yet
	} else if root, err = p.Projects.ReadFolder(ctx, inv, s.Project); reeve.CodeOf(err) == reeve.Conflict {
		root, err = "", nil
	}
	if err != nil {
		return reeve.Preview{}, err
	}
	b, err := p.bind(ctx, inv, in, s, root)
	return reeve.Preview{Change: b.text(inv.ForApprover), Base: b.base()}, err
}

// unchanged refuses to run a command if what it names is not what a person was shown. A call that nobody decided on
// has no base.
func (p *Pack) unchanged(ctx context.Context, inv *reeve.Invocation, in execArgs, s settings, root string) error {
	if inv.Base == "" {
		return nil
	}
	b, err := p.bind(ctx, inv, in, s, root)
	if err != nil {
		return err
	}
	if b.base() != inv.Base {
		return reeve.Errorf(reeve.Stale,
			"a file that the command names, or its shell, has changed since a person was asked").
			Hintf("make the call again to ask again")
	}
	return nil
}

// bind finds what a command names. An empty root means that the folder is not made yet.
func (p *Pack) bind(ctx context.Context, inv *reeve.Invocation, in execArgs, s settings, root string) (bound, error) {
	b := bound{place: place}
	if s.Project != "" {
		b.place = projectPlace
	}
	start, err := inside(in.Cwd, b.place)
	if err != nil {
		return b, err
	}
	if s.Backend == sessions && p.Shells != nil {
		if b.shell, err = p.Shells.Load(ctx, inv.Workspace, inv.Thread); err != nil {
			return b, err
		}
		if at, ok := lastFolder(b.shell); ok && in.Cwd == "" {
			start = at
		}
	}
	n, err := namedIn(in.Command)
	if err != nil {
		return b, reeve.Errorf(reeve.Validation, "the command cannot be read: %v", err).
			Hintf("check its quotes and brackets")
	}
	if b.plain = n.plain() && len(b.shell) == 0; b.plain {
		return b, nil
	}
	for _, word := range first(n.unclear, 20) {
		b.note("%q: which files this names is known only when it runs", word)
	}
	if len(n.programs) > 0 {
		b.note("what these run or read besides the files above: %s", strings.Join(first(n.programs, 20), ", "))
	}
	if n.setsPath {
		b.note("a variable is set that decides which programs are run")
	}
	if root == "" {
		b.note("the branch's folder is not made yet, so that its files cannot be shown")
		return b, nil
	}
	return b, b.find(ctx, root, start, n)
}

// lastFolder is where the shell of a session is.
func lastFolder(state []byte) (string, bool) {
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
	return literal(c.Args[0])
}

func (b *bound) note(format string, args ...any) {
	b.notes = append(b.notes, fmt.Sprintf(format, args...))
}

func first(list []string, most int) []string { return list[:min(len(list), most)] }

// find looks up what a line names, from the folder that it starts in and from those that it names itself.
func (b *bound) find(ctx context.Context, root, start string, n named) error {
	top, err := os.OpenRoot(root)
	if err != nil {
		return reeve.Errorf(reeve.Unavailable, "the folder that commands work in cannot be opened")
	}
	defer top.Close()
	real, err := filepath.EvalSymlinks(root) // as commands see it that have no namespaces
	if err != nil {
		return reeve.Errorf(reeve.Unavailable, "the folder that commands work in cannot be opened")
	}
	dir, ok := below(start, ".", b.place, real)
	if !ok {
		b.note("the command starts in %q, which is not in %s", start, b.place)
	}
	from := []string{dir}
	seen := map[string]bool{}
	look := func(name string) error {
		if seen[name] || len(seen) > mostFiles*mostFolders {
			return nil
		}
		seen[name] = true
		info, err := top.Stat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ENAMETOOLONG):
			return nil
		case err != nil:
			b.note("%s: this cannot be followed to a file in %s", name, b.place)
			return nil
		case info.IsDir():
			if name != "." && len(from) < mostFolders && !slices.Contains(from, name) {
				from = append(from, name)
				b.note("%s/: only those files in this folder are shown that the command names", name)
			}
			return nil
		case !info.Mode().IsRegular():
			b.note("%s: this is no ordinary file", name)
			return nil
		case len(b.files) == mostFiles:
			return reeve.Errorf(reeve.TooLarge, "the command names more than %d files", mostFiles).
				Hintf("a person could not look at all of them; make more than one command of it")
		}
		f, err := read(ctx, top, name, info)
		if err != nil {
			b.note("%s: this cannot be read", name)
			return nil
		}
		b.files = append(b.files, f)
		return nil
	}
	// Folders that are found while names are looked up are looked from in turn.
	for i := 0; i < len(from); i++ {
		for _, word := range n.words {
			for _, s := range spellings(word) {
				name, ok := below(s, from[i], b.place, real)
				if !ok {
					continue
				}
				if err := look(name); err != nil {
					return err
				}
			}
			for _, name := range obeyed[path.Base(word)] {
				if err := look(path.Join(from[i], name)); err != nil {
					return err
				}
			}
		}
	}
	slices.SortFunc(b.files, func(x, y script) int { return strings.Compare(x.path, y.path) })
	return nil
}

// below turns a name into a path in the folder that commands work in. False means that it is elsewhere.
func below(name, dir, place, real string) (string, bool) {
	rest, home := strings.CutPrefix(name, "~/")
	switch {
	case home:
		name = rest
	case path.IsAbs(name):
		clean := path.Clean(name) + "/"
		rest, ok := strings.CutPrefix(clean, place+"/")
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

// read reads a file: all of it for what tells it from others, and its beginning to be shown.
func read(ctx context.Context, top *os.Root, name string, info fs.FileInfo) (script, error) {
	f := script{path: name, size: info.Size()}
	if f.size > mostHashed {
		f.id, f.binary = fmt.Sprintf("changed %s", info.ModTime().UTC().Format("2006-01-02T15:04:05.999999999Z")), true
		return f, nil
	}
	file, err := top.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return f, err
	}
	defer file.Close()
	hash, head := sha256.New(), &bytes.Buffer{}
	n, err := io.Copy(hash, io.TeeReader(io.LimitReader(file, mostHashed+1), &limited{head, mostShown}))
	if err == nil {
		err = ctx.Err()
	}
	f.size, f.id = n, "sha256 "+hex.EncodeToString(hash.Sum(nil))
	f.text = head.Bytes()
	cut := f.size > int64(len(f.text)) // then it may end within a character
	for n := 0; n < utf8.UTFMax && cut && !utf8.Valid(f.text); n++ {
		f.text = f.text[:len(f.text)-1]
	}
	f.binary = !utf8.Valid(f.text) || bytes.IndexByte(f.text, 0) >= 0
	return f, err
}

// limited keeps the beginning of what is written to it.
type limited struct {
	kept *bytes.Buffer
	most int
}

func (l *limited) Write(b []byte) (int, error) {
	l.kept.Write(b[:min(len(b), l.most-l.kept.Len())])
	return len(b), nil
}

// base names all that the decision is bound to. A command that runs nothing of the workspace's is bound to nothing.
func (b bound) base() string {
	if b.plain {
		return ""
	}
	h := sha256.New()
	for _, f := range b.files {
		fmt.Fprintf(h, "%q %s %d\n", f.path, f.id, f.size)
	}
	fmt.Fprintf(h, "%x", sha256.Sum256(b.shell))
	return "files:" + hex.EncodeToString(h.Sum(nil))
}

// text is what a person is shown. A caller, who has not been let through yet, is shown no content.
func (b bound) text(content bool) string {
	if b.plain {
		return "The command runs no file that " + b.place + " holds.\n"
	}
	var out strings.Builder
	left := mostShownAll
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
		fmt.Fprintf(&out, "The command names no file in %s.\n", b.place)
	} else {
		fmt.Fprintf(&out, "The command names these files in %s, and may run them. ", b.place)
		out.WriteString("If one changes before it runs, nothing is run.\n")
	}
	for _, f := range b.files {
		fmt.Fprintf(&out, "\n%q, %d bytes, %s\n", f.path, f.size, f.id)
		if f.binary {
			out.WriteString("  (not shown: it is no text, or too large)\n")
			continue
		}
		show(f.text, f.size)
	}
	if len(b.shell) > 0 {
		out.WriteString("\nIt goes on with the shell of earlier commands: ")
		out.WriteString("their directory, variables, functions and aliases.\n")
		show(b.shell, int64(len(b.shell)))
	}
	if len(b.notes) > 0 {
		out.WriteString("\nNot known beforehand:\n")
		for _, n := range b.notes {
			out.WriteString("- " + n + "\n")
		}
	}
	return out.String()
}
