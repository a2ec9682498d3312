package files

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path"
	"strings"
	"unicode/utf8"

	"reeve"
)

const (
	defaultSearchLimit = 10
	maxSearchLimit     = 50
	maxLineBytes       = 300 // bytes of a line in the result
)

type searchArgs struct {
	Path   string `json:"path,omitempty" maxLength:"4096" doc:"Folder or file to search. Default: all roots"`
	Query  string `json:"query" minLength:"1" maxLength:"1000" doc:"Text to find in a line, case-sensitive"`
	Regexp bool   `json:"regexp,omitempty" doc:"True if query is a regular expression (RE2)"`
	Glob   string `json:"glob,omitempty" maxLength:"255" doc:"Name pattern such as *.md, or path pattern with a slash"`
	Limit  int    `json:"limit,omitempty" minimum:"1" maximum:"50" doc:"Maximum number of matches. Default: 10"`
}

// searchConfig is the configuration of file_search for one agent.
type searchConfig struct {
	projectConfig
	DefaultLimit int `json:"default_limit,omitempty" minimum:"1" maximum:"50" doc:"Limit of calls that set none"`
}

type searchMatch struct {
	Path string `json:"path"`
	Line int    `json:"line" doc:"Counts from 1"`
	Text string `json:"text"`
}

type searchResult struct {
	More     bool          `json:"more" doc:"True if there are more matches"`
	Searched int           `json:"searched" doc:"Number of files searched"`
	Skipped  int           `json:"skipped" doc:"Number of files skipped: binary, too large or unreadable"`
	Partial  bool          `json:"partial,omitempty" doc:"True if not all files or roots were searched"`
	Matches  []searchMatch `json:"matches"` // last, because long output is truncated at the end
}

func (p *reader) searchTool() reeve.Tool {
	t := newTool("file_search", "Search files",
		"Search text files under /shared, /tmp and /project, including subfolders. Returns the matching "+
			"lines. Does not follow links, and skips binary and very large files.", capRead, reeve.Read,
		searchTimeout)
	t.ConfigSchema, _ = reeve.SchemaFor[searchConfig]() // cannot fail for a plain struct; a test covers it
	t.Check = newPathCheck(p.projectAccess, func(in searchArgs) (vpath, error) {
		s, err := newSearch(in)
		if err != nil {
			return vpath{}, err
		}
		return s.from, nil
	})
	return reeve.MustTool(t, p.search)
}

// search is the state of one search.
type search struct {
	reader  *reader
	from    vpath
	glob    string
	match   lineMatcher
	inv     *reeve.Invocation
	limit   int
	visited int
	stopped bool // the limit of matches or entries is reached
	out     searchResult
}

// newSearch checks the arguments of a search.
func newSearch(in searchArgs) (*search, error) {
	s := &search{glob: in.Glob, out: searchResult{Matches: []searchMatch{}}}
	var err error
	if in.Path != "" {
		if s.from, err = parseReadPath("path", in.Path); err != nil {
			return nil, err
		}
	}
	invalid := func(arg, format string, args ...any) (*search, error) {
		e := reeve.Errorf(reeve.Validation, format, args...)
		e.Fields = []reeve.Field{{Path: "/" + arg, Message: e.Message}}
		return nil, e
	}
	if _, err := path.Match(in.Glob, ""); err != nil {
		return invalid("glob", "%q is not a valid pattern; use one such as *.md", in.Glob)
	}
	if in.Query == "" {
		return invalid("query", "the query is empty")
	}
	query := []byte(in.Query)
	s.match = func(_ context.Context, line []byte) bool { return bytes.Contains(line, query) }
	if in.Regexp {
		if s.match, err = compileRegexp(in.Query); err != nil {
			return invalid("query", "the query is not a regular expression: %v", err)
		}
	}
	return s, nil
}

func (p *reader) search(ctx context.Context, in searchArgs) (searchResult, error) {
	s, err := newSearch(in)
	if err != nil {
		return searchResult{}, err
	}
	inv := reeve.InvocationFrom(ctx)
	if s.limit, err = searchLimit(in.Limit, inv.Config); err != nil {
		return searchResult{}, err
	}
	s.reader, s.inv = p, inv
	paths := []vpath{s.from}
	roots, err := p.resolveRoots(ctx, inv, s.from)
	if s.from.root == "" {
		var unavailable error
		if paths, roots, unavailable, err = p.listReadableRoots(ctx, inv); unavailable != nil {
			s.out.Partial = true
		}
	}
	if err != nil {
		return searchResult{}, err
	}
	for _, v := range paths {
		if err := s.searchPath(ctx, roots, v); err != nil {
			return searchResult{}, err
		}
	}
	return s.out, nil
}

