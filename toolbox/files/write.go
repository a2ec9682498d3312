package files

import (
	"context"

	"reeve"
)

type writeArgs struct {
	Path string `json:"path" minLength:"1" maxLength:"4096" doc:"File such as /shared/a.txt. Creates missing folders"`

	Content   string `json:"content" doc:"Whole content of the file"`
	Overwrite bool   `json:"overwrite,omitempty" doc:"True to replace an existing file"`
}

type writeResult struct {
	Path    string `json:"path"`
	Size    int    `json:"size" doc:"Bytes of the file"`
	Created bool   `json:"created" doc:"True if the file is new"`
	Changed bool   `json:"changed" doc:"False if the file already had this content"`
	State   string `json:"state" doc:"New state of the file"`
	commitInfo
}

func (d changeResult) newWriteResult(v vpath, s commitInfo) writeResult {
	return writeResult{Path: v.String(), Size: d.size, Created: d.before.kind == absent, Changed: d.before != d.after,
		State: d.after.String(), commitInfo: s}
}

// editor has the tools that write and edit files.
type editor struct {
	*fileWriter
	maxFile int64
}

func (p *editor) writeTool() reeve.Tool {
	t := newTool("file_write", "Write file",
		"Write a whole file under /shared, /tmp or /project. Fails if the file exists, unless overwrite is "+
			"true. The old content is kept, so the change can be undone.", capWrite,
		reeve.Verifiable,
		writeTimeout)
	t.Identity = []string{"path"}
	t.Check = newPathCheck(p.projectAccess, func(in writeArgs) (vpath, error) {
		if err := checkNoNUL("/content", in.Content); err != nil {
			return vpath{}, err
		}
		c, err := p.newWriteChange(in)
		return c.path, err
	})
	t.Preview = p.previewWrite
	t.Verify = p.verifyWrite
	return reeve.MustTool(t, p.write)
}

// newWriteChange checks the arguments and returns the change they request.
func (p *editor) newWriteChange(in writeArgs) (change, error) {
	v, err := parseWritePath("path", in.Path)
	if err != nil {
		return change{}, err
	}
	if int64(len(in.Content)) > p.maxFile {
		return change{}, tooLargeError(v, p.maxFile).(*reeve.Error).Hintf("split the content into several files")
	}
	return change{path: v, newContent: writeContent(v, []byte(in.Content), in.Overwrite)}, nil
}

// writeContent returns the content function of a change that replaces the whole file with data.
func writeContent(v vpath, data []byte, overwrite bool) contentFunc {
	return func(old snapshot) ([]byte, bool, error) {
		if old.kind != absent && !overwrite {
			return nil, false, reeve.Errorf(reeve.AlreadyExists, "%s already exists", v).
				Hintf("set overwrite to true to replace it, or use file_edit")
		}
		return data, old.kind == program, nil
	}
}

func (p *editor) write(ctx context.Context, in writeArgs) (writeResult, error) {
	c, err := p.newWriteChange(in)
	if err != nil {
		return writeResult{}, err
	}
	inv := reeve.InvocationFrom(ctx)
	c.base = inv.Base
	roots, finish, err := p.openForWriting(ctx, inv, c.path, "file_write")
	if err != nil {
		return writeResult{}, err
	}
	d, err := p.replace(ctx, inv, roots, c)
	s := finish(err == nil && d.before != d.after)
	if err != nil {
		return writeResult{}, err
	}
	reportChange(inv, c.path, d)
	return d.newWriteResult(c.path, s), nil
}

func (p *editor) previewWrite(ctx context.Context, inv *reeve.Invocation) (reeve.Preview, error) {
	in, err := reeve.Args[writeArgs](inv)
	if err != nil {
		return reeve.Preview{}, err
	}
	c, err := p.newWriteChange(in)
	if err != nil {
		return reeve.Preview{}, err
	}
	return p.preview(ctx, inv, c)
}

func (p *editor) verifyWrite(ctx context.Context, inv *reeve.Invocation) (reeve.Outcome, any, error) {
	in, err := reeve.Args[writeArgs](inv)
	if err != nil {
		return reeve.CannotTell, nil, err
	}
	c, err := p.newWriteChange(in)
	if err != nil {
		return reeve.CannotTell, nil, err
	}
	before := parseBase(inv.Base)
	d := changeResult{before: before, after: fileState([]byte(in.Content), before.kind == program),
		size: len(in.Content)}
	o, s, err := p.verifyChange(ctx, inv, c.path, d, inv.Base, "file_write")
	return o, d.newWriteResult(c.path, s), err
}

// parseBase parses the recorded base of a call. Without a valid base it returns the zero state, which no entry has.
func parseBase(base string) state {
	s, err := parseState(base)
	if err != nil {
		return state{}
	}
	return s
}
