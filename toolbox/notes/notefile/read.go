package notefile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"reeve"
)

// Format is the format of files with notes.
type Format string

// The formats.
const (
	Markdown Format = "markdown" // a Markdown file, or a folder of them
	Claude   Format = "claude"   // CLAUDE.md files
	Agents   Format = "agents"   // AGENTS.md files
	OpenClaw Format = "openclaw" // an OpenClaw workspace: MEMORY.md, USER.md and memory/*.md
	Letta    Format = "letta"    // a Letta agent file
	Reeve    Format = "reeve"    // an export of Reeve as JSON
)

// Formats lists the formats.
func Formats() []Format { return []Format{Markdown, Claude, Agents, OpenClaw, Letta, Reeve} }

const (
	maxFile     = 10 << 20 // bytes of a file, except an export of Reeve
	maxExport   = 2 << 30  // bytes of an export of Reeve
	maxNotes    = 100_000  // notes of one import
	sourceStart = "import:"
)

// Problem is a file, or a part of a file, that is not imported.
type Problem struct {
	File    string `json:"file"`
	Message string `json:"message"`
}

// Plan is what an import would send to the server.
type Plan struct {
	Format   Format             `json:"format"`
	Notes    []reeve.NoteRecord `json:"-"`
	Problems []Problem          `json:"problems"`
}

// Read reads the notes in a file or folder. An empty format means that it is detected.
func Read(path string, format Format) (Plan, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Plan{}, reeve.Errorf(reeve.NotFound, "cannot read %s: %w", path, err).
			Hintf("give the path of a file or folder that you may read")
	}
	if !info.IsDir() && !info.Mode().IsRegular() {
		return Plan{}, reeve.Errorf(reeve.Validation, "%s is neither a file nor a folder", path).
			Hintf("copy its content to a file, and import that")
	}
	if format == "" {
		if format, err = detect(path, info.IsDir()); err != nil {
			return Plan{}, err
		}
	}
	if !slices.Contains(Formats(), format) {
		return Plan{}, reeve.Errorf(reeve.Validation, "unknown format %q", format).Hintf("use one of %v", Formats())
	}
	r := &reader{plan: Plan{Format: format, Problems: []Problem{}}}
	if !info.IsDir() {
		r.readFile(path, filepath.Base(path))
	} else if err := r.readFolder(path); err != nil {
		return Plan{}, err
	}
	if len(r.plan.Notes) > maxNotes {
		return Plan{}, reeve.Errorf(reeve.TooLarge, "%s has %d notes; one import may have at most %d", path,
			len(r.plan.Notes), maxNotes).Hintf("import parts of it")
	}
	return r.plan, nil
}

