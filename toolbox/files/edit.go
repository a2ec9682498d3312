package files

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"strconv"

	"reeve"
)

type editArgs struct {
	Path string `json:"path" minLength:"1" maxLength:"4096" doc:"A text file under /shared, /tmp or /project"`
	Old  string `json:"old" minLength:"1" doc:"Text to replace. Must occur exactly once"`
	New  string `json:"new" doc:"New text"`
}

type editResult struct {
	Path  string `json:"path"`
	Line  int    `json:"line" doc:"Line where the change begins"`
	Size  int    `json:"size" doc:"Bytes of the file"`
	State string `json:"state" doc:"New state of the file"`
	commitInfo
}

func (p *editor) editTool() reeve.Tool {
	t := newTool("file_edit", "Edit file",
		"Replace one piece of text in a file under /shared, /tmp or /project. The old text must occur exactly "+
			"once, so include enough text around it. The change can be undone.", capWrite, reeve.Verifiable,
		writeTimeout)
	t.Identity = []string{"path", "old"}
	t.Check = newPathCheck(p.projectAccess, func(in editArgs) (vpath, error) {
		if err := checkNoNUL("/old", in.Old); err != nil {
			return vpath{}, err
		}
		if err := checkNoNUL("/new", in.New); err != nil {
			return vpath{}, err
		}
		return parseEditPath(in)
	})
	t.Preview = p.previewEdit
	t.Verify = p.verifyEdit
	return reeve.MustTool(t, p.edit)
}

func parseEditPath(in editArgs) (vpath, error) {
	v, err := parseWritePath("path", in.Path)
	switch {
	case err != nil:
		return v, err
	case in.Old == "":
		return v, reeve.Errorf(reeve.Validation, "old is empty; set it to the text to replace")
	case in.Old == in.New:
		return v, reeve.Errorf(reeve.Validation, "old and new are the same text")
	}
	return v, nil
}

// applyEdit returns the content after an edit and the line where the edit begins.
func (p *editor) applyEdit(v vpath, in editArgs, old []byte) (data []byte, line int, err error) {
	if int64(len(old)) > p.maxFile {
		return nil, 0, tooLargeError(v, p.maxFile)
	}
	if !isText(old) {
		return nil, 0, notTextError(v, old, 0)
	}
	at, n := countOccurrences(old, []byte(in.Old))
	switch {
	case n == 0:
		return nil, 0, reeve.Errorf(reeve.ToolFailed, "the old text does not occur in %s", v).
			Hintf("read the file and copy the text exactly, including spaces and line breaks")
	case n > 1:
		times := strconv.Itoa(n) + " times"
		if n == maxOccurrences {
			times += " or more"
		}
		return nil, 0, reeve.Errorf(reeve.ToolFailed, "the old text occurs %s in %s; it must occur once", times, v).
			Hintf("include more of the text around it")
	}
	data = append(append(bytes.Clone(old[:at]), in.New...), old[at+len(in.Old):]...)
	if int64(len(data)) > p.maxFile {
		return nil, 0, tooLargeError(v, p.maxFile)
	}
	return data, 1 + bytes.Count(old[:at], []byte{'\n'}), nil
}

// maxOccurrences limits the number of counted occurrences. Counting millions of overlapping occurrences of a long text
// would take hours.
const maxOccurrences = 100

// countOccurrences returns the offset of the first occurrence of sep in b and the number of occurrences, up to
// maxOccurrences. Overlapping occurrences count: "aa" occurs twice in "aaa", so an edit of "aa" would be ambiguous.
func countOccurrences(b, sep []byte) (first, n int) {
	for from := 0; n < maxOccurrences; n++ {
		i := bytes.Index(b[from:], sep)
		if i < 0 {
			return first, n
		}
		if n == 0 {
			first = i
		}
		from += i + 1
	}
	return first, n
}

// newEditChange returns the change that an edit makes. When the change computes its content, it sets *line to the line
// where the edit begins.
func (p *editor) newEditChange(inv *reeve.Invocation, in editArgs, line *int) (change, error) {
	v, err := parseEditPath(in)
	if err != nil {
		return change{}, err
	}
	return change{path: v, base: inv.Base, newContent: func(old snapshot) ([]byte, bool, error) {
		if old.kind == absent {
			return nil, false, convertError(fs.ErrNotExist, v)
		}
		data, at, err := p.applyEdit(v, in, old.data)
		*line = at
		return data, old.kind == program, err
	}}, nil
}

func (p *editor) edit(ctx context.Context, in editArgs) (editResult, error) {
	var line int
	inv := reeve.InvocationFrom(ctx)
	c, err := p.newEditChange(inv, in, &line)
	if err != nil {
		return editResult{}, err
	}
	roots, finish, err := p.openForWriting(ctx, inv, c.path, "file_edit")
	if err != nil {
		return editResult{}, err
	}
	d, err := p.replace(ctx, inv, roots, c)
	s := finish(err == nil)
	if err != nil {
		return editResult{}, err
	}
	reportChange(inv, c.path, d)
	return editResult{Path: c.path.String(), Line: line, Size: d.size, State: d.after.String(), commitInfo: s}, nil
}

func (p *editor) previewEdit(ctx context.Context, inv *reeve.Invocation) (reeve.Preview, error) {
	in, err := reeve.Args[editArgs](inv)
	if err != nil {
		return reeve.Preview{}, err
	}
	var line int
	c, err := p.newEditChange(inv, in, &line)
	if err != nil {
		return reeve.Preview{}, err
	}
	return p.preview(ctx, inv, c)
}

// verifyEdit applies the edit again to the content it was based on, which was stored before the file was changed, and
// compares the result with the file.
func (p *editor) verifyEdit(ctx context.Context, inv *reeve.Invocation) (reeve.Outcome, any, error) {
	in, err := reeve.Args[editArgs](inv)
	if err != nil {
		return reeve.CannotTell, nil, err
	}
	v, err := parseEditPath(in)
	if err != nil {
		return reeve.CannotTell, nil, err
	}
	before := parseBase(inv.Base)
	d := changeResult{before: before}
	out := editResult{Path: v.String()}
	old, err := p.getBlob(ctx, inv.Workspace, before.hash)
	switch {
	case err == nil:
		data, line, err := p.applyEdit(v, in, old)
		if err != nil {
			return reeve.CannotTell, nil, err
		}
		d.after, d.size = fileState(data, before.kind == program), len(data)
		out.Line, out.Size, out.State = line, d.size, d.after.String()
	case !errors.Is(err, &reeve.Error{Code: reeve.ToolFailed}):
		return reeve.CannotTell, nil, err
	}
	o, s, err := p.verifyChange(ctx, inv, v, d, inv.Base, "file_edit")
	out.commitInfo = s
	return o, out, err
}
