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
	searchDefault = 10
	searchMost    = 50
	searchText    = 300 // bytes of a line that are shown
)

type searchArgs struct {
	Path   string `json:"path,omitempty" maxLength:"4096" doc:"Folder or file to search. Default: all roots"`
	Query  string `json:"query" minLength:"1" maxLength:"1000" doc:"Text to find in a line, case-sensitive"`
	Regexp bool   `json:"regexp,omitempty" doc:"True if query is a regular expression (RE2)"`
	Glob   string `json:"glob,omitempty" maxLength:"255" doc:"File name pattern such as *.md. With a slash, matches the path"`
	Limit  int    `json:"limit,omitempty" minimum:"1" maximum:"50" doc:"Maximum number of matches. Default: 10"`
}

// searchConfig is what an operator may set per agent.
type searchConfig struct {
	projectConfig
	DefaultLimit int `json:"default_limit,omitempty" minimum:"1" maximum:"50" doc:"Limit of calls without one. Default: 10"`
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
	Matches  []searchMatch `json:"matches"` // the last: what callers are shown is cut at the end
}

func (p *Pack) searchTool() reeve.Tool {
	t := declare("file_search", "Search files",
		"Search text files under /shared, /tmp and /project, including subfolders. Returns the matching "+
			"lines. Does not follow links, and skips binary and very large files.", capRead, reeve.Read,
		searchTime)
	t.ConfigSchema, _ = reeve.SchemaFor[searchConfig]() // cannot fail for a plain struct; a test covers it
	t.Check = checks(p, func(in searchArgs) (vpath, error) {
		s, err := newSearch(in)
		if err != nil {
			return vpath{}, err
		}
		return s.from, nil
	})
	return reeve.MustTool(t, p.search)
}

// search is one search under way.
type search struct {
	pack    *Pack
	from    vpath
	glob    string
	match   matcher
	inv     *reeve.Invocation
	limit   int
	visited int
	full    bool // no more is wanted, or allowed
	out     searchResult
}

// newSearch checks the arguments of a search.
func newSearch(in searchArgs) (*search, error) {
	s := &search{glob: in.Glob, out: searchResult{Matches: []searchMatch{}}}
	var err error
	if in.Path != "" {
		if s.from, err = openPath("path", in.Path); err != nil {
			return nil, err
		}
	}
	wrong := func(arg, format string, args ...any) (*search, error) {
		e := reeve.Errorf(reeve.Validation, format, args...)
		e.Fields = []reeve.Field{{Path: "/" + arg, Message: e.Message}}
		return nil, e
	}
	if _, err := path.Match(in.Glob, ""); err != nil {
		return wrong("glob", "%q is not a pattern", in.Glob)
	}
	if in.Query == "" {
		return wrong("query", "the query is empty")
	}
	query := []byte(in.Query)
	s.match = func(_ context.Context, line []byte) bool { return bytes.Contains(line, query) }
	if in.Regexp {
		if s.match, err = expression(in.Query); err != nil {
			return wrong("query", "the query is not a regular expression: %v", err)
		}
	}
	return s, nil
}

func (p *Pack) search(ctx context.Context, in searchArgs) (searchResult, error) {
	s, err := newSearch(in)
	if err != nil {
		return searchResult{}, err
	}
	inv := reeve.InvocationFrom(ctx)
	if s.limit, err = searchLimit(in.Limit, inv.Config); err != nil {
		return searchResult{}, err
	}
	s.pack, s.inv = p, inv
	roots := []vpath{s.from}
	g, err := p.ground(ctx, inv, s.from)
	if s.from.root == "" {
		var closed error
		if roots, g, closed, err = p.roots(ctx, inv); closed != nil {
			s.out.Partial = true
		}
	}
	if err != nil {
		return searchResult{}, err
	}
	for _, v := range roots {
		if err := s.begin(ctx, g, v); err != nil {
			return searchResult{}, err
		}
	}
	return s.out, nil
}

// searchLimit decides between what the call says, what the agent's settings say, and the default.
func searchLimit(limit int, config json.RawMessage) (int, error) {
	var c searchConfig
	if err := reeve.DecodeSettings("file_search", config, &c); err != nil {
		return 0, err
	}
	for _, n := range []int{limit, c.DefaultLimit} {
		if n < 0 || n > searchMost {
			return 0, reeve.Errorf(reeve.Validation, "a limit of %d is not between 1 and %d", n, searchMost)
		}
		if n > 0 {
			return n, nil
		}
	}
	return searchDefault, nil
}

// begin searches one folder or file that was named.
func (s *search) begin(ctx context.Context, g ground, v vpath) error {
	if len(v.names) > 0 {
		pl, err := s.pack.at(g, v)
		if err != nil {
			return err
		}
		defer pl.close()
		f, _, err := pl.open()
		if err == nil {
			f.Close()
			return s.file(ctx, pl)
		}
		info, statErr := pl.lstat()
		if statErr != nil || !info.IsDir() {
			return err
		}
	}
	dir, err := s.pack.folder(g, v, enter)
	if err != nil {
		return err
	}
	defer dir.Close()
	return s.walk(ctx, dir, v)
}

func (s *search) walk(ctx context.Context, dir *os.Root, v vpath) error {
	w := walker{pack: s.pack}
	names, err := w.names(ctx, dir, v)
	if reeve.CodeOf(err) == reeve.TooLarge || len(v.names) >= maxDepth {
		s.out.Partial = true
		return nil
	}
	if err != nil {
		return err
	}
	for _, name := range names {
		if v.root == projectRoot && isGit(name) {
			continue
		}
		if s.visited++; s.visited > s.pack.cfg.MaxEntries {
			s.out.Partial, s.full = true, true
		}
		if s.full {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.visit(ctx, place{dir: dir, name: name, path: v.child(name)}); err != nil {
			return err
		}
	}
	return nil
}

func (s *search) visit(ctx context.Context, pl place) error {
	if _, err := parsePath("name", "/"+pl.name); err != nil {
		s.out.Skipped++
		return nil
	}
	info, err := pl.lstat()
	switch {
	case err != nil:
		return nil // gone since
	case info.IsDir():
		sub, err := enter(pl.dir, pl.name, pl.path)
		if err != nil {
			s.out.Skipped++ // swapped for something else, or closed to us
			return nil
		}
		defer sub.Close()
		return s.walk(ctx, sub, pl.path)
	case !info.Mode().IsRegular():
		return nil
	}
	return s.file(ctx, pl)
}

// file searches one file, if it is one to search.
func (s *search) file(ctx context.Context, pl place) error {
	if s.glob != "" {
		subject := pl.name
		if strings.Contains(s.glob, "/") {
			subject = pl.path.String()
		}
		if ok, _ := path.Match(s.glob, subject); !ok { // newSearch saw that the pattern is one
			return nil
		}
	}
	b, _, err := pl.bytes(ctx, s.pack.cfg.MaxFile)
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
			s.out.More, s.full = true, true
			return nil
		}
		s.out.Matches = append(s.out.Matches, searchMatch{Path: pl.path.String(), Line: n,
			Text: s.shown(b, at, at+len(line))})
	}
	return nil
}

// shown is the line from one place in a text to another without the secrets in it, also those that reach over several
// lines. A long one is cut on a character boundary.
func (s *search) shown(text []byte, from, to int) string {
	end := to
	if end > from+searchText {
		end = from + searchText
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
