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

// defaultReadLimit is the number of bytes that usually fit into the output of a call as JSON.
const defaultReadLimit = 12 << 10

type readArgs struct {
	Path   string `json:"path" minLength:"1" maxLength:"4096" doc:"A file under /shared, /tmp or /project"`
	Offset int64  `json:"offset,omitempty" minimum:"0" doc:"First byte. Default: 0. Moves out of a character or secret"`
	Limit  int    `json:"limit,omitempty" minimum:"1" maximum:"1048576" doc:"Maximum bytes. Default: 12288"`
}

type readResult struct {
	Path       string `json:"path"`
	Size       int64  `json:"size" doc:"Bytes of the whole file"`
	Offset     int64  `json:"offset" doc:"First byte of the text"`
	NextOffset int64  `json:"next_offset,omitempty" doc:"Offset of the next slice; absent at the end"`
	Text       string `json:"text"`
}

// reader has the tools that read, list and search files.
type reader struct {
	*workspaceDir
	*projectAccess
	*contentStore
	maxFile int64
	maxList int
}

func (p *reader) readTool() reeve.Tool {
	t := newTool("file_read", "Read file",
		"Read UTF-8 text from a file under /shared, /tmp or /project. To read on in a long file, pass "+
			"next_offset as offset.", capRead, reeve.Read, readTimeout)
	t.Check = newPathCheck(p.projectAccess, func(in readArgs) (vpath, error) { return parseReadPath("path", in.Path) })
	return reeve.MustTool(t, p.read)
}

// CheckReadable checks that the agent of a call may read a path. Tools that use [Pack.ReadFile] call it first.
func (p *reader) CheckReadable(ctx context.Context, inv *reeve.Invocation, path string) error {
	v, err := parseReadPath("path", path)
	if err != nil {
		return err
	}
	return p.checkAccess(ctx, inv, v)
}

// ReadFile returns a whole file that a call may read. It creates nothing, so it can run inside a transaction.
func (p *reader) ReadFile(ctx context.Context, inv *reeve.Invocation, path string) ([]byte, error) {
	v, f, info, err := p.openFile(ctx, inv, path, false)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info.Size() > p.maxFile {
		return nil, reeve.Errorf(reeve.TooLarge, "%s has %d bytes; the maximum is %d", v, info.Size(), p.maxFile)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(f, p.maxFile))
	return b, convertError(err, v)
}

// openFile opens a file that a call may read.
func (p *reader) openFile(ctx context.Context, inv *reeve.Invocation, path string,
	create bool) (v vpath, f *os.File, info fs.FileInfo, err error) {
	v, err = parseReadPath("path", path)
	if err == nil && len(v.names) == 0 {
		err = folderError(v)
	}
	if err != nil {
		return v, nil, nil, err
	}
	roots, err := p.resolveRootsWith(ctx, inv, v, create)
	if err != nil {
		return v, nil, nil, err
	}
	loc, err := p.locate(roots, v)
	if err != nil {
		return v, nil, nil, err
	}
	defer loc.close()
	f, info, err = loc.openFile()
	return v, f, info, err
}

func (p *reader) read(ctx context.Context, in readArgs) (readResult, error) {
	inv := reeve.InvocationFrom(ctx)
	v, f, info, err := p.openFile(ctx, inv, in.Path, true)
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
		limit = defaultReadLimit
	}
	head := make([]byte, 4096) // check the start of the file: a slice of a binary file can look like text
	if head, err = readAt(f, head, 0); err != nil {
		return out, convertError(err, v)
	}
	lo := max(0, in.Offset-reeve.RedactWindow)
	text := make([]byte, int(in.Offset-lo)+limit+reeve.RedactWindow)
	if text, err = readAt(f, text, lo); err != nil {
		return out, convertError(err, v)
	}
	at := min(int(in.Offset-lo), len(text)) // index of in.Offset in text
	if bytes.IndexByte(head, 0) >= 0 || !isTextHead(head) {
		return out, notTextError(v, head, 0)
	}
	cut := inv.RedactedSlices(string(text))
	page := func(n int) (readResult, error) {
		page := out
		skip, end, ok := sliceRunes(text[at:], n, in.Offset > 0)
		if !ok {
			return page, notTextError(v, text[at:], lo+int64(at))
		}
		from, to, shown := cut(at+skip, at+end)
		if !isText(text[from:to]) {
			return page, notTextError(v, text[from:to], lo+int64(from))
		}
		page.Offset, page.Text = lo+int64(from), shown
		if next := lo + int64(to); next < page.Size || to < len(text) {
			page.NextOffset = next
		}
		return page, nil
	}
	if in.Limit > 0 {
		return page(limit) // not shortened to fit the output; the gate stores output that does not fit
	}
	return reeve.LongestPage(inv, min(limit, len(text)), page)
}

// notTextError returns the error for a file that is not text. b is the part of the file from offset at. The error says
// whether b contains NUL after valid UTF-8, or is not UTF-8.
func notTextError(v vpath, b []byte, at int64) error {
	nul := bytes.IndexByte(b, 0)
	before := b[:max(nul, 0)]
	for i := 0; i < utf8.UTFMax-1 && at > 0 && len(before) > 0 && !utf8.RuneStart(before[0]); i++ {
		before = before[1:] // the rest of a character that begins before b
	}
	if nul >= 0 && utf8.Valid(before) {
		return reeve.Errorf(reeve.ToolFailed, "%s contains a NUL character at byte %d, so it is not text", v,
			at+int64(nul)).Hintf("the file is binary or damaged; this tool reads UTF-8 text without NUL")
	}
	return reeve.Errorf(reeve.ToolFailed, "%s is not UTF-8 text", v).
		Hintf("the file is binary or has another encoding; this tool reads UTF-8 only")
}

// readAt reads up to len(b) bytes from offset. It returns fewer at the end of the file.
func readAt(f *os.File, b []byte, offset int64) ([]byte, error) {
	n, err := f.ReadAt(b, offset)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return b[:n], err
}

// sliceRunes returns the range of whole characters in the first limit bytes of b. The range has at least one character,
// even if limit is smaller. If inside is set, b may begin inside a character, which the range skips. ok is false if b
// is not text.
func sliceRunes(b []byte, limit int, inside bool) (skip, end int, ok bool) {
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

// isTextHead reports whether the first bytes of a file are text. The last character may be incomplete.
func isTextHead(b []byte) bool {
	for range utf8.UTFMax {
		if utf8.Valid(b) {
			return true
		}
		if len(b) < 4096-utf8.UTFMax {
			return false // b is the whole file, so no character is cut off
		}
		b = b[:len(b)-1]
	}
	return false
}

// isText reports whether a whole file is text.
func isText(b []byte) bool { return utf8.Valid(b) && bytes.IndexByte(b, 0) < 0 }
