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
	Path  string `json:"path" minLength:"1" maxLength:"4096" doc:"A folder under /shared, /tmp or /project, or / for the roots"`
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

func (p *Pack) listTool() reeve.Tool {
	t := declare("file_list", "List folder",
		"List the entries of a folder under /shared, /tmp or /project with kind, size and modification time. "+
			"The path / lists the roots.", capRead, reeve.Read, readTime)
	t.Check = checks(p, func(in listArgs) (vpath, error) { return openPath("path", in.Path) })
	return reeve.MustTool(t, p.list)
}

func (p *Pack) list(ctx context.Context, in listArgs) (listResult, error) {
	v, err := openPath("path", in.Path)
	if err != nil {
		return listResult{}, err
	}
	out := listResult{Path: v.String(), Entries: []listEntry{}}
	inv := reeve.InvocationFrom(ctx)
	if v.root == "" {
		return p.listRoots(ctx, inv, out)
	}
	g, err := p.ground(ctx, inv, v)
	if err != nil {
		return out, err
	}
	dir, err := p.folder(g, v, enter)
	if err != nil {
		return out, err
	}
	defer dir.Close()
	names, passed, err := p.firstNames(ctx, dir, v, in.After, &out)
	if err != nil {
		return out, err
	}
	var places []int // of the entries among all names
	for _, name := range names {
		info, err := dir.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			passed++
			continue // gone since
		}
		if err != nil {
			return out, fault(err, v.child(name))
		}
		passed++
		out.Entries, places = append(out.Entries, describe(name, info)), append(places, passed)
	}
	return reeve.LongestPage(inv, len(out.Entries), func(n int) (listResult, error) {
		page := out
		page.Entries, page.More = out.Entries[:n], out.More || n < len(out.Entries)
		if page.More {
			page.Next = "/" + strconv.Itoa(passed)
		}
		if page.More && n > 0 {
			page.Next = following(inv, out.Entries[n-1].Name, places[n-1])
		}
		return page, nil
	})
}

// following says how to go on after an entry: by its name, unless that may not be shown as it is and would lead
// nowhere.
func following(inv *reeve.Invocation, name string, place int) string {
	if len(inv.Redactor.StoredOnly().Find(name)) > 0 {
		return "/" + strconv.Itoa(place)
	}
	return name
}

// unquoted is the name of an entry that was shown quoted, or else the name itself.
func unquoted(name string) string {
	if raw, err := strconv.Unquote(name); err == nil {
		if _, err := parsePath("name", "/"+raw); err != nil {
			return raw
		}
	}
	return name
}

// listRoots lists "/": the roots an agent may look into.
func (p *Pack) listRoots(ctx context.Context, inv *reeve.Invocation, out listResult) (listResult, error) {
	roots, g, closed, err := p.roots(ctx, inv)
	if err != nil {
		return out, err
	}
	for _, v := range roots {
		name := v.root
		dir, err := p.root(g, name)
		if err != nil {
			return out, err
		}
		info, err := dir.Stat(".")
		dir.Close()
		if err != nil {
			return out, fault(err, v)
		}
		out.Entries = append(out.Entries, describe(name, info))
	}
	if closed != nil {
		out.Entries = append(out.Entries, listEntry{Name: projectRoot, Kind: "dir", Note: reeve.AsError(closed).
			Message})
	}
	out.Total = len(out.Entries)
	return out, nil
}

// firstNames gives the first names in order after one, or after a number of them (/12), holding no more of a huge
// folder in memory than it gives or passes by that number; and how many it passed.
func (p *Pack) firstNames(ctx context.Context, dir *os.Root, v vpath, after string,
	out *listResult) (names []string, passed int, err error) {
	f, err := dir.Open(".")
	if err != nil {
		return nil, 0, fault(err, v)
	}
	defer f.Close()
	skip := 0
	if n, err := strconv.Atoi(strings.TrimPrefix(after, "/")); err == nil && n > 0 && after[0] == '/' {
		after, skip = "", n
	}
	after = unquoted(after)
	most := p.cfg.MaxList + min(skip, 1<<30)
	cut := func() {
		slices.Sort(names)
		if len(names) > most {
			names, out.More = names[:most], true
		}
	}
	for {
		batch, err := f.Readdirnames(1024)
		for _, name := range batch {
			if isOwn(name) || v.root == projectRoot && isGit(name) {
				continue
			}
			if out.Total++; name > after {
				names = append(names, name)
			} else {
				passed++
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			cut()
			skip = min(skip, len(names))
			return names[skip:], passed + skip, nil
		case err != nil:
			return nil, 0, fault(err, v)
		case ctx.Err() != nil:
			return nil, 0, ctx.Err()
		case len(names) > most+p.cfg.MaxList:
			cut()
		}
	}
}

// describe says what an entry is, without opening it.
func describe(name string, info fs.FileInfo) listEntry {
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
		e.Name, e.Note = strconv.Quote(name), "the name is not plain text, so the file tools cannot reach it"
	}
	return e
}
