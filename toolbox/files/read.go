package files

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"unicode/utf8"

	"reeve"
)

// readDefault is a slice that, as JSON, is usually shown whole.
const readDefault = 12 << 10

type readArgs struct {
	Path   string `json:"path" minLength:"1" maxLength:"4096" doc:"A file under /shared, /tmp or /project"`
	Offset int64  `json:"offset,omitempty" minimum:"0" doc:"First byte. Default: 0. Moves out of a character or secret"`
	Limit  int    `json:"limit,omitempty" minimum:"1" maximum:"1048576" doc:"Maximum bytes. Default: 12288. Never splits a character"`
}

type readResult struct {
	Path       string `json:"path"`
	Size       int64  `json:"size" doc:"Bytes of the whole file"`
	Offset     int64  `json:"offset" doc:"First byte of the text"`
	NextOffset int64  `json:"next_offset,omitempty" doc:"Offset of the next slice; absent at the end"`
	Text       string `json:"text"`
}

func (p *Pack) readTool() reeve.Tool {
	t := declare("file_read", "Read file",
		"Read UTF-8 text from a file under /shared, /tmp or /project. To read on in a long file, pass "+
			"next_offset as offset.", capRead, reeve.Read, readTime)
	t.Check = checks(p, func(in readArgs) (vpath, error) { return openPath("path", in.Path) })
	return reeve.MustTool(t, p.read)
}

// CheckReadable checks that the agent of a call may read a path. Tools that use [Pack.ReadFile] call it first.
func (p *Pack) CheckReadable(ctx context.Context, inv *reeve.Invocation, path string) error {
	v, err := openPath("path", path)
	if err != nil {
		return err
	}
	return p.reaches(ctx, inv, v)
}

// ReadFile returns a whole file that a call may read. It creates nothing, so it can run inside a transaction.
func (p *Pack) ReadFile(ctx context.Context, inv *reeve.Invocation, path string) ([]byte, error) {
	v, f, info, err := p.open(ctx, inv, path, false)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info.Size() > p.cfg.MaxFile {
		return nil, reeve.Errorf(reeve.TooLarge, "%s has %d bytes; at most %d can be taken at once", v, info.Size(),
			p.cfg.MaxFile)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(f, p.cfg.MaxFile))
	return b, fault(err, v)
}

// open opens a file that a call may read.
func (p *Pack) open(ctx context.Context, inv *reeve.Invocation, path string,
	create bool) (v vpath, f *os.File, info fs.FileInfo, err error) {
	v, err = openPath("path", path)
	if err == nil && len(v.names) == 0 {
		err = isFolder(v)
	}
	if err != nil {
		return v, nil, nil, err
	}
	g, err := p.groundAs(ctx, inv, v, create)
	if err != nil {
		return v, nil, nil, err
	}
	pl, err := p.at(g, v)
	if err != nil {
		return v, nil, nil, err
	}
	defer pl.close()
	f, info, err = pl.open()
	return v, f, info, err
}

func (p *Pack) read(ctx context.Context, in readArgs) (readResult, error) {
	inv := reeve.InvocationFrom(ctx)
	v, f, info, err := p.open(ctx, inv, in.Path, true)
	if err != nil {
		return readResult{}, err
	}
	defer f.Close()
	out := readResult{Path: v.String(), Size: info.Size(), Offset: in.Offset}
	if in.Offset > out.Size {
		return out, reeve.Errorf(reeve.Validation, "offset %d is past the end of %s, which has %d bytes", in.Offset, v,
			out.Size)
	}
	if err := ctx.Err(); err != nil {
		return out, err
	}
	limit := in.Limit
	if limit == 0 {
		limit = readDefault
	}
	head := make([]byte, 4096) // a picture may begin a slice with what looks like text
	if head, err = fillAt(f, head, 0); err != nil {
		return out, fault(err, v)
	}
	lo := max(0, in.Offset-reeve.RedactWindow)
	text := make([]byte, int(in.Offset-lo)+limit+reeve.RedactWindow)
	if text, err = fillAt(f, text, lo); err != nil {
		return out, fault(err, v)
	}
	at := min(int(in.Offset-lo), len(text)) // where the slice is to begin
	if bytes.IndexByte(head, 0) >= 0 || !textHead(head) {
		return out, notText(v, head, 0)
	}
	cut := inv.RedactedSlices(string(text))
	page := func(n int) (readResult, error) {
		page := out
		skip, end, ok := slice(text[at:], n, in.Offset > 0)
		if !ok {
			return page, notText(v, text[at:], lo+int64(at))
		}
		from, to, shown := cut(at+skip, at+end)
		if !isText(text[from:to]) {
			return page, notText(v, text[from:to], lo+int64(from))
		}
		page.Offset, page.Text = lo+int64(from), shown
		if next := lo + int64(to); next < page.Size || to < len(text) {
			page.NextOffset = next
		}
		return page, nil
	}
	if in.Limit > 0 {
		return page(limit) // whoever asks for so much is given it: what is not shown of it is kept
	}
	return reeve.LongestPage(inv, min(limit, len(text)), page)
}

// notText says why a file is no text by bytes of it, which begin at an offset: it holds NUL and is UTF-8 up to there,
// or it is not UTF-8.
func notText(v vpath, b []byte, at int64) error {
	nul := bytes.IndexByte(b, 0)
	before := b[:max(nul, 0)]
	for i := 0; i < utf8.UTFMax-1 && at > 0 && len(before) > 0 && !utf8.RuneStart(before[0]); i++ {
		before = before[1:] // the rest of a character that began before
	}
	if nul >= 0 && utf8.Valid(before) {
		return reeve.Errorf(reeve.ToolFailed, "%s holds a NUL character, at byte %d, and so is no text", v,
			at+int64(nul)).Hintf("it is binary, or something went wrong when it was written; this tool works on " +
			"UTF-8 text without NUL")
	}
	return reeve.Errorf(reeve.ToolFailed, "%s is not UTF-8 text", v).
		Hintf("it is binary or in another encoding; this tool works on UTF-8 only")
}

// fillAt reads as much of b as the file has from offset.
func fillAt(f *os.File, b []byte, offset int64) ([]byte, error) {
	n, err := f.ReadAt(b, offset)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return b[:n], err
}

// slice finds the whole characters in the first limit bytes of b: from skip, when b began inside a character, to end.
// At least one character is taken, however small the limit. ok is false when b is not text.
func slice(b []byte, limit int, inside bool) (skip, end int, ok bool) {
	for inside && skip < len(b) && skip < utf8.UTFMax-1 && !utf8.RuneStart(b[skip]) {
		skip++
	}
	for end = skip; end < len(b); {
		r, n := utf8.DecodeRune(b[end:])
		if end+n > limit && end > skip {
			break
		}
		if r == 0 || (r == utf8.RuneError && n == 1) {
			return skip, end, false
		}
		end += n
	}
	return skip, end, true
}

// textHead tells whether the first bytes of a file are text; the last character may be cut off.
func textHead(b []byte) bool {
	for range utf8.UTFMax {
		if utf8.Valid(b) {
			return true
		}
		if len(b) < 4096-utf8.UTFMax {
			return false // not cut off: there is no more
		}
		b = b[:len(b)-1]
	}
	return false
}

// isText reports whether a whole file is text.
func isText(b []byte) bool { return utf8.Valid(b) && bytes.IndexByte(b, 0) < 0 }
