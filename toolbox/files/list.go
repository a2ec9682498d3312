package files

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"reeve"
)

type listArgs struct {
	Path  string `json:"path" minLength:"1" maxLength:"4096" doc:"Folder such as /shared/reports, or / for the roots"`
	After string `json:"after,omitempty" maxLength:"1024" doc:"Start after this: next of the previous page, or a name"`
}

type listEntry struct {
	Name     string    `json:"name"`
	Kind     string    `json:"kind" enum:"file,dir,link,special" doc:"Links and special files are shown but not opened"`
	Size     int64     `json:"size" doc:"Bytes, of a file"`
	Modified time.Time `json:"modified"`
	Note     string    `json:"note,omitempty"`
}

type listResult struct {
	Path    string      `json:"path"`
	Total   int         `json:"total" doc:"Number of entries in the folder"`
	More    bool        `json:"more" doc:"True if there are more entries"`
	Next    string      `json:"next,omitempty" doc:"Pass it as after to get the next page; absent at the end"`
	Entries []listEntry `json:"entries" doc:"Sorted by name"`
}

func (p *reader) listTool() reeve.Tool {
	t := newTool("file_list", "List folder",
		"List the entries of a folder under /shared, /tmp or /project with kind, size and modification time. "+
			"The path / lists the roots.", capRead, reeve.Read, readTimeout)
	t.Check = newPathCheck(p.projectAccess, func(in listArgs) (vpath, error) { return parseReadPath("path", in.Path) })
	return reeve.MustTool(t, p.list)
}

func (p *reader) list(ctx context.Context, in listArgs) (listResult, error) {
	v, err := parseReadPath("path", in.Path)
	if err != nil {
		return listResult{}, err
	}
	out := listResult{Path: v.String(), Entries: []listEntry{}}
	inv := reeve.InvocationFrom(ctx)
	if v.root == "" {
		return p.listTopLevel(ctx, inv, out)
	}
	roots, err := p.resolveRoots(ctx, inv, v)
	if err != nil {
		return out, err
	}
	dir, err := p.openDir(roots, v, openSubdir)
	if err != nil {
		return out, err
	}
	defer dir.Close()
	names, position, err := p.listPageNames(ctx, dir, v, in.After, &out)
	if err != nil {
		return out, err
	}
	var positions []int // indexes of the entries in the list of all names
	for _, name := range names {
		info, err := dir.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			position++
			continue // deleted meanwhile
		}
		if err != nil {
			return out, convertError(err, v.child(name))
		}
		position++
		out.Entries, positions = append(out.Entries, newListEntry(name, info)), append(positions, position)
	}
	return reeve.LongestPage(inv, len(out.Entries), func(n int) (listResult, error) {
		page := out
		page.Entries, page.More = out.Entries[:n], out.More || n < len(out.Entries)
		if page.More {
			page.Next = "/" + strconv.Itoa(position)
		}
		if page.More && n > 0 {
			page.Next = nextCursor(inv, out.Entries[n-1].Name, positions[n-1])
		}
		return page, nil
	})
}

// nextCursor returns the cursor after an entry. It is the name, or the position if the name contains a secret and would
// be redacted.
func nextCursor(inv *reeve.Invocation, name string, position int) string {
	if len(inv.Redactor.StoredOnly().Find(name)) > 0 {
		return "/" + strconv.Itoa(position)
	}
	return name
}

// unquoteName returns the name of an entry that a listing shows quoted (see newListEntry), or else name itself.
func unquoteName(name string) string {
	if raw, err := strconv.Unquote(name); err == nil {
		if _, err := parsePath("name", "/"+raw); err != nil {
			return raw
		}
	}
	return name
}

// listTopLevel lists "/", the roots that an agent may read.
func (p *reader) listTopLevel(ctx context.Context, inv *reeve.Invocation, out listResult) (listResult, error) {
	paths, roots, unavailable, err := p.listReadableRoots(ctx, inv)
	if err != nil {
		return out, err
	}
	for _, v := range paths {
		name := v.root
		dir, err := p.openRoot(roots, name)
		if err != nil {
			return out, err
		}
		info, err := dir.Stat(".")
		dir.Close()
		if err != nil {
			return out, convertError(err, v)
		}
		out.Entries = append(out.Entries, newListEntry(name, info))
	}
	if unavailable != nil {
		out.Entries = append(out.Entries, listEntry{Name: projectRoot, Kind: "dir",
			Note: reeve.AsError(unavailable).Message})
	}
	out.Total = len(out.Entries)
	return out, nil
}

// listPageNames returns up to MaxList names in order after the cursor, and the number of names before them. The cursor
// is a name or a position such as /12. listPageNames sets Total and More of out. In a huge folder it limits the names
// in memory.
func (p *reader) listPageNames(ctx context.Context, dir *os.Root, v vpath, after string,
	out *listResult) (names []string, before int, err error) {
	f, err := dir.Open(".")
	if err != nil {
		return nil, 0, convertError(err, v)
	}
	defer f.Close()
	skip := 0
	if n, err := strconv.Atoi(strings.TrimPrefix(after, "/")); err == nil && n > 0 && after[0] == '/' {
		after, skip = "", n
	}
	after = unquoteName(after)
	limit := p.maxList + min(skip, 1<<30)
	truncate := func() {
		slices.Sort(names)
		if len(names) > limit {
			names, out.More = names[:limit], true
		}
	}
	for {
		batch, err := f.Readdirnames(1024)
		for _, name := range batch {
			if isTempName(name) || v.root == projectRoot && isGitDir(name) {
				continue
			}
			if out.Total++; name > after {
				names = append(names, name)
			} else {
				before++
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			truncate()
			skip = min(skip, len(names))
			return names[skip:], before + skip, nil
		case err != nil:
			return nil, 0, convertError(err, v)
		case ctx.Err() != nil:
			return nil, 0, ctx.Err()
		case len(names) > limit+p.maxList:
			truncate()
		}
	}
}

// newListEntry describes an entry without opening it.
func newListEntry(name string, info fs.FileInfo) listEntry {
	e := listEntry{Name: name, Kind: "special", Modified: info.ModTime().UTC().Truncate(time.Millisecond)}
	switch mode := info.Mode(); {
	case mode.IsRegular():
		e.Kind, e.Size = "file", info.Size()
	case mode.IsDir():
		e.Kind = "dir"
	case mode&fs.ModeSymlink != 0:
		e.Kind = "link"
	}
	if _, err := parsePath("name", "/"+name); err != nil {
		e.Name, e.Note = strconv.Quote(name), "the file tools cannot open this name"
	}
	return e
}