// searchLimit returns the limit of the call, or of the agent's settings, or the default.
func searchLimit(limit int, config json.RawMessage) (int, error) {
	var c searchConfig
	if err := reeve.DecodeSettings("file_search", config, &c); err != nil {
		return 0, err
	}
	for _, n := range []int{limit, c.DefaultLimit} {
		if n < 0 || n > maxSearchLimit {
			return 0, reeve.Errorf(reeve.Validation, "limit %d is not between 1 and %d", n, maxSearchLimit)
		}
		if n > 0 {
			return n, nil
		}
	}
	return defaultSearchLimit, nil
}

// searchPath searches a folder or a file.
func (s *search) searchPath(ctx context.Context, roots rootSet, v vpath) error {
	if len(v.names) > 0 {
		loc, err := s.reader.locate(roots, v)
		if err != nil {
			return err
		}
		defer loc.close()
		f, _, err := loc.openFile()
		if err == nil {
			f.Close()
			return s.searchFile(ctx, loc)
		}
		info, statErr := loc.lstat()
		if statErr != nil || !info.IsDir() {
			return err
		}
	}
	dir, err := s.reader.openDir(roots, v, openSubdir)
	if err != nil {
		return err
	}
	defer dir.Close()
	return s.walk(ctx, dir, v)
}

func (s *search) walk(ctx context.Context, dir *os.Root, v vpath) error {
	names, err := s.reader.readDirNames(ctx, dir, v, 0)
	if reeve.CodeOf(err) == reeve.TooLarge || len(v.names) >= maxDepth {
		s.out.Partial = true
		return nil
	}
	if err != nil {
		return err
	}
	for _, name := range names {
		if v.root == projectRoot && isGitDir(name) {
			continue
		}
		if s.visited++; s.visited > s.reader.maxEntries {
			s.out.Partial, s.stopped = true, true
		}
		if s.stopped {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.visit(ctx, location{dir: dir, name: name, path: v.child(name)}); err != nil {
			return err
		}
	}
	return nil
}

func (s *search) visit(ctx context.Context, loc location) error {
	if _, err := parsePath("name", "/"+loc.name); err != nil {
		s.out.Skipped++
		return nil
	}
	info, err := loc.lstat()
	switch {
	case err != nil:
		return nil // deleted meanwhile
	case info.IsDir():
		sub, err := openSubdir(loc.dir, loc.name, loc.path)
		if err != nil {
			s.out.Skipped++ // replaced meanwhile, or not readable
			return nil
		}
		defer sub.Close()
		return s.walk(ctx, sub, loc.path)
	case !info.Mode().IsRegular():
		return nil
	}
	return s.searchFile(ctx, loc)
}

// searchFile searches a file if its name matches the pattern.
func (s *search) searchFile(ctx context.Context, loc location) error {
	if s.glob != "" {
		subject := loc.name
		if strings.Contains(s.glob, "/") {
			subject = loc.path.String()
		}
		if ok, _ := path.Match(s.glob, subject); !ok { // newSearch checked the pattern
			return nil
		}
	}
	b, _, err := loc.readFile(ctx, s.reader.maxFile)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil || !isText(b) {
		s.out.Skipped++
		return nil
	}
	s.out.Searched++
	n, next := 0, 0
	for line := range bytes.Lines(b) {
		at := next
		n, next = n+1, next+len(line)
		line = bytes.TrimRight(line, "\r\n")
		matches := s.match(ctx, line)
		if err := ctx.Err(); err != nil {
			return err
		}
		if !matches {
			continue
		}
		if len(s.out.Matches) == s.limit {
			s.out.More, s.stopped = true, true
			return nil
		}
		s.out.Matches = append(s.out.Matches, searchMatch{Path: loc.path.String(), Line: n,
			Text: s.renderLine(b, at, at+len(line))})
	}
	return nil
}

// renderLine returns the line at text[from:to] without secrets, including secrets that span several lines. It truncates
// a long line at a character boundary.
func (s *search) renderLine(text []byte, from, to int) string {
	end := to
	if end > from+maxLineBytes {
		end = from + maxLineBytes
		for end > from && !utf8.RuneStart(text[end]) {
			end--
		}
	}
	lo := max(0, from-reeve.RedactWindow)
	_, shownTo, shown := s.inv.RedactedSlice(string(text[lo:min(len(text), end+reeve.RedactWindow)]), from-lo, end-lo)
	if lo+shownTo < to {
		shown += "…"
	}
	return shown
}
