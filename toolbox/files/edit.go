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
	saved
}

func (p *Pack) editTool() reeve.Tool {
	t := declare("file_edit", "Edit file",
		"Replace one piece of text in a file under /shared, /tmp or /project. The old text must occur exactly "+
			"once, so include enough text around it. The change can be undone.", capWrite, reeve.Verifiable, writeTime)
	t.Identity = []string{"path", "old"}
	t.Check = checks(p, func(in editArgs) (vpath, error) {
		if err := withoutNUL("/old", in.Old); err != nil {
			return vpath{}, err
		}
		if err := withoutNUL("/new", in.New); err != nil {
			return vpath{}, err
		}
		return editPath(in)
	})
	t.Preview = p.previewEdit
	t.Verify = p.verifyEdit
	return reeve.MustTool(t, p.edit)
}

func editPath(in editArgs) (vpath, error) {
	v, err := targetPath("path", in.Path)
	switch {
	case err != nil:
		return v, err
	case in.Old == "":
		return v, reeve.Errorf(reeve.Validation, "the text to replace is empty")
	case in.Old == in.New:
		return v, reeve.Errorf(reeve.Validation, "old and new are the same text")
	}
	return v, nil
}

// editing gives the bytes after an edit and the line where it begins.
func (p *Pack) editing(v vpath, in editArgs, old []byte) (data []byte, line int, err error) {
	if int64(len(old)) > p.cfg.MaxFile {
		return nil, 0, tooLarge(v, p.cfg.MaxFile)
	}
	if !isText(old) {
		return nil, 0, notText(v, old, 0)
	}
	at, n := occurrences(old, []byte(in.Old))
	switch {
	case n == 0:
		return nil, 0, reeve.Errorf(reeve.ToolFailed, "the old text does not occur in %s", v).
			Hintf("read the file and copy the text exactly, with its spaces and line ends")
	case n > 1:
		times := strconv.Itoa(n) + " times"
		if n == mostCounted {
			times += " or more"
		}
		return nil, 0, reeve.Errorf(reeve.ToolFailed, "the old text occurs %s in %s; it must occur once", times, v).
			Hintf("give more of what is around it")
	}
	data = append(append(bytes.Clone(old[:at]), in.New...), old[at+len(in.Old):]...)
	if int64(len(data)) > p.cfg.MaxFile {
		return nil, 0, tooLarge(v, p.cfg.MaxFile)
	}
	return data, 1 + bytes.Count(old[:at], []byte{'\n'}), nil
}

// mostCounted is how many occurrences are counted. Millions that overlap would take hours: each is as long as the text
// that is looked for.
const mostCounted = 100

// occurrences counts where sep occurs in b, overlaps included: "aa" is at two places in "aaa", so it says not which is
// meant.
func occurrences(b, sep []byte) (first, n int) {
	for from := 0; n < mostCounted; n++ {
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

// editChange works out the change and, once it was made, the line.
func (p *Pack) editChange(inv *reeve.Invocation, in editArgs, line *int) (change, error) {
	v, err := editPath(in)
	if err != nil {
		return change{}, err
	}
	return change{path: v, base: inv.Base, next: func(old found) ([]byte, bool, error) {
		if old.kind == absent {
			return nil, false, fault(fs.ErrNotExist, v)
		}
		data, at, err := p.editing(v, in, old.data)
		*line = at
		return data, old.kind == program, err
	}}, nil
}

func (p *Pack) edit(ctx context.Context, in editArgs) (editResult, error) {
	var line int
	inv := reeve.InvocationFrom(ctx)
	c, err := p.editChange(inv, in, &line)
	if err != nil {
		return editResult{}, err
	}
	g, leave, err := p.working(ctx, inv, c.path, "file_edit")
	if err != nil {
		return editResult{}, err
	}
	d, err := p.replace(ctx, inv, g, c)
	s := leave(err == nil)
	if err != nil {
		return editResult{}, err
	}
	report(inv, c.path, d)
	return editResult{Path: c.path.String(), Line: line, Size: d.size, State: d.after.String(), saved: s}, nil
}

func (p *Pack) previewEdit(ctx context.Context, inv *reeve.Invocation) (reeve.Preview, error) {
	in, err := reeve.Args[editArgs](inv)
	if err != nil {
		return reeve.Preview{}, err
	}
	var line int
	c, err := p.editChange(inv, in, &line)
	if err != nil {
		return reeve.Preview{}, err
	}
	return p.preview(ctx, inv, c)
}

// verifyEdit works the edit out again from the bytes it was based on: they were kept before anything was changed.
func (p *Pack) verifyEdit(ctx context.Context, inv *reeve.Invocation) (reeve.Outcome, any, error) {
	in, err := reeve.Args[editArgs](inv)
	if err != nil {
		return reeve.CannotTell, nil, err
	}
	v, err := editPath(in)
	if err != nil {
		return reeve.CannotTell, nil, err
	}
	before := baseState(inv.Base)
	d := done{before: before}
	out := editResult{Path: v.String()}
	old, err := p.kept(ctx, inv.Workspace, before.hash)
	switch {
	case err == nil:
		data, line, err := p.editing(v, in, old)
		if err != nil {
			return reeve.CannotTell, nil, err
		}
		d.after, d.size = fileState(data, before.kind == program), len(data)
		out.Line, out.Size, out.State = line, d.size, d.after.String()
	case !errors.Is(err, &reeve.Error{Code: reeve.ToolFailed}):
		return reeve.CannotTell, nil, err
	}
	o, s, err := p.settle(ctx, inv, v, d, inv.Base, "file_edit")
	out.saved = s
	return o, out, err
}