var dailyFile = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}(-.*)?\.md$`)

// detect returns the format of a file or folder.
func detect(path string, isFolder bool) (Format, error) {
	if isFolder {
		daily, _ := filepath.Glob(filepath.Join(path, "memory", "*.md"))
		_, err := os.Stat(filepath.Join(path, "MEMORY.md"))
		isDaily := func(f string) bool { return dailyFile.MatchString(filepath.Base(f)) }
		if err == nil || slices.ContainsFunc(daily, isDaily) {
			return OpenClaw, nil
		}
		return Markdown, nil
	}
	name := strings.ToLower(filepath.Base(path))
	switch filepath.Ext(name) {
	case ".md", ".markdown":
		switch name {
		case "claude.md", "claude.local.md":
			return Claude, nil
		case "agents.md":
			return Agents, nil
		case "memory.md", "user.md":
			return OpenClaw, nil
		}
		return Markdown, nil
	case ".af":
		return Letta, nil
	case ".json":
		f, err := os.Open(path)
		if err != nil {
			return "", reeve.Errorf(reeve.NotFound, "cannot read %s: %w", path, err)
		}
		defer func() { _ = f.Close() }()
		head := make([]byte, 4096)
		n, err := io.ReadFull(f, head)
		if errors.Is(err, io.EOF) {
			return "", reeve.Errorf(reeve.Validation, "%s is empty", path).Hintf("give a file with notes")
		}
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			return "", reeve.Errorf(reeve.Validation, "cannot read %s: %w", path, err)
		}
		if bytes.Contains(head[:n], []byte(exportFormat)) {
			return Reeve, nil
		}
		return Letta, nil
	}
	return "", reeve.Errorf(reeve.Validation, "the format of %s is not known", path).
		Hintf("set it with --from: one of %v", Formats())
}

// reader collects the notes of files.
type reader struct{ plan Plan }

func (r *reader) problem(file, format string, args ...any) {
	r.plan.Problems = append(r.plan.Problems, Problem{file, fmt.Sprintf(format, args...)})
}

// readFolder reads the files of the format in a folder and its subfolders. It skips hidden folders and does not follow
// links.
func (r *reader) readFolder(root string) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(root, path)
		name = filepath.ToSlash(name)
		switch {
		case err != nil:
			r.problem(name, "cannot be read: %s", plainError(err))
			if d != nil && d.IsDir() {
				return fs.SkipDir
			}
		case d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules"):
			return fs.SkipDir
		case d.Type().IsRegular() && r.wants(name):
			r.readFile(path, name)
		}
		return nil
	})
}

// wants reports whether a file in a folder has notes of the format.
func (r *reader) wants(name string) bool {
	lower := strings.ToLower(name)
	base := lower[strings.LastIndex(lower, "/")+1:]
	switch r.plan.Format {
	case Claude:
		return base == "claude.md" || base == "claude.local.md"
	case Agents:
		return base == "agents.md"
	case OpenClaw:
		return lower == "memory.md" || lower == "user.md" || strings.HasPrefix(lower, "memory/") &&
			strings.HasSuffix(lower, ".md")
	case Letta:
		return strings.HasSuffix(lower, ".af")
	case Reeve:
		return strings.HasSuffix(lower, ".json")
	case Markdown:
	}
	return strings.HasSuffix(lower, ".md") || strings.HasSuffix(lower, ".markdown")
}

// readFile reads the notes of one file.
func (r *reader) readFile(path, name string) {
	limit := int64(maxFile)
	if r.plan.Format == Reeve {
		limit = maxExport
	}
	info, err := os.Stat(path)
	if err == nil && info.Size() > limit {
		r.problem(name, "is larger than %d bytes; split it", limit)
		return
	}
	b, err := os.ReadFile(path)
	if err != nil {
		r.problem(name, "cannot be read: %s", plainError(err))
		return
	}
	b = bytes.TrimPrefix(b, []byte("\xEF\xBB\xBF"))
	if !reeve.IsStorableText(string(b)) {
		r.problem(name, "is not a text in UTF-8")
		return
	}
	switch r.plan.Format {
	case Letta:
		r.readLetta(name, b)
	case Reeve:
		r.readExport(name, b)
	case Markdown, Claude, Agents, OpenClaw:
		r.readMarkdown(name, string(b))
	}
}

// plainError returns the cause of a file error without the path.
func plainError(err error) string {
	if e := (*fs.PathError)(nil); errors.As(err, &e) {
		return e.Err.Error()
	}
	return err.Error()
}

// add adds a text as one note, or as several if it is too long for one.
func (r *reader) add(file, text string, tags []string, validFrom *time.Time) {
	var fitting []string
	for _, tag := range tags {
		if checked, err := reeve.CheckTags([]string{tag}); err == nil {
			fitting = append(fitting, checked...)
		}
	}
	slices.Sort(fitting)
	fitting = slices.Compact(fitting)
	if len(fitting) > reeve.MaxNoteTags {
		r.problem(file, "a note has %d tags; only the first %d are imported", len(fitting), reeve.MaxNoteTags)
		fitting = fitting[:reeve.MaxNoteTags]
	}
	for _, part := range splitText(text, reeve.MaxNote) {
		r.plan.Notes = append(r.plan.Notes, reeve.NoteRecord{Content: part, Tags: fitting, Source: sourceOf(file),
			ValidFrom: validFrom})
	}
}

// sourceOf returns the source of the notes in a file.
func sourceOf(file string) string { return reeve.Truncate(sourceStart+file, 400) }

// splitText splits a text into parts of at most limit bytes. It splits between paragraphs if possible, otherwise
// between lines, between words, or within a word.
func splitText(text string, limit int) (parts []string) {
	for text = strings.TrimSpace(text); len(text) > limit; {
		cut := len(strings.ToValidUTF8(text[:limit], ""))
		for _, separator := range []string{"\n\n", "\n", " "} {
			if i := strings.LastIndex(text[:cut], separator); i > 0 {
				cut = i
				break
			}
		}
		if part := strings.TrimSpace(text[:cut]); part != "" {
			parts = append(parts, part)
		}
		text = strings.TrimSpace(text[cut:])
	}
	if text != "" {
		parts = append(parts, text)
	}
	return parts
}
