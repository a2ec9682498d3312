package files

import (
	"context"
	"fmt"
	"path"
	"sort"
	"strings"
	"unicode/utf8"

	"reeve"
	"reeve/internal/store"
)

// Session is the pack of tools for session files. Session files are stored in the database and survive a restart. Each
// session sees only its own files.
type Session struct{ DB *store.DB }

const (
	maxSessionFile  = 1 << 20 // bytes of one session file
	maxSessionPath  = 512     // bytes of its path
	maxSessionFiles = 5000    // files that one listing reads
)

type sessionRead struct {
	Path string `json:"path" doc:"Path of the file, such as /notes/today.txt" minLength:"1" maxLength:"512"`
}

type sessionWrite struct {
	Path    string `json:"path" doc:"Path of the file. Missing folders are created" minLength:"1" maxLength:"512"`
	Content string `json:"content" doc:"Whole content of the file, at most 1 MiB"`
}

type sessionList struct {
	Path string `json:"path,omitempty" doc:"Folder to list. Default: /" default:"/" maxLength:"512"`
}

// Tools returns read_file, write_file and list_files.
func (s *Session) Tools() []reeve.Tool {
	return []reeve.Tool{
		reeve.MustTool(reeve.Tool{ID: "read_file", Name: "Read File", Category: "filesystem", Pack: "session",
			Effect: reeve.Read, TimeoutMS: 10_000,
			Description: "Read a file that write_file wrote in this session. Returns its content."}, s.read),
		reeve.MustTool(reeve.Tool{ID: "write_file", Name: "Write File", Category: "filesystem", Pack: "session",
			Effect: reeve.Local, Risk: reeve.LowRisk,
			TimeoutMS: 10_000, Identity: []string{"path"},
			Description: "Write a file of this session, replacing an existing one. Other sessions cannot see the " +
				"file."}, s.write),
		reeve.MustTool(reeve.Tool{ID: "list_files", Name: "List Files", Category: "filesystem", Pack: "session",
			Effect: reeve.Read, TimeoutMS: 10_000,
			Description: "List the files and folders of this session, with sizes."}, s.list),
	}
}

func (s *Session) read(ctx context.Context, in sessionRead) (string, error) {
	name, err := parseSessionPath(in.Path)
	if err != nil {
		return "", err
	}
	inv := reeve.InvocationFrom(ctx)
	var body []byte
	err = s.DB.View(ctx, func(snap *store.Snap) error {
		b, ok, err := snap.Chat().GetSessionFile(ctx, inv.Workspace, inv.Session, name)
		if err == nil && !ok {
			return reeve.Errorf(reeve.ToolFailed, "file not found: %s", name).Hintf("list the files with list_files")
		}
		body = b
		return err
	})
	return string(body), err
}

func (s *Session) write(ctx context.Context, in sessionWrite) (string, error) {
	name, err := parseSessionPath(in.Path)
	if err != nil {
		return "", err
	}
	if len(in.Content) > maxSessionFile {
		return "", reeve.Errorf(reeve.TooLarge, "the content has %d bytes; a session file holds at most %d",
			len(in.Content), maxSessionFile)
	}
	if err := checkNoNUL("/content", in.Content); err != nil {
		return "", err
	}
	tx, err := store.TxFrom(ctx)
	if err != nil {
		return "", err
	}
	inv := reeve.InvocationFrom(ctx)
	if err := tx.Chat().PutSessionFile(ctx, inv.Workspace, inv.Session, name, []byte(in.Content)); err != nil {
		return "", err
	}
	inv.Emit(reeve.SemanticKey, "SESSION_FILE")
	inv.Emit(reeve.EntityID, inv.Session+name)
	return fmt.Sprintf("Wrote %s (%d bytes)", name, len(in.Content)), nil
}

func (s *Session) list(ctx context.Context, in sessionList) (string, error) {
	dir := "/"
	if in.Path != "" && in.Path != "/" {
		var err error
		if dir, err = parseSessionPath(strings.TrimSuffix(in.Path, "/")); err != nil {
			return "", err
		}
		dir += "/"
	}
	inv := reeve.InvocationFrom(ctx)
	var files []reeve.SessionFile
	shown := strings.TrimSuffix(dir, "/")
	err := s.DB.View(ctx, func(snap *store.Snap) (err error) {
		files, err = snap.Chat().ListSessionFiles(ctx, inv.Workspace, inv.Session, dir, maxSessionFiles+1)
		if err != nil || len(files) > 0 {
			return err
		}
		body, isFile, err := snap.Chat().GetSessionFile(ctx, inv.Workspace, inv.Session, shown)
		if isFile {
			return reeve.Errorf(reeve.ToolFailed, "%s is a file of %d bytes, not a folder", shown, len(body)).
				Hintf("read it with read_file")
		}
		return err
	})
	if err != nil {
		return "", err
	}
	lines := map[string]bool{}
	for _, f := range files[:min(len(files), maxSessionFiles)] {
		if sub, _, deeper := strings.Cut(strings.TrimPrefix(f.Path, dir), "/"); deeper {
			lines[fmt.Sprintf("[DIR]  %s", dir+sub)] = true
		} else {
			lines[fmt.Sprintf("[FILE] %s (%d bytes)", f.Path, f.Size)] = true
		}
	}
	if shown == "" {
		shown = "/"
	}
	if len(lines) == 0 {
		return shown + " is empty", nil
	}
	all := make([]string, 0, len(lines))
	for l := range lines {
		all = append(all, l)
	}
	sort.Strings(all)
	text := "Contents of " + shown + ":\n" + strings.Join(all, "\n")
	if len(files) > maxSessionFiles {
		text += fmt.Sprintf("\n[only the first %d files are listed]", maxSessionFiles)
	}
	return text, nil
}

// parseSessionPath returns the path with a leading slash, or an error that says why it is invalid.
func parseSessionPath(p string) (string, error) {
	bad := func(why string) error {
		return &reeve.Error{Code: reeve.Validation, Message: fmt.Sprintf("%q is not a valid path: %s", p, why),
			Fields: []reeve.Field{{Path: "/path", Message: why, Expected: "a path like /notes/today.txt"}}}
	}
	s := p
	if !strings.HasPrefix(s, "/") {
		s = "/" + s
	}
	switch {
	case strings.TrimSpace(p) != p:
		return "", bad("it begins or ends with white space")
	case len(s) > maxSessionPath:
		return "", bad("it is too long")
	case !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return "", bad("it contains control characters or is not UTF-8")
	case s != path.Clean(s):
		return "", bad("it contains empty, . or .. elements, or ends with a slash")
	case s == "/":
		return "", bad("it names no file")
	}
	return s, nil
}

// checkNoNUL checks that text contains no NUL character. The tools that read files refuse files with NUL. path is the
// JSON pointer of the argument.
func checkNoNUL(path, text string) error {
	i := strings.IndexByte(text, 0)
	if i < 0 {
		return nil
	}
	return &reeve.Error{Code: reeve.Validation,
		Message: fmt.Sprintf("%s contains a NUL character at byte %d; files are text", strings.TrimPrefix(path, "/"),
			i),
		Fields: []reeve.Field{{Path: path, Message: "contains a NUL character", Expected: "text without NUL"}},
		Hint:   "remove the NUL character; nothing was written"}
}
