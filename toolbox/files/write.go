package files

import (
	"context"

	"reeve"
)

type writeArgs struct {
	Path      string `json:"path" minLength:"1" maxLength:"4096" doc:"File under /shared, /tmp or /project. Missing folders are created"`
	Content   string `json:"content" doc:"Whole content of the file"`
	Overwrite bool   `json:"overwrite,omitempty" doc:"True to replace an existing file"`
}

type writeResult struct {
	Path    string `json:"path"`
	Size    int    `json:"size" doc:"Bytes of the file"`
	Created bool   `json:"created" doc:"True if the file is new"`
	Changed bool   `json:"changed" doc:"False if the file already had this content"`
	State   string `json:"state" doc:"New state of the file"`
	saved
}

func (d done) result(v vpath, s saved) writeResult {
	return writeResult{Path: v.String(), Size: d.size, Created: d.before.kind == absent, Changed: d.before != d.after,
		State: d.after.String(), saved: s}
}

func (p *Pack) writeTool() reeve.Tool {
	t := declare("file_write", "Write file",
		"Write a whole file under /shared, /tmp or /project. Fails if the file exists, unless overwrite is "+
			"true. The old content is kept, so the change can be undone.", capWrite,
		reeve.Verifiable,
		writeTime)
	t.Identity = []string{"path"}
	t.Check = checks(p, func(in writeArgs) (vpath, error) {
		if err := withoutNUL("/content", in.Content); err != nil {
			return vpath{}, err
		}
		c, err := p.writing(in)
		return c.path, err
	})
	t.Preview = p.previewWrite
	t.Verify = p.verifyWrite
	return reeve.MustTool(t, p.write)
}

// writing checks the arguments and works out the change they ask for.
func (p *Pack) writing(in writeArgs) (change, error) {
	v, err := targetPath("path", in.Path)
	if err != nil {
		return change{}, err
	}
	if int64(len(in.Content)) > p.cfg.MaxFile {
		return change{}, tooLarge(v, p.cfg.MaxFile).(*reeve.Error).Hintf("write it in parts, to more than one file")
	}
	return change{path: v, next: putting(v, []byte(in.Content), in.Overwrite)}, nil
}

// putting is the change that makes a file hold data, whatever it held.
func putting(v vpath, data []byte, overwrite bool) func(found) ([]byte, bool, error) {
	return func(old found) ([]byte, bool, error) {
		if old.kind != absent && !overwrite {
			return nil, false, reeve.Errorf(reeve.AlreadyExists, "%s is there already", v).
				Hintf("pass overwrite true to replace it, or use file_edit")
		}
		return data, old.kind == program, nil
	}
}

func (p *Pack) write(ctx context.Context, in writeArgs) (writeResult, error) {
	c, err := p.writing(in)
	if err != nil {
		return writeResult{}, err
	}
	inv := reeve.InvocationFrom(ctx)
	c.base = inv.Base
	g, leave, err := p.working(ctx, inv, c.path, "file_write")
	if err != nil {
		return writeResult{}, err
	}
	d, err := p.replace(ctx, inv, g, c)
	s := leave(err == nil && d.before != d.after)
	if err != nil {
		return writeResult{}, err
	}
	report(inv, c.path, d)
	return d.result(c.path, s), nil
}

func (p *Pack) previewWrite(ctx context.Context, inv *reeve.Invocation) (reeve.Preview, error) {
	in, err := reeve.Args[writeArgs](inv)
	if err != nil {
		return reeve.Preview{}, err
	}
	c, err := p.writing(in)
	if err != nil {
		return reeve.Preview{}, err
	}
	return p.preview(ctx, inv, c)
}

func (p *Pack) verifyWrite(ctx context.Context, inv *reeve.Invocation) (reeve.Outcome, any, error) {
	in, err := reeve.Args[writeArgs](inv)
	if err != nil {
		return reeve.CannotTell, nil, err
	}
	c, err := p.writing(in)
	if err != nil {
		return reeve.CannotTell, nil, err
	}
	before := baseState(inv.Base)
	d := done{before: before, after: fileState([]byte(in.Content), before.kind == program), size: len(in.Content)}
	o, s, err := p.settle(ctx, inv, c.path, d, inv.Base, "file_write")
	return o, d.result(c.path, s), err
}

// baseState reads a recorded base. One that was never recorded gives no state, which equals none.
func baseState(base string) state {
	s, err := parseState(base)
	if err != nil {
		return state{}
	}
	return s
}
